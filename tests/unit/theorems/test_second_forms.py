"""The bounds of the checks beside their formulas, written out from the statements a second time.

On one run whose letters are all different, from a start against W_mm, recorded at every step.
"""

import functools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from instances import dyadic_data, random_start
from lemma_instances import at, start_with_gaps
from scipy.special import lambertw

from attnbias import GD, NGD, Polyak, make_separation_pair, solve_w_svm, train
from attnbias.data import make_degenerate
from attnbias.geometry.constants import token_constants
from attnbias.theorems import (
    check_degenerate_rate,
    check_fast_rate,
    check_gd_lower_bound,
    check_gradient_bounds,
    check_lemma1,
    check_lemma4,
    check_lemma5,
    check_lemma7,
    check_ngd_separation,
    check_polyak_sandwich,
    check_rate,
    check_theorem1,
    check_theorem6,
    check_theorem7,
)
from attnbias.theorems.run import EPS, TraceView
from attnbias.theorems.w import (
    lemma3,
)

# A few sums of some hundred numbers, and |P|, a root of a difference of two squares.
SAME = 1e-8


@functools.cache
def letters(rule, steps: int = 300, against: float = 2.0):
    """A run and the letters of the statements, each from its definition."""
    data = dyadic_data(2, 3, 8, seed=1, equal_scores=True)
    svm = solve_w_svm(data)
    unit = svm.weights / svm.norm
    W0 = random_start(data, 0.05, 1) - against * unit
    trace = train(data, rule, steps, W0=W0, svm=svm, record=range(steps + 1))
    constants = token_constants(data, svm=svm)
    scores = data.y[:, None] * (data.X @ data.u)
    along = trace.gaps @ svm.dual.numpy() / svm.norm
    return SimpleNamespace(
        data=data,
        svm=svm,
        trace=trace,
        n=2,
        T=3,
        rows=4,
        B=float(data.X.norm(dim=2).max()),
        Xi=1 / svm.norm,
        Upsilon=constants.Upsilon,
        upsilon=constants.upsilon,
        Delta=float((scores.amax(1) - scores.amin(1)).max()),
        kappa=constants.Upsilon / constants.upsilon,
        eta=rule_size(rule),
        t=trace.step,
        S=trace.path_length,
        sbar=trace.longest_step,
        phi=trace.least_opt_score,
        c=along,
        W=trace.W_norm,
        P=np.sqrt(trace.W_norm**2 - along**2),
        turn=int((along >= 0).argmax()),
        error=trace.W_alignment_error,
    )


def rule_size(rule) -> float:
    return math.exp(rule.log_scale)


def m1(L, path, phi, sbar):
    """(2 B^4 / Xi^2) (|P_t0|^2 + (2 Lambda / Xi + sbar) S) / S^2."""
    Lambda = lambertw(L.rows * L.kappa / (math.e * phi**2)).real
    return 2 * L.B**4 / L.Xi**2 * (L.P[L.turn] ** 2 + (2 * Lambda / L.Xi + sbar) * path) / path**2


def assert_is(table, key, L, values, bounds, first: int, room=0.0) -> None:
    """Both sides of a statement from the record `first` on, and what rounding is allowed for.

    An allowance that is too small refuses true runs, one that is too large takes false ones.
    """
    check = table[key]
    assert check.step.tolist() == L.t[first:].tolist() and check.verdict.startswith("holds")
    np.testing.assert_allclose(check.values, values[first:], rtol=SAME, atol=1e-12)
    np.testing.assert_allclose(check.bounds, np.broadcast_to(bounds, L.t.shape)[first:], rtol=SAME)
    worst = (check.values == check.value) & (check.bounds == check.bound)
    rooms = np.broadcast_to(room, L.t.shape)[first:][worst]
    assert np.isclose(check.rounding, rooms, rtol=1e-6, atol=0).any(), (check.rounding, rooms)


def cosine_room(L):
    """64 roundings of the logs of weights, and 16 of a norm that cancels to Xi of 2 B^2."""
    log_p = weights(L)[1]
    digits = 64 * EPS * (1 + np.abs(log_p.max(axis=1)) + np.abs(L.trace.gaps).min(axis=1))
    return digits + 16 * EPS * (2 * L.B**2 / L.Xi) ** 2 + max(L.svm.duality_gap, 0)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):  # before the turn, where nothing is compared
        yield


