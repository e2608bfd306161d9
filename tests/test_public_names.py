"""The public names exist, are documented, and the overview leads to them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import attnbias
from attnbias import experiments

API_PAGE = Path(__file__).parent.parent / "book" / "api.md"
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
    "check_assumption1",
    "check_assumption2",
    "check_condition1",
    "check_condition2",
    *(f"check_lemma{k}" for k in range(1, 14)),
    *(f"check_theorem{k}" for k in range(1, 11)),
    "diagnose",
    "InfeasibleError",
]


def test_the_contract_is_kept():
    assert set(CONTRACT) <= set(attnbias.__all__)


def test_all_is_sorted_out():
    assert len(set(attnbias.__all__)) == len(attnbias.__all__)
    for name in attnbias.__all__:
        assert hasattr(attnbias, name)


@pytest.mark.parametrize("name", attnbias.__all__)
def test_each_public_name_has_a_docstring(name):
    text = inspect.getdoc(getattr(attnbias, name)) or ""
    assert len(text) > 20, f"{name} has no docstring"
    if inspect.isfunction(getattr(attnbias, name)):
        assert "Parameters" in text or not inspect.signature(getattr(attnbias, name)).parameters
        assert "Examples" in text


def test_the_overview_leads_to_every_page_of_the_reference():
    overview = API_PAGE.read_text()
    pages = sorted((API_PAGE.parent / "reference").glob("*.md"))
    assert pages
    for page in pages:
        label = re.match(r"\((.+)\)=", page.read_text()).group(1)
        assert f"{{ref}}`{label}`" in overview, f"{page.name} is missing in the overview"


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


def test_experiments_are_listed():
    assert {"fig2", "fig9"} <= set(experiments.list())
