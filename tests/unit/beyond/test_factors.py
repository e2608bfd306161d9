"""Factors K and Q: the compiled steps against those of torch, and where a run ends."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from tolerances import FLOAT_PATHS

from attnbias import NGD, Dataset
from attnbias.beyond.plane.data import make_plane_pair
from attnbias.beyond.ranks import compiled
from attnbias.beyond.ranks.data import make_free_queries
from attnbias.beyond.ranks.factors import Factors, make_factors, train_factors
from attnbias.dynamics.compiled.loop import digest
from attnbias.dynamics.loop import iterate
from attnbias.losses import as_loss


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("power", [0.0, 0.5])
@pytest.mark.parametrize("how", ["shared", "separate"])
def test_compiled_steps_are_those_of_torch(how, power, loss):
    data, (K0, Q0) = make_free_queries(3, 4, 5), make_factors(5, 2, scale=3.0)
    record = [0, 1, 7, 30]
    options = {"loss": loss, "normalise": how, "decay": power}
    run = train_factors(data, K0, Q0, 0.1, 30, record=record, **options)
    rule = NGD(0.1, normalise=how, decay=(power, power))
    plain = iterate(Factors(data, loss, K0, Q0), rule, 30, record=record)
    assert (run.meta["engine"], plain.meta["engine"]) == ("compiled", "torch")
    assert run.series.keys() == plain.series.keys()
    for name, values in plain.series.items():
        np.testing.assert_allclose(run.series[name], values, FLOAT_PATHS, FLOAT_PATHS)
    np.testing.assert_allclose(run.W, plain.W, FLOAT_PATHS, FLOAT_PATHS)
    few = train_factors(data, K0, Q0, 0.1, 30, record=[30], **options)  # more steps at once
    np.testing.assert_array_equal(few.W[-1], run.W[-1])


def test_the_least_softmax_on_the_way_counts():
    """From a start on the wrong token, with records far behind it."""
    data, (K0, Q0) = make_free_queries(3, 4, 5), make_factors(5, 5)
    start = train_factors(data, K0, Q0, 0.1, 400, loss="logistic", record=[400]).W[-1]
    U, s, Vh = torch.linalg.svd(-50 * start)
    K, Q = U * s.sqrt(), Vh.T * s.sqrt()
    run = train_factors(data, K, Q, 0.5, 40, loss="logistic", record=[30, 40])
    plain = iterate(
        Factors(data, "logistic", K, Q), NGD(0.5, normalise="shared"), 40, record=range(41)
    )
    least = plain.log_least_opt_score
    assert least[-1] < -700  # below the smallest float
    np.testing.assert_allclose(run.log_least_opt_score, least[[30, 40]], FLOAT_PATHS)


def test_steps_are_kept_under_the_digest_of_their_sources():
    own = hashlib.sha256(Path(compiled.__file__).read_bytes()).hexdigest()
    assert [cell.cell_contents for cell in compiled.walk.py_func.__closure__] == [digest() + own]


def test_with_a_loss_of_ones_own_factors_are_trained_in_torch():
    own, start = dataclasses.replace(as_loss("logistic"), name="own"), make_factors(2, 2)
    run, other = (
        train_factors(make_plane_pair(), *start, 0.1, 20, loss=loss) for loss in (own, "logistic")
    )
    assert (run.meta["engine"], other.meta["engine"]) == ("torch", "compiled")
    np.testing.assert_allclose(run.W, other.W, FLOAT_PATHS, FLOAT_PATHS)


def test_no_gradient_and_steps_beyond_floats_end_a_run():
    eye = torch.eye(3).double()
    data = Dataset(eye[None, :2], [1], u=eye[0])
    assert train_factors(data, eye[:, 2:], 0 * eye[:, 2:], 0.1, 5).status == "zero gradient"
    run = iterate(
        Factors(make_plane_pair(), "logistic", *make_factors(2, 2)),
        NGD(1e141, normalise="shared"),
        5,
        engine=compiled.Walk,
    )
    assert run.status == "diverged" and run.step.tolist() == [0]
