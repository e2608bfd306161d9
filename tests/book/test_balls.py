"""Inequalities of the ledger in ball arithmetic: closed forms, and a margin that is too large."""

import pytest
import torch

from attnbias import make_example1, make_separation_pair, solve_w_svm, train
from attnbias.geometry.exact import Balls
from attnbias.rules import NGD
from book.claims.balls import gradient_bounds

pytest.importorskip("flint")


def test_one_row_by_hand():
    """|grad L| = Xi p exactly, and p / (phi (L - L*)) = S / (1 - e^-S) with S = 1 - phi."""
    pair = make_separation_pair()
    svm = solve_w_svm(pair)
    shorter, sandwich = gradient_bounds(pair, svm, 2 * svm.weights)
    S = 1 - torch.sigmoid(torch.tensor(2.0).double())
    assert -1e-70 < shorter.value <= 0 and not shorter.holds  # an equality is not decided
    assert sandwich.value == pytest.approx(float(S / -torch.expm1(-S)) - 1, rel=1e-14)
    assert sandwich.holds


def test_room_below_rounding_is_proved_and_a_margin_too_large_by_1e_12_is_refused(monkeypatch):
    data = make_example1(n=3, T=3, d=12, seed=0)
    svm = solve_w_svm(data)
    run = train(data, NGD(0.5 * svm.norm), 200, svm=svm)
    assert all(0 < check.value < 1e-13 for check in gradient_bounds(data, svm, run.W))
    proof = Balls.proof

    def larger(self):
        found = proof(self)
        found.high *= 1 + 1e-12
        return found

    monkeypatch.setattr(Balls, "proof", larger)
    assert not any(check.holds for check in gradient_bounds(data, svm, run.W))
