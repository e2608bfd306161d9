"""Figure 8's instance: what the start violates, and how long two rules take to mend it."""

import math

import numpy as np
import pytest
from tolerances import CLOSED_FORM

from attnbias import GD, NGD, optimal_tokens, solve_w_svm, token_scores, train
from attnbias.data import make_bad_start
from attnbias.errors import DtypeError, NonFiniteError, RangeError
from attnbias.geometry.tokens import gap_rows


@pytest.mark.parametrize("scale", [0.1, 1.0, 8.0, 1e10])
def test_start_violates_the_first_constraint_only(scale):
    data, W0 = make_bad_start(scale)
    assert (data.n, data.T, data.d) == (2, 2, 2)
    assert data.y.tolist() == [1, -1]
    assert float(W0.norm()) == pytest.approx(scale, rel=CLOSED_FORM)
    gaps = gap_rows(data).gaps(W0)
    assert gaps.tolist() == pytest.approx([-scale / 2**0.5, 1.44 * scale / 2**0.5], rel=CLOSED_FORM)


def test_first_token_is_query_and_optimal():
    data, _ = make_bad_start()
    assert optimal_tokens(data).tolist() == [0, 0]
    assert token_scores(data).flatten().tolist() == pytest.approx([1, -1, 0.8, -1.2])
    assert float(solve_w_svm(data).margin) > 0.9  # feasible, so that the start can be mended


@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_scale_is_a_factor(factor):
    assert np.array_equal(make_bad_start(factor)[1], factor * make_bad_start()[1])


def mended(rule, scale):
    """First step at which sequence 1 looks at its optimal token."""
    data, W0 = make_bad_start(scale)
    trace = train(data, rule, 100, W0=W0, record=range(101))
    return int(trace.step[(trace.gaps[:, 0] > 0).argmax()])


def test_steps_until_the_right_token_has_half_the_attention():
    """GD waits exponentially long in the scale, NGD linearly."""
    scales = (0.1, 1, 2, 4, 8)
    assert [mended(GD(1.0), scale) for scale in scales] == [1, 2, 3, 7, 60]
    assert [mended(NGD(0.1), scale) for scale in scales] == [1, 6, 11, 21, 41]


def test_both_rules_end_right():
    data, W0 = make_bad_start(8.0)
    for rule in (GD(1.0), NGD(0.1)):
        trace = train(data, rule, 3000, W0=W0)
        assert (trace.gaps[-1] > 0).all()
        assert trace.W_alignment_error[-1] < trace.W_alignment_error[0] / 2


@pytest.mark.parametrize(
    ("scale", "error"),
    [(-1.0, RangeError), (math.inf, RangeError), (math.nan, NonFiniteError), ("1", DtypeError)],
)
def test_refusals(scale, error):
    with pytest.raises(error):
        make_bad_start(scale)
