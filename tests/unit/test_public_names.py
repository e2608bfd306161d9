"""The public names are those of the contract."""

import inspect

import attnbias
from attnbias import experiments

CONTRACT = [
    "Dataset",
    "make_example1",
    "make_separation_pair",
    "make_dm",
    "make_bad_start",
    "load_binary_mnist",
    "token_scores",
    "optimal_tokens",
    "solve_w_svm",
    "solve_u_svm",
    "SelfAttention",
    "GD",
    "NGD",
    "Polyak",
    "train",
    "Trace",
    "fit_rate",
    "attention_loss",
    "check_assumption1",
    "check_assumption2",
    "check_condition1",
    "check_condition2",
    *(f"check_lemma{k}" for k in range(1, 14)),
    *(f"check_theorem{k}" for k in range(1, 11)),
    "diagnose",
    "InfeasibleError",
]
# What functions of the contract take or return, and the two doors to many runs and many rates.
BESIDE = [
    "AttnBiasError",
    "AttentionGradient",
    "attention_gradient",
    "Check",
    "CheckTable",
    "Diagnosis",
    "Loss",
    "RateFit",
    "Rule",
    "SVMSolution",
    "check_order",
    "sweep",
]
MOVED_DOWN = [
    "check_rate",
    "check_fast_rate",
    "check_rate_lower_bound",
    "check_assumption1_feasible",
    "check_decoder_direction",
    "check_degenerate_rate",
    "check_gd_lower_bound",
    "check_gradient_bounds",
    "check_loss_without_decay",
    "check_ngd_separation",
    "check_polyak_sandwich",
    "check_sharper_theorem4",
    "check_unequal_scores",
    "check_lock",
]
RESTATED = {
    "lemma8": "lemma1",
    "theorem5": "theorem1",
    "theorem8": "theorem2",
    "theorem9": "theorem3",
    "theorem10": "theorem4",
}


def test_the_contract_is_kept():
    assert sorted(attnbias.__all__) == sorted({*CONTRACT, *BESIDE})
    assert {"fig2", "fig9"} <= set(experiments.list())


def test_checks_of_our_own_statements_stand_one_floor_down_and_restatements_are_names():
    for name in MOVED_DOWN:
        assert name in attnbias.theorems.__all__ and not hasattr(attnbias, name)
    for again, first in RESTATED.items():
        assert getattr(attnbias, f"check_{again}") is getattr(attnbias, f"check_{first}")


def test_train_signature_is_the_contract():
    parameters = inspect.signature(attnbias.train).parameters
    wanted = [
        "data",
        "rule",
        "steps",
        "loss",
        "W0",
        "u0",
        "train_u",
        "coordinates",
        "record",
        "svm",
        "progress",
    ]
    assert list(parameters)[: len(wanted)] == wanted
    assert parameters["loss"].kind is inspect.Parameter.KEYWORD_ONLY