def test_m1():
    L = letters(NGD(0.1), 1000)
    table, turn = check_rate(L.data, L.trace, svm=L.svm), L.turn
    assert 5 < turn < 100 and not table[4].vacuous
    start = table["start"]
    assert start.step.tolist() == L.t[:turn].tolist()
    assert start.bound == pytest.approx(2 * L.B**2 * L.W[0] / L.Xi, rel=SAME)
    assert start.rounding == pytest.approx(1e-9 * start.bound, abs=0)
    assert start.value == pytest.approx(0.1 * (turn - 1), rel=SAME) and f"{turn}" in start.reason
    grown = L.c[0] + L.Xi / (2 * L.B**2) * L.S
    assert_is(table, "growth", L, L.c, grown, 1, 1e-9 * (abs(L.c[0]) + L.S))
    Lambda = lambertw(L.rows * L.kappa / (math.e * L.phi**2)).real
    moved = np.diff(L.trace.gaps, axis=0, append=np.nan) / 0.1
    # <P_t, step>: (|W_t + eta D|^2 - |W_t|^2 - eta^2) / (2 eta) less what is along W_mm
    outward = (np.diff(L.W**2, append=np.nan) - 0.01) / 0.2
    outward -= L.c * (moved @ L.svm.dual.numpy()) / L.svm.norm
    check = table["outward"]
    np.testing.assert_allclose(check.values[:-1], outward[turn:-1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(check.bounds, (Lambda / L.Xi)[turn:], rtol=SAME)
    S = L.S - L.S[turn]
    across = L.P[turn] ** 2 + (2 * Lambda / L.Xi + L.sbar) * S
    assert_is(table, "across", L, L.P**2, across, turn + 1, 1e-9 * across)
    assert_is(table, "rate", L, L.error, m1(L, S, L.phi, L.sbar), turn + 1)


def test_theorem_1():
    L = letters(NGD(0.1), against=0.1)
    table, log_t = check_theorem1(L.data, L.trace, svm=L.svm), np.log(L.t)
    phi, B, Xi, eta = min(L.phi[-1], 0.25), L.B, L.Xi, 0.1
    t_0 = max(1.0, 4 * B**2 * L.W[0] / (eta * Xi))
    assert 1 < t_0 < 200
    D = 10 * L.n * L.kappa * L.T * B**2 / (Xi * phi**2)
    first = math.ceil(t_0)
    start = 2 * (L.W[0] + eta * t_0) + 2 * eta * B**2 / Xi * (1 + log_t)
    preference = 20 * B**2 / Xi**2 * (np.log(D) + log_t) * (1 + log_t)
    bound = 4 * B**2 / (eta * Xi * L.t) * (start + preference)
    assert_is(table, "rate", L, L.error, bound, first)
    epsilon = 20 * B**2 / (eta * Xi**2) * np.log(D * L.t) / L.t
    lost = np.cumsum((eta**2 / (2 * L.W) + eta * epsilon)[first:-1])
    telescoped = L.W - L.W[first] - np.r_[np.zeros(first + 1), lost]
    assert_is(table, "telescoped", L, L.c - L.c[first], telescoped, first + 1, 1e-9 * L.W)


def test_theorem_6():
    L = letters(GD(0.7), against=0.3)
    table, turn = check_theorem6(L.data, L.trace, svm=L.svm), L.turn
    assert turn > 0
    longest = 0.7 * L.B**2 * L.Upsilon / 2
    assert_is(table, "step", L, L.sbar, longest, 1, 1e-9 * longest)

    def height(start):
        speed = 0.7 * L.Xi**2 * L.upsilon * L.phi**2 / L.n
        return np.log(np.exp(L.Xi * L.c[start]) + speed * (L.t - start))

    room = 1e-9 * (1 + np.abs(L.Xi * L.c))
    assert_is(table, "height", L, L.Xi * L.c, height(0), 1, room)
    path = height(turn) / L.Xi - L.c[turn]
    assert_is(table, "rate", L, L.error, m1(L, path, L.phi, L.sbar), turn + 1)
    log_t = float(table[2].reason.split("10^")[1].split()[0]) * math.log(10)
    speed = 0.7 * L.Xi**2 * L.upsilon * L.phi[-1] ** 2 / L.n
    bites = (math.log(speed) + log_t) / L.Xi - L.c[turn]  # late, the start's height is nothing
    assert m1(L, bites, L.phi[-1], L.sbar[-1]) == pytest.approx(1, rel=1e-2)  # one decimal
    steps = np.diff(L.S)[turn:]
    R = max(np.maximum(L.P[turn + 1 :], L.P[turn:-1]) + steps / 2)
    assert f"R = {R:.4g}" in table[3].reason
    log_G = math.log(2 * L.B**2 * L.rows / L.n * L.Upsilon) + 2 * L.B**2 * R
    late = math.log(L.Xi * 0.7) + log_G + L.Xi * L.sbar[-1] + np.log(np.maximum(L.t - turn, 1))
    ceiling = np.logaddexp(L.Xi * L.c[turn], late)
    assert_is(table, "ceiling", L, L.Xi * L.c, ceiling, turn + 1, room)
    outside = norm_outside(L)
    path = 2 * L.B**2 / L.Xi * (ceiling / L.Xi - L.c[0])
    slow = (outside / (L.W[0] + path)) ** 2 / 2
    assert outside > 0.1
    assert_is(table, "rate_low", L, L.error, slow, turn + 1, 1e-9 * slow)


def norm_outside(L) -> float:
    """The norm of what W_0 has outside the span of the rows, by least squares."""
    units = torch.eye(L.rows, dtype=torch.float64)
    Z = np.stack([L.svm.rows.combine(unit).numpy().ravel() for unit in units])
    inside = np.linalg.lstsq(Z @ Z.T, L.trace.gaps[0], rcond=None)[0] @ Z
    return math.sqrt(L.W[0] ** 2 - (inside**2).sum())


def test_theorem_7():
    L = letters(Polyak(), 100, against=0.1)
    table, turn = check_theorem7(L.data, L.trace, svm=L.svm), L.turn
    shortest = 1 / (4 * L.B**2 * math.exp(L.Delta))
    longest = 1 / (2 * L.Xi * L.phi)
    taken = np.diff(L.S, append=np.nan)
    taken[-1] = table[0].values[-1]  # of the step that was not taken
    # four roundings of each logarithm and of their constants
    digits = 1e-15 * (4 + np.abs(L.trace.log_loss_gap) + np.abs(L.trace.log_grad_norm))
    assert_is(table, "step_low", L, taken, shortest, 0, taken * digits)
    assert_is(table, "step_high", L, taken, longest, 0, taken * digits)
    assert_is(table, "path", L, L.S, shortest * L.t, 1, 1e-9 * shortest * L.t)
    sandwich = check_polyak_sandwich(L.data, L.trace, svm=L.svm)
    ratio = L.trace.log_grad_norm - L.trace.log_loss_gap
    lower = np.log(L.Xi * weights(L)[0].min(axis=1))
    assert_is(sandwich, "gradient_low", L, ratio, lower, 0, digits)
    steepest = math.log(2 * L.B**2) + L.Delta
    assert_is(sandwich, "gradient_high", L, ratio, steepest, 0, digits)
    path = shortest * (L.t - turn)
    assert_is(table, "rate", L, L.error, m1(L, path, L.phi, longest), turn + 1)
    bites = float(table[3].reason.split("t = ")[1].split()[0]) - turn
    assert m1(L, shortest * bites, L.phi[-1], longest[-1]) == pytest.approx(1, rel=1e-2)


def test_what_a_run_shows_of_m2():
    L = letters(NGD(0.5), 20_000, against=0.5)
    table = check_fast_rate(L.data, L.trace, svm=L.svm)
    assert [check.verdict for check in table[:3]] == ["holds"] * 3
    decade = int(np.flatnonzero(L.S[-1] / 10 >= L.S)[-1])
    before = L.P[(L.S[-1] / 100 < L.S) & (L.t <= decade)].max()
    P = 1.01 * before + 0.1 * 0.5
    room = 1e-9 * L.error + 1e-24
    assert_is(table, "rate", L, L.error, (P / L.c) ** 2 / 2, decade, room)
    path = L.Xi * L.S - 2 * L.B**2 * L.W[0]
    bounds = 2 * L.B**4 * P**2 / path**2
    assert_is(table, "path_rate", L, L.error, bounds, decade, room)


@pytest.mark.parametrize("rule", [GD(0.7), NGD(0.7)], ids=["GD", "NGD"])
def test_the_separation_pair(rule):
    """w_0 = -1.2 and c^2 = 0.3^2 + 0.4^2 + 0.1^2."""
    data, W0 = make_separation_pair(), [[-1.2, 0.3], [0.4, 0.1]]
    trace, c = train(data, rule, 60, W0=W0, record=range(61)), math.sqrt(0.26)
    t, w, error, eta = trace.step, trace.gaps[:, 0], trace.W_alignment_error, 0.7
    L = SimpleNamespace(t=t)
    gd = len(table := check_gd_lower_bound(data, trace)) and table[0].applicable
    if gd:
        phi = 1 / (1 + math.exp(1.2))
        below = np.log(math.exp(-1.2) + eta * phi**2 * math.exp(-phi) * t)
        above = np.log(math.exp(-1.2) + eta * math.exp(eta / 4 - 1) * t)
        room = 1e-9 * (1 + np.abs(w))
        assert_is(table, "gap_low", L, w, below, 1, room)
        assert_is(table, "gap_high", L, w, above, 1, room)
        slow = c**2 / (2 * (above**2 + c**2))
        doubt = 1e-15 * (trace.W_norm[0] ** 2 / (above**2 + c**2)) / 2
        assert_is(table, "rate_low", L, error, slow, 1, 1e-9 * slow + doubt)
        assert f"{w[-1] - math.log(eta * 60):.4g}" in table[1].reason
    else:
        table, line = check_ngd_separation(data, trace), -1.2 + eta * t
        ahead = int((line > 0).argmax())
        below, above = c**2 / (2 * (line**2 + c**2)), c**2 / (2 * line**2)
        room = 1e-24 + 2e-9 * above + 1e-15 * (trace.W_norm[0] / line) ** 2 / 2
        assert_is(table, "rate_low", L, error, below, ahead, room)
        assert_is(table, "rate_high", L, error, above, ahead, room)
        limits = c**2 / (2 * eta**2), error[-1] * 60**2
        assert all(f"{limit:.6g}" in table[3].reason for limit in limits)
    exact = table["closed_form"]
    assert exact.step.tolist() == t.tolist() and exact.values.max() < 1e-12
    assert exact.bounds.min() > 0 and exact.bounds.max() < 1e-8


def test_the_degenerate_triple():
    """1 - cosine between P^2 / (2 (c^2 + P^2)) and P^2 / (2 c^2) at the brackets of both."""
    data, eta = make_degenerate(), 0.7
    trace = train(data, NGD(eta), 60, record=range(61))
    L, reach = SimpleNamespace(t=trace.step), eta * trace.step
    table = check_degenerate_rate(data, trace)
    cosine = 1 - trace.W_alignment_error
    c, P = trace.W_norm * cosine, trace.W_norm * np.sqrt(1 - cosine**2)
    low_P, high_P = np.log(1 + reach / math.sqrt(5)), np.log(1 + reach * math.exp(eta))
    low_c = np.maximum(2 * reach / math.sqrt(5), reach - eta - math.sqrt(5))
    assert_is(table, "across_low", L, P, low_P, 1, 1e-9 * low_P)
    assert_is(table, "across_high", L, P, high_P, 1, 1e-9 * high_P)
    assert_is(table, "along_low", L, c, low_c, 1, 1e-9 * low_c)
    assert_is(table, "along_high", L, c, reach, 1, 1e-9 * reach)
    error, below = trace.W_alignment_error, low_P**2 / (2 * (reach**2 + low_P**2))
    assert_is(table, "rate_low", L, error, below, 1, 1e-9 * below)
    above = high_P**2 / (2 * low_c**2)
    assert_is(table, "rate_high", L, error, above, 1, 1e-9 * above)
    assert f"{P[-1] - math.log(42):.3g}" in table[0].reason
    assert f"{error[-1] * 2 * 42**2 / math.log(42) ** 2:.5g}" in table[4].reason


def test_lemma_1():
    L = letters(NGD(0.5), 500, against=0.5)
    table = check_lemma1(L.data, L.trace, svm=L.svm)
    least = L.trace.gaps.min(axis=1) / L.W
    gaps = L.Xi - 2 * L.B**2 * np.sqrt(2 * L.error)
    room = 64 * EPS * L.B**2 + 1e-9 * L.Xi
    assert_is(table, "gap", L, least, gaps, 0, room)
    near = L.Xi**2 / (32 * L.B**4)
    half = table["half"]
    assert half.step.tolist() == L.t[L.error <= near].tolist()
    assert half.bounds == pytest.approx(L.Xi / 2, rel=SAME)
    assert half.rounding == pytest.approx(room, abs=0)
    t_0 = 4 * L.B**2 * L.W[0] / (0.5 * L.Xi)
    found = table["rate"]
    keep = (L.error <= near) & (L.t >= t_0)
    assert found.step.tolist() == L.t[keep].tolist() and keep.any()
    wrong = np.exp(-L.trace.gaps).reshape(-1, 2, 2).sum(axis=2).max(axis=1)
    np.testing.assert_allclose(found.values, np.log1p(1 / wrong)[keep], rtol=SAME)
    exponent = 0.5 * L.Xi**2 / (8 * L.B**2) * L.t
    bounds = np.logaddexp(0, exponent - math.log(L.T - 1))
    np.testing.assert_allclose(found.bounds, bounds[keep], rtol=SAME)
    assert found.rounding == pytest.approx(1e-9 * (1 + found.value), abs=0)


def weights(L):
    """phi_opt of each row's sequence and log p_k of Eq. 14, (R, N') both, from the gaps."""
    said = np.exp(-L.trace.gaps)
    first = np.repeat(1 / (1 + said.reshape(-1, L.n, L.T - 1).sum(axis=2)), L.T - 1, axis=1)
    scores = (L.data.y[:, None] * (L.data.X @ L.data.u)).numpy()
    top, gap = scores.max(axis=1), np.ptp(scores, axis=1)
    top, gap = np.repeat(top, L.T - 1), np.repeat(gap, L.T - 1)
    return first, -top + gap * (1 - first) + 2 * np.log(first) - L.trace.gaps + np.log(gap)


def gradient_norm(L, p):
    return np.sqrt(np.einsum("rk,kl,rl->r", p, L.svm.rows.gram().numpy(), p)) / L.n


def test_the_weights_of_the_gradient():
    L = letters(NGD(0.1), 60, against=0.5)
    first, log_p = weights(L)
    p = np.exp(log_p)
    size, mean = gradient_norm(L, p), p.sum(axis=1) / L.n
    np.testing.assert_allclose(np.exp(L.trace.log_grad_norm), size, rtol=SAME)
    table = check_gradient_bounds(L.data, L.trace, svm=L.svm)
    assert table.all_hold
    room = cosine_room(L)
    assert_is(table, "norm_low", L, size / mean, L.Xi, 0, room * L.Xi)
    assert_is(table, "norm_high", L, size / mean, 2 * L.B**2, 0, room * 2 * L.B**2)
    largest = p.reshape(-1, L.n, L.T - 1).sum(axis=2).max(axis=1)
    assert_is(table, "weight_high", L, largest / (L.Upsilon / 4), 1.0, 0, room)
    least = (p * np.exp(L.trace.gaps) / first**2).min(axis=1) / L.upsilon
    room = 64 * EPS * (1 + np.abs(L.trace.gaps).max(axis=1))
    assert_is(table, "weight_low", L, least, 1.0, 0, room)


def view(L):
    return TraceView(L.data, L.trace, L.svm)


def test_lemmas_4_and_5():
    L = letters(NGD(0.1), 300, against=0.1)
    p, least = np.exp(weights(L)[1]), L.Xi / (2 * L.B**2)
    table = check_lemma4(L.data, L.trace, svm=L.svm)
    cosine = (p @ L.svm.margins.numpy()) * L.Xi / L.n / gradient_norm(L, p)
    assert_is(table, "cosine", L, cosine, least, 0, cosine_room(L))
    room = (128 * EPS * L.B**2 * L.W / L.Xi + 4 * EPS * L.S) / 0.1
    assert_is(table, "gain", L, np.diff(L.c, prepend=np.nan) / 0.1, least, 1, room)
    table, t_0 = check_lemma5(L.data, L.trace, svm=L.svm), 4 * L.B**2 * L.W[0] / (0.1 * L.Xi)
    assert 2 < t_0 < 200
    upper, grown = L.W[0] + 0.1 * L.t, 0.1 * least * L.t
    assert_is(table, "norm_high", L, L.W, upper, 1, 1e-9 * upper)
    room = 1e-9 * (L.W[0] + grown)
    assert_is(table, "projection", L, L.c, grown - L.W[0], 1, room)
    assert_is(table, "norm_low", L, L.W, grown / 2, math.ceil(t_0), 1e-9 * grown / 2)


def test_the_changes_of_gaps_of_lemma_3():
    """Of velocities, and of changes over one step, whether or not Assumption 1 holds."""
    L = letters(NGD(0.1), 60, against=0.5)
    (first, log_p), K = weights(L), L.svm.rows.gram().numpy()
    p, c = np.exp(log_p), token_constants(L.data, svm=L.svm)
    velocity = p @ K / L.n / gradient_norm(L, p)[:, None]
    phi = min(0.25, first[0].min())
    low = first <= (1 + math.sqrt(1 - 2 * phi)) / 2
    assert low.any() and not low.all()
    rising, rising_step, fall, fall_step, change = lemma3.gap_checks(view(L))
    least = np.where(low, velocity, np.inf).min(axis=1)
    np.testing.assert_allclose(rising.values, least[np.isfinite(least)], rtol=SAME, atol=1e-12)
    moved = np.diff(L.trace.gaps, axis=0)
    least = np.where(low[:-1], moved, np.inf).min(axis=1)
    np.testing.assert_allclose(rising_step.values, least[np.isfinite(least)], atol=1e-12)
    harm = 1.2 * c.mu * L.B**2 / L.Xi
    np.testing.assert_allclose(fall.values, velocity.min(axis=1), rtol=SAME, atol=1e-12)
    np.testing.assert_allclose(fall.bounds, -harm, rtol=SAME)
    np.testing.assert_allclose(fall_step.values, moved.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(fall_step.bounds, -0.1 * harm, rtol=SAME)
    # Eq. 18 is exact for the gaps of one step; the allowance is of rounding
    off = np.abs(moved - 0.1 * velocity[:-1]).max()
    assert change.holds and off < 1e-12 and change.bounds.max() < 1e-11
    own, cross = lemma3.row_checks(view(L))
    blocks = np.kron(np.eye(L.n), np.ones((L.T - 1, L.T - 1))) > 0
    assert own.value == K[blocks].min() and cross.value == K[~blocks].min()
    assert own.bound == pytest.approx((c.b_o**2 - 3 * c.mu) * c.b_1**2, rel=SAME)
    assert cross.bound == pytest.approx(-1.2 * c.mu * L.B**2, rel=SAME)
    assert own.rounding == cross.rounding == pytest.approx(64 * EPS * 4 * L.B**4, abs=0)
    share = cosine_room(L) * 4 * L.B**4 / L.Xi
    assert fall.rounding == pytest.approx(share[fall.values == fall.value][0], abs=0)
    doubt = 256 * EPS * L.B**2 * L.W + 8 * EPS * L.B**2 * L.S
    np.testing.assert_allclose(change.bounds, (doubt + 0.1 * np.roll(share, 1))[1:], rtol=1e-6)
    at = int((fall_step.values == fall_step.value).argmax())
    assert fall_step.rounding == pytest.approx(doubt[1:][at], abs=0)
    (score,) = lemma3.softmax_checks(view(L))
    np.testing.assert_allclose(score.values, np.minimum.accumulate(first.min(axis=1)), rtol=SAME)
    assert score.bound == pytest.approx(phi, rel=SAME)


def test_the_sizes_in_the_proof_of_lemma_7():
    L = letters(NGD(0.5), 500, against=0.5)
    phi, log_p = min(0.25, L.phi[-1]), weights(L)[1]
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))  # to a factor, as they underflow
    D = 10 * L.n * L.kappa * L.T * L.B**2 / (L.Xi * phi**2)
    eps = 2 * 5 * float(lambertw(D * L.Xi * L.W[-1] / 5).real) / (L.Xi * L.W[-1])
    radius = 5 / (eps * L.Xi) * math.log(D / eps)
    rho, keep = L.Xi * L.W, radius <= L.W
    assert 10 < keep.sum() < len(keep)
    table = check_lemma7(L.data, L.trace, svm=L.svm, eps=eps)
    h = L.trace.gaps / rho[:, None]
    delta = h.reshape(-1, L.n, L.T - 1).min(axis=2) - 1

    def same(key, values, bounds, atol=1e-12):
        check = table[key]
        assert check.step.tolist() == L.t[keep].tolist()
        np.testing.assert_allclose(check.values, values[keep], rtol=SAME, atol=atol)
        bounds = np.broadcast_to(bounds, keep.shape)[keep]
        np.testing.assert_allclose(check.bounds, bounds, rtol=SAME)

    same("mean", (p * (h - 1)).sum(axis=1) / p.sum(axis=1), eps)
    least = np.repeat(delta == delta.min(axis=1)[:, None], L.T - 1, axis=1)
    residual = np.log((p * least).sum(axis=1)) + log_p.max(axis=1)
    same("least_gap", residual, math.log(L.upsilon * phi**2) - rho, 1e-9)
    ratio = 4 * L.n * L.T * L.kappa * L.B**2 / (eps * L.Xi * phi**2)
    same("outweighs", 0.8 * eps * rho, math.log(ratio))
    same("split", 0.2 * eps * rho, math.log(10 * L.T * L.B**2 / (eps * L.Xi)))
    eq4 = table[3]
    p_h = (p * h).sum(axis=1) * L.Xi / L.n / gradient_norm(L, p)
    np.testing.assert_allclose(eq4.values, p_h[keep], rtol=SAME)
    toward = (p @ L.svm.margins.numpy()) * L.Xi / L.n / gradient_norm(L, p)
    np.testing.assert_allclose(eq4.bounds, (1 + eps) * toward[keep], rtol=SAME)
    assert f"R_eps = {radius:.4g}" in eq4.reason
    needed = np.maximum((p * h).sum(axis=1) / (p @ L.svm.margins.numpy()) - 1, 0)
    bounds = 5 * lambertw(D * L.Xi * L.W / 5).real / (L.Xi * L.W)
    sharp = np.log(L.rows * L.kappa / (math.e * phi**2)) / (L.Xi * L.W)
    for check, allowed in zip(table[:2], (bounds, sharp), strict=True):
        np.testing.assert_allclose(check.values, needed, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(check.bounds, allowed, rtol=SAME)


def test_the_three_sets_in_the_proof_of_lemma_7():
    """Of one iterate far out, whose second sequence meets its constraints with much to spare."""
    data, eps = dyadic_data(2, 3, 8, seed=1, equal_scores=True), 0.1
    W = 400 * start_with_gaps(data, [1.0, 1.3, 3.0, 4.0])
    trace = at(data, W)
    L = letters(NGD(0.1))
    L = SimpleNamespace(**(vars(L) | {"trace": trace}))
    log_p = weights(L)[1][0]
    rho = L.Xi * float(W.norm())
    h = trace.gaps[0] / rho
    assert h[:2].min() - 1 < 0.3 * eps and h[2:].min() - 1 > 0.8 * eps and h.min() < 1.3
    table = check_lemma7(data, trace, eps=eps)
    assert table.all_hold
    adds = np.logaddexp.reduce(log_p[2:] + np.log(h[2:] - 1 - eps))
    spare = math.log(eps / 2) + np.logaddexp.reduce(log_p[:2])
    tail = math.log(L.n * L.T * L.Upsilon * 2 * L.B**2 / L.Xi) - (1 + 0.8 * eps) * rho
    for key, bound in (("beaten", spare), ("tail", tail)):
        assert (table[key].value, table[key].bound) == pytest.approx((adds, bound), rel=SAME)
