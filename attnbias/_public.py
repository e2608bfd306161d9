"""The public names; `attnbias` imports this when the first of them is asked for."""

from .checks import Check, CheckTable
from .data import load_binary_mnist, make_bad_start, make_dm, make_example1, make_separation_pair
from .dataset import Dataset
from .diagnosis.diagnose import Diagnosis, diagnose
from .dynamics.attention import attention_gradient, attention_loss
from .dynamics.rates import RateFit, fit_rate
from .dynamics.risk import AttentionGradient
from .dynamics.trace import Trace
from .dynamics.train import train
from .errors import AttnBiasError, InfeasibleError
from .geometry.assumptions import check_assumption1, check_assumption2
from .geometry.svm import SVMSolution, solve_u_svm, solve_w_svm
from .geometry.tokens import optimal_tokens, token_scores
from .losses import Loss
from .model import SelfAttention
from .rules import GD, NGD, Polyak, Rule
from .sweeps import sweep
from .theorems import paper as _paper
from .theorems.paper import *  # noqa: F403  the numbered statements

__all__ = [
    "Dataset",
    "load_binary_mnist",
    "make_bad_start",
    "make_dm",
    "make_example1",
    "make_separation_pair",
    "SVMSolution",
    "diagnose",
    "Diagnosis",
    "optimal_tokens",
    "solve_u_svm",
    "solve_w_svm",
    "token_scores",
    "GD",
    "NGD",
    "Polyak",
    "Rule",
    "Loss",
    "SelfAttention",
    "AttentionGradient",
    "attention_gradient",
    "attention_loss",
    "RateFit",
    "Trace",
    "fit_rate",
    "sweep",
    "train",
    "AttnBiasError",
    "InfeasibleError",
    "Check",
    "CheckTable",
    "check_assumption1",
    "check_assumption2",
]
__all__ += _paper.__all__
