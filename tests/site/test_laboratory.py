"""The laboratory's engine beside `attnbias.train`, and its page as a reader drives it.

On a machine without Chromium these tests are skipped.
"""

import json

import numpy as np
import pytest
from laboratory_setups import SETUPS, rule_of, setup_of

from attnbias import NGD, Dataset, solve_w_svm, token_scores, train
from attnbias.data import make_score_lock
from attnbias.dynamics.loop import record_steps
from attnbias.theorems import check_lock
from tools.laboratory import FOLDER, MODULES

STEPS = record_steps(40, 100_000)
# Logits of size 1e4 to 1e5 are rounded by 1e-12 to 1e-11; the part of W across W_mm, of size 1,
# has that error, and 1 - cosine twice its share.
SAME = 1e-9
TINY = 1e-20  # 1 - cosine below this is rounding

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def engine(browser, tmp_path_factory):
    """Calls functions of the engine, in the browser."""
    page = tmp_path_factory.mktemp("engine") / "empty.html"
    page.write_text("<!doctype html><title>engine</title>", encoding="utf8")
    browser.open(page)
    for name in MODULES:
        if name.startswith("run/"):
            browser.tab.add_script_tag(path=FOLDER / f"{name}.js")

    def call(name, *arguments):
        text = ", ".join(map(json.dumps, arguments))
        return browser.evaluate(f"Laboratory.{name}({text})")

    return call


