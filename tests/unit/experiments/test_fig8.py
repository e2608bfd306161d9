"""Figure 8: the run from a bad start, its claims, and what is rebuilt from its traces."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from judged import altered, fail, judged, require_sources, verdicts
from tolerances import CLOSED_FORM, FORMS

from attnbias import GD, NGD, experiments, make_bad_start, make_example1, train
from attnbias.beyond.prompt.paths import query_images, sequence_scores
from attnbias.errors import ShapeError
from attnbias.experiments import fig8
from attnbias.model import attention_map


@pytest.fixture(scope="module")
def result():
    return experiments.run("fig8")


def test_every_claim_of_the_text_holds(result):
    require_sources(result.claims, 12)
    assert result.claims.all_hold
    assert sum(check.provenance == "a" for check in result.claims) == 8


def test_steps_until_one_half(result):
    """GD needs 7 steps from R = 4 but 226 from R = 10; NGD about five a unit of R."""
    assert result.measures["scale"] == [0.1, 1, 2, 4, 6, 8, 10]
    assert result.measures["GD, steps to one half"] == [1, 2, 3, 7, 18, 60, 226]
    assert result.measures["NGD, steps to one half"] == [1, 6, 11, 21, 31, 41, 51]


def test_the_start_has_the_gaps_of_its_closed_form(result):
    for scale in result.measures["scale"]:
        for rule in fig8.rules():
            gaps = result.traces[fig8.scale_label(rule, scale)][0].gaps[0]
            expected = np.array([-scale, 1.44 * scale]) / math.sqrt(2)
            assert np.allclose(gaps, expected, rtol=CLOSED_FORM)


def test_counted_steps_are_those_of_a_plain_loop(result):
    """A float64 loop written out, which is exact this long before saturation."""
    data, W0 = make_bad_start(6.0)
    X, y, u, W = data.X.numpy(), data.y.numpy(), data.u.numpy(), W0.numpy().copy()
    step = 0
    while True:
        gradient, softmax = np.zeros((2, 2)), []
        for i in range(2):
            logits = X[i] @ W @ X[i, 0]
            s = np.exp(logits) / np.exp(logits).sum()
            softmax.append(s[0])
            slope = y[i] * X[i].T @ (s * (X[i] @ u) - s * (s @ X[i] @ u))
            gradient -= np.exp(-y[i] * s @ X[i] @ u) * np.outer(slope, X[i, 0]) / 2
        if softmax[0] > 0.5:
            break
        W -= gradient
        step += 1
    assert step == result.measures["GD, steps to one half"][result.measures["scale"].index(6.0)]


def held(value):
    return lambda run: value + 0.0 * run.step


@pytest.mark.parametrize(("label", "name", "change", "start"), [
    ("GD, R = 2", "gaps", lambda run: -run.gaps, "W_0 violates"),
    ("GD, R = 2", "gaps", lambda run: -run.gaps, "its optimal token has less than half"),
    ("GD, R = 2", "gaps", lambda run: -run.gaps, "sequence 2 behaves the opposite way"),
    ("GD, R = 8", "gaps", lambda run: run.gaps / 2, "scaled up, W_0 saturates"),
    ("GD, R = 10", "log_grad_norm", held(0.0), "a stationary direction"),
    ("GD, R = 1", "W_alignment_error", held(0.02), "GD converges"),
    ("GD, R = 8", "W_alignment_error", held(0.2), "from every start"),
    ("GD, R = 8", "gaps", lambda run: np.minimum(run.gaps, 0), "GD's attention ends"),
    ("GD, R = 4", "log_loss_gap", held(0.0), "GD minimises"),
    ("NGD, R = 4", "W_alignment_error", held(0.02), "NGD converges"),
])  # fmt: skip
def test_one_wrong_run_flips_its_claim(result, label, name, change, start):
    wrong = altered(result.traces[label], **{name: change})
    assert fail(judged(fig8, result, {label: wrong}), start)


def test_growth_of_another_kind_is_refused(result):
    first, second = (f"{rule}, steps to one half" for rule in ("GD", "NGD"))
    exchanged = {first: result.measures[second], second: result.measures[first]}
    table = judged(fig8, result, measures=exchanged)
    assert fail(table, "GD's steps until", "NGD's grow as R / (2 eta)")


@pytest.mark.filterwarnings("error")
def test_a_start_that_is_not_left_within_the_run_is_said_so():
    result = experiments.run("fig8", scales=[2, 4, 20], steps=1000)
    assert result.measures["GD, steps to one half"][-1] == math.inf
    assert verdicts(result.claims, "GD's steps until") == {"not applicable"}
    assert verdicts(result.claims, "GD's attention ends") == {"fails"}
    assert verdicts(result.claims, "GD converges") == {"not applicable"}


# What is rebuilt from a trace


def test_sequence_scores_are_the_attention_at_the_optimal_tokens():
    data = make_example1(n=4, T=3, d=20, seed=2)
    trace = train(data, NGD(0.1), 30, record=[0, 30])
    scores = sequence_scores(data, trace)
    last = attention_map(data.X, trace.W, data.lengths)
    opt = torch.as_tensor((data.X @ data.u * data.y[:, None]).argmax(dim=1))
    assert np.allclose(scores[0], 1 / 3, rtol=CLOSED_FORM)
    assert np.allclose(scores[-1], last[torch.arange(4), opt].numpy(), rtol=FORMS)


@pytest.mark.parametrize("rule", [GD(1.0), NGD(0.1)], ids=str)
def test_images_of_the_queries_are_those_of_the_last_iterate(rule):
    for data, W0 in ((make_bad_start(4.0)), (make_example1(n=4, T=3, d=20), None)):
        trace = train(data, rule, 200, W0=W0, record=[0, 10, 200])
        images = query_images(data, trace, W0)
        first = torch.zeros(data.d, data.d).double() if W0 is None else W0
        for W, image in ((first, images[0]), (trace.W, images[-1])):
            expected = (data.X[:, 0] @ W.T).numpy()
            assert np.allclose(image, expected, rtol=0, atol=FORMS * float(trace.W_norm[-1]))


def test_dependent_rows_leave_the_images_defined():
    """Two equal sequences: a singular Gram matrix, one motion."""
    data, W0 = make_bad_start(2.0)
    twice = type(data)(torch.cat([data.X, data.X]), torch.cat([data.y, data.y]), data.u)
    trace = train(twice, NGD(0.1), 50, W0=W0, record=[0, 50])
    expected = (twice.X[:, 0] @ trace.W.T).numpy()
    assert np.allclose(query_images(twice, trace, W0)[-1], expected, rtol=0, atol=1e-9)


def test_traces_of_other_data_or_without_gaps_are_refused():
    data, W0 = make_bad_start(2.0)
    trace = train(data, NGD(0.1), 10, W0=W0)
    other, bare = make_example1(n=4, T=3, d=20), dataclasses.replace(trace, gaps=None)
    for call in (lambda: sequence_scores(other, trace), lambda: query_images(data, bare, W0)):
        with pytest.raises(ShapeError, match="trace"):
            call()
