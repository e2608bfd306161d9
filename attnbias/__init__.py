"""attnbias: the implicit bias of self-attention, exact and checked."""

from ._provenance import VERSION
from .checks import Check, CheckTable
from .data import Dataset, load_binary_mnist, make_example1, make_separation_pair
from .dynamics.rates import fit_rate
from .dynamics.rules import GD, NGD, Polyak
from .dynamics.trace import Trace
from .dynamics.train import train
from .errors import AttnBiasError, InfeasibleError
from .geometry.assumptions import check_assumption1, check_assumption2
from .geometry.diagnose import diagnose
from .geometry.svm import SVMSolution, solve_u_svm, solve_w_svm
from .geometry.tokens import optimal_tokens, token_scores
from .losses import Loss
from .model import SelfAttention

__version__ = VERSION

__all__ = [
    "GD",
    "NGD",
    "AttnBiasError",
    "Check",
    "CheckTable",
    "Dataset",
    "InfeasibleError",
    "Loss",
    "Polyak",
    "SVMSolution",
    "SelfAttention",
    "Trace",
    "check_assumption1",
    "check_assumption2",
    "diagnose",
    "fit_rate",
    "load_binary_mnist",
    "make_example1",
    "make_separation_pair",
    "optimal_tokens",
    "solve_u_svm",
    "solve_w_svm",
    "token_scores",
    "train",
]