def log_attention(gaps, opt, lengths):
    """(R, tokens of all sequences) logs of the softmax, from the logit gaps in their order."""
    columns, at = [], 0
    for own, length in zip(opt, lengths, strict=True):
        logits = np.insert(-gaps[:, at : at + length - 1], own, 0.0, axis=1)
        columns.append(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
        at += length - 1
    return np.concatenate(columns, axis=1)


def differences(name, found):
    """The largest differences of a run in the browser from that of the library."""
    data, rule, others = SETUPS[name]
    trace = train(data, rule_of(*rule)[0], STEPS[-1], record=STEPS, **others)
    records, norm, error = found["records"], trace.W_norm, trace.W_alignment_error
    assert found["status"] == trace.status
    assert [each["step"] for each in records] == trace.step.tolist()
    # W = 0 has no cosine: None there, NaN here
    own = {key: np.array([each[key] for each in records], float) for key in ("norm", "error")}
    assert (np.isnan(own["error"]) == np.isnan(error)).all()
    gaps = np.array([each["gaps"] for each in records])
    longest = float(solve_w_svm(data).rows.gram().diagonal().max()) ** 0.5
    attention = [np.concatenate(each["logAttention"]) for each in records]
    wanted = log_attention(trace.gaps, trace.opt.tolist(), data.lengths.tolist())
    some = norm > 0
    return {
        "W": abs(trace.W.numpy().ravel() - records[-1]["W"]).max() / norm[-1],
        "norm": (abs(own["norm"] - norm)[some] / norm[some]).max(),
        "gaps": (abs(gaps - trace.gaps).max(axis=1)[some] / (longest * norm[some])).max(),
        "attention": (abs(attention - wanted) / np.maximum(abs(wanted), 1)).max(),
        "1 - cosine": (abs(own["error"] - error) / np.maximum(error, TINY))[some].max(),
    }


@pytest.mark.parametrize("name", SETUPS)
def test_the_engine_agrees_with_train_at_every_record(engine, name):
    found = differences(name, engine("train", setup_of(name), STEPS.tolist()))
    assert max(found.values()) < SAME, found


def test_another_step_size_would_be_noticed(engine):
    setup = setup_of("clash, NGD") | {"step": 0.1 * (1 + 1e-7)}
    found = differences("clash, NGD", engine("train", setup, STEPS.tolist()))
    assert found["W"] > SAME


@pytest.mark.parametrize("name", SETUPS)
def test_its_svm_is_that_of_the_library(engine, name):
    data = SETUPS[name][0]
    svm, found = solve_w_svm(data), engine("prepare", setup_of(name))["svm"]
    assert found["feasible"]
    own = np.array(found["weights"])
    assert abs(own - svm.weights.numpy().ravel()).max() < 1e-12 * svm.norm  # well-conditioned rows
    rows, dual = svm.rows.gram(), np.array(found["dual"])
    assert dual.min() >= 0  # with dependent rows dual weights differ, their sum of rows does not
    assert abs(rows.numpy() @ dual - svm.margins.numpy()).max() < 1e-11
    assert found["active"] == (svm.margins < 1 + 1e-9).tolist()


def test_a_constraint_may_touch_without_support(engine):
    found = engine("prepare", setup_of("degenerate triple, NGD"))["svm"]
    assert found["active"] == [True, True] and found["support"] == [True, False]


@pytest.mark.parametrize("rows", [[[1, 0], [-1, 0]], [[1, 0], [0, 0]], [[1, 1], [-1, 1], [0, -1]]])
def test_rows_without_a_solution_are_refused(engine, rows):
    assert engine("svm", rows) == {"feasible": False}


@pytest.mark.parametrize("size", [1.0, 1e3, 1e-150])
@pytest.mark.parametrize("e", [1e-3, 1e-6, 1e-9, 1e-12])
def test_rows_that_all_but_cancel_have_a_w(engine, e, size):
    """(1, -1) and (e - 1, 1) have the margin 1 under (2/e, 2/e - 1), and no shorter w."""
    rows = np.array([[1, -1], [e - 1, 1], [3, -1]])
    found = engine("svm", (size * rows).tolist())
    wanted = np.array([2 / e, 2 / e - 1]) / size
    # an entry of a row is rounded by 1e-16, and e is what is left of it
    assert found["feasible"] and abs(found["weights"] / wanted - 1).max() < 1e-12 + 1e-15 / e
    assert found["active"] == found["support"] == [True, True, False]


@pytest.mark.parametrize("e", [1e-5, 1e-8])
def test_three_rows_that_all_but_cancel_have_a_w(engine, e):
    """At angles of 120 degrees, each raised by e out of their plane: w stands across it."""
    angles = 2 * np.pi * np.arange(3) / 3
    rows = np.stack([np.cos(angles), np.sin(angles), np.full(3, e)], axis=1)
    found = engine("svm", rows.tolist())
    assert found["feasible"] and found["norm"] == pytest.approx(1 / e, rel=1e-14 / e)
    assert engine("svm", (rows * [1, 1, 0]).tolist()) == {"feasible": False}


def test_a_row_of_rounding_decides_nothing(engine):
    assert engine("svm", [[1, -1], [1e-16 - 1, 1]]) == {"feasible": False}


def test_tied_optimal_tokens_and_equal_scores(engine):
    plain = {"X": [[[1, 0], [0, 1]]], "y": [1], "u": [1.0, 1.0], "rule": "GD", "step": 1}
    assert engine("prepare", plain)["tied"]
    # 0.1 + 0.2 is not 0.3 in floats; as scores of two tokens they are one number
    nearly = plain | {"X": [[[1, 0], [0.1, 0.2], [0.3, 0]]]}
    scores = engine("prepare", nearly)["scores"][0]
    assert scores[1] == scores[2] and scores == token_scores(data_of_setup(nearly))[0].tolist()


def data_of_setup(setup):
    return Dataset(setup["X"], setup["y"], setup["u"])


@pytest.mark.parametrize("gap", [0.01, 0.04, 0.1])
def test_a_lock_is_proved_where_the_library_proves_it(engine, gap):
    data, steps = make_score_lock(gap), [0, 100, 1000]
    setup = {"X": data.X.tolist(), "y": [1], "u": data.u.tolist(), "rule": "NGD", "step": 0.1}
    records = engine("train", setup, steps)["records"]
    table = check_lock(data, trace := train(data, NGD(0.1), 1000, record=steps))
    (ending,) = engine("endings", setup, engine("prepare", setup), records)
    assert ending["token"] == int(trace.selected[0])
    assert (ending["locked"] == "proved") == (table["inside"].holds is True) == (gap < 0.1)


def test_what_ends_on_wrong_tokens_is_seen(engine):
    endings = {}
    for name in ("clash, NGD", "Figure 8, NGD"):
        setup = setup_of(name)
        records = engine("train", setup, STEPS.tolist())["records"]
        endings[name] = engine("endings", setup, engine("prepare", setup), records)
    assert [each["locked"] for each in endings["clash, NGD"]] == ["seen", ""]
    assert all(each["optimal"] for each in endings["Figure 8, NGD"])
