"""attnbias: the implicit bias of self-attention, exact and checked."""

from ._provenance import VERSION
from .checks import Check, CheckTable
from .data import (
    Dataset,
    load_binary_mnist,
    make_bad_start,
    make_dm,
    make_example1,
    make_separation_pair,
)
from .dynamics.rates import RateFit, fit_rate
from .dynamics.trace import Trace
from .dynamics.train import train
from .errors import AttnBiasError, InfeasibleError
from .geometry.assumptions import check_assumption1, check_assumption2
from .geometry.diagnose import Diagnosis, diagnose
from .geometry.svm import SVMSolution, solve_u_svm, solve_w_svm
from .geometry.tokens import optimal_tokens, token_scores
from .losses import Loss
from .model import SelfAttention
from .rules import GD, NGD, Polyak, Rule
from .sweeps import sweep
from .theorems import (
    check_condition1,
    check_condition2,
    check_lemma1,
    check_lemma2,
    check_lemma3,
    check_lemma4,
    check_lemma5,
    check_lemma6,
    check_lemma7,
    check_lemma8,
    check_lemma9,
    check_lemma10,
    check_lemma11,
    check_lemma12,
    check_lemma13,
    check_order,
    check_theorem1,
    check_theorem2,
    check_theorem3,
    check_theorem4,
    check_theorem5,
    check_theorem6,
    check_theorem7,
    check_theorem8,
    check_theorem9,
    check_theorem10,
)

__version__ = VERSION

__all__ = [
    "Dataset", "load_binary_mnist", "make_bad_start", "make_dm", "make_example1",
    "make_separation_pair",
    "SVMSolution", "diagnose", "Diagnosis", "optimal_tokens", "solve_u_svm", "solve_w_svm",
    "token_scores",
    "GD", "NGD", "Polyak", "Rule", "Loss", "SelfAttention",
    "RateFit", "Trace", "fit_rate", "sweep", "train",
    "AttnBiasError", "InfeasibleError",
    "Check", "CheckTable", "check_assumption1", "check_assumption2", "check_condition1",
    "check_condition2", "check_order",
    "check_lemma1", "check_lemma2", "check_lemma3", "check_lemma4", "check_lemma5", "check_lemma6",
    "check_lemma7", "check_lemma8", "check_lemma9", "check_lemma10", "check_lemma11",
    "check_lemma12", "check_lemma13",
    "check_theorem1", "check_theorem2", "check_theorem3", "check_theorem4", "check_theorem5",
    "check_theorem6", "check_theorem7", "check_theorem8", "check_theorem9", "check_theorem10",
]  # fmt: skip
