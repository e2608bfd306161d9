"""The public names are those of the contract."""

import inspect
import re
import warnings

import pytest
from packaging.version import Version

import attnbias
from attnbias import errors, experiments, nets
from attnbias.errors import AttnBiasDeprecationWarning

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


def told_of(look, times: int = 2) -> list[warnings.WarningMessage]:
    """What is said when a name is looked up so many times."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            look()
    return [each for each in caught if each.category is AttnBiasDeprecationWarning]


LEAVING = {"nets.load_encoder": lambda: nets.load_encoder}


@pytest.mark.parametrize("name", LEAVING)
def test_a_name_that_goes_does_as_before_and_says_once_when_and_what_takes_its_place(
    name, monkeypatch
):
    monkeypatch.setattr(errors, "_said", set())
    (said,) = told_of(LEAVING[name])
    full, goes, place = re.fullmatch(
        r"(\S+) goes in attnbias (\S+): use (\S+?)(?:\(.*)?", str(said.message)
    ).groups()
    assert full == f"attnbias.{name}" and said.filename == __file__
    home, _, last = place.rpartition(".")
    assert callable(LEAVING[name]()) and last in eval(home).__all__
    assert name.rpartition(".")[2] not in eval(full.rpartition(".")[0]).__all__
    assert Version(goes) > Version(attnbias.__version__)  # else it is to be taken out


def test_an_import_of_it_warns_too_and_a_forgetful_one_would_be_noticed(monkeypatch):
    monkeypatch.setattr(errors, "_said", set())
    (said,) = told_of(lambda: exec("from attnbias.nets import load_encoder", {}))
    assert said.filename == "<string>"
    monkeypatch.setattr(errors, "_said", type("", (set,), {"add": lambda *_: None})())
    assert len(told_of(LEAVING["nets.load_encoder"], 3)) == 3


def test_what_neither_stays_nor_goes_is_missing():
    with pytest.raises(AttributeError, match="module 'attnbias.nets' has no attribute 'load_all'"):
        _ = nets.load_all
    assert told_of(lambda: nets.fit) == []
