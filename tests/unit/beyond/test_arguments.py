"""Numbers of any shape, which functions of several rooms take: whatever else comes is refused."""

import math

import numpy as np
import pytest
import torch

from attnbias import make_separation_pair, solve_w_svm
from attnbias._validate import as_numbers
from attnbias.beyond.common.arguments import listed
from attnbias.beyond.depth.data import make_token_pairs
from attnbias.beyond.depth.geometry import expected_gap, layer_potential
from attnbias.beyond.exponents.geometry import slack_law
from attnbias.beyond.exponents.transient import offset_parts
from attnbias.beyond.heads.checks import gap_invariant
from attnbias.beyond.local.checks import trap_level
from attnbias.beyond.multi_token.data import QuadraticHead, ReluHead, TorchHead
from attnbias.data.degenerate import make_degenerate
from attnbias.errors import DtypeError

TOKENS, SVM = make_token_pairs(1, 2.0), solve_w_svm(make_separation_pair())
LAW = slack_law(make_degenerate(-0.1))
NUMBERS = [
    None,
    "x",
    b"x",
    1j,
    {},
    [[1], [1, 2]],
    object(),
    10**5000,
    np.ma.masked_array([1.0], [1]),
]


@pytest.mark.parametrize("junk", NUMBERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "function",
    [
        gap_invariant,
        lambda x: layer_potential(x, 1.0, 1.0),
        lambda x: layer_potential(0.0, x, 1.0),
        lambda x: expected_gap(TOKENS, 1, x),
        lambda x: trap_level(0.3, x, 0.0),
        LAW.offset,
        LAW.exponent,
        lambda x: offset_parts(SVM, x),
        QuadraticHead([1.0], 1.0).value,
        lambda x: ReluHead([[1.0]]).gradient(x),
        TorchHead(lambda o: torch.ones(len(o))).value,
    ],
)
def test_numbers_of_any_shape_are_numbers(function, junk):
    with pytest.raises(DtypeError):
        function(junk)


def test_numbers_of_every_kind_are_taken():
    assert gap_invariant(1) == gap_invariant(np.float32(1)) == gap_invariant(torch.tensor(1.0))
    assert gap_invariant([0, 0]).tolist() == [0.0, 0.0] and math.isnan(gap_invariant(math.nan))
    assert as_numbers("x", np.ones(2, dtype=">f4"), dtype=float).tolist() == [1.0, 1.0]
    gaps = np.arange(3.0)[:, None]
    assert torch.equal(offset_parts(SVM, gaps[::-1])[0], offset_parts(SVM, gaps)[0].flip(0))
    assert TorchHead(lambda o: o.sum(-1)).gradient(gaps[::-1]).tolist() == [[1.0]] * 3
    assert listed("x", np.array([1, 2]), lambda name, value: value) == [1, 2]
    assert listed("x", 3, lambda name, value: value) == [3]
