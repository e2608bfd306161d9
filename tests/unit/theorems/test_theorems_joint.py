"""Statements about joint training: where they hold, where they must not, second forms."""

import functools
import inspect
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import seeds
from joint_instances import at_the_limit, largest_eta, orthogonal, repelling
from lemma_instances import failing, tampered, verdicts
from scipy.special import lambertw
from tolerances import FORMS, PRINTED_FOUR_RELATIVE, PRINTED_TWO_RELATIVE

from attnbias import GD, NGD, Dataset, Polyak, make_separation_pair, solve_w_svm, train
from attnbias.data import make_dm
from attnbias.model import attention_map
from attnbias.theorems import check_lemma10, check_lemma11, check_lemma12, check_theorem4
from attnbias.theorems.joint.conditions import check_lemma9
from attnbias.theorems.joint.lemmas import check_lemma13, segment_losses
from attnbias.theorems.joint.run import JointView
from attnbias.theorems.joint.theorems import (
    check_decoder_direction,
    check_loss_without_decay,
    check_sharper_theorem4,
    check_theorem2,
    check_theorem3,
    mean_nonopt_softmax,
)

CONDITIONED = [
    check_lemma11,
    check_lemma12,
    check_lemma13,
    check_theorem2,
    check_theorem3,
    check_theorem4,
    check_sharper_theorem4,
]
DECORATED = [*CONDITIONED, check_decoder_direction, check_loss_without_decay]
ROOT = 2 / 3
HESSIAN = ("hessian", "hessian_two")
FREE = (*HESSIAN, "converse", "closed_converse")  # of Section 4's conditions


def joint(data, eta, p=ROOT, q=1, steps=200, record=None, **start):
    """A run of Eq. 10; by default about every step at first, then ten a decade."""
    if record is None:
        record = sorted({*range(6), *np.geomspace(6, steps, 20).astype(int)})
    return train(data, NGD(eta, decay=(p, q)), steps, train_u=True, record=record, **start)


@functools.cache
def small_run():
    data = at_the_limit(3, seed=2)
    return data, joint(data, largest_eta(3, ROOT))


@functools.cache
def biting_run(p=ROOT):
    """A step size far beyond Condition 2, at which the sharper bounds say something."""
    data = orthogonal()
    return data, joint(data, 1.0 if p else 10.0, p=p, steps=20_000 if p else 2000)


@functools.cache
def equal_sizes(eta=0.1, q=0):
    """alpha = 1: optimal tokens no larger than the others, which u then prefers at times."""
    data = make_dm(4, 2, 8, alpha=1.0, sigma=0.5, seed=0)
    return data, joint(data, eta, p=0, q=q)


@pytest.mark.parametrize("check", DECORATED)
def test_a_docstring_has_its_sections_once_and_in_order(check):
    titles = ("Parameters", "Returns", "Raises", "Notes", "Examples")
    lines = inspect.getdoc(check).split("\n")
    places = [k for k, line in enumerate(lines) if line in titles]
    assert [lines[k] for k in places] == list(titles)
    assert all(set(lines[k + 1]) == {"-"} for k in places)
    said = [line.split(" :")[0] for line in lines[places[0] : places[1]] if " : " in line]
    assert said == list(inspect.signature(check).parameters)


class TestWhereTheyHold:
    def test_orthogonal_family_has_the_predicted_numbers(self):
        data = orthogonal()
        free = joint(data, largest_eta(2, 0), p=0, steps=10_000, record=[0, 1000, 10_000])
        table = check_loss_without_decay(data, free)
        assert table.all_hold
        assert table[0].bounds.tolist() == pytest.approx([2.9, 29.0], rel=PRINTED_FOUR_RELATIVE)

    @settings(max_examples=15)
    @given(n=st.integers(1, 5), seed=seeds, p=st.sampled_from([0, 0.3, 0.5, ROOT, 0.9]))
    def test_every_statement_at_the_limits_of_condition_2(self, n, seed, p):
        a = 10.0 ** (seed % 5 - 2)
        data = at_the_limit(n, seed=seed, a=a)
        trace = joint(data, largest_eta(n, p, a), p=p, steps=60)
        for check in CONDITIONED:
            table = check(data, trace)
            assert table.all_hold, table
        assert check_lemma10(data, trace).all_hold
        direction = check_decoder_direction(data, trace)[0]
        assert direction.holds or "speaks of t >=" in direction.reason

    def test_lemma_10_is_attained_and_needs_no_factor(self):
        """One sequence, both tokens on a line: u never turns."""
        data = Dataset([[[1.0, 0.0], [-0.25, 0.0]]], [1], opt=[0])
        table = check_lemma10(data, joint(data, 0.1, p=0))
        assert table.all_hold
        for which in (0, 2):
            assert table[which].values[1:] == pytest.approx(table[which].bounds[1:], rel=FORMS)
        data = make_dm(n=4, d=20)
        table = check_lemma10(data, joint(data, 0.05, p=0, q=0))
        assert table.all_hold and len(table) == 3
        assert [table[k].bounds[-1] for k in (0, 2)] == pytest.approx([0.05 * 200, 0.05 * 199])
        closed = check_lemma10(data, joint(data, 0.05, p=1, q=1))
        assert closed.all_hold and len(closed) == 3  # t^(1-p) / (1-p) means nothing at p = 1

    @pytest.mark.parametrize("p", [0, ROOT])
    def test_sharper_bounds_bite_beyond_condition_2(self, p):
        data, trace = biting_run(p)
        direction = check_decoder_direction(data, trace, assume_conditions=True)[0]
        assert direction.holds
        margin = check_sharper_theorem4(data, trace, assume_conditions=True)[0]
        assert margin.holds
        if p:
            assert not margin.vacuous and margin.bounds[-1] > 0.2
        else:  # the remainder does not vanish, the direction's bound does
            assert margin.vacuous and not direction.vacuous and direction.bounds[-1] < 0.5
            assert margin.bounds[-1] < -10  # it tends to -eta a (1.03 + 0.62 sqrt(a))

    def test_theorem_3_says_when_it_would_bite(self):
        data, trace = small_run()
        check = check_theorem3(data, trace)[2]
        assert check.verdict == "holds, vacuous"
        late = float(check.reason.split()[-1])
        # the bound falls as 1 / log((t + 1) / 2)
        level = check.bounds[-1] * math.log((check.step[-1] + 1) / 2)
        assert level == pytest.approx(2 * (late - math.log(2)), rel=PRINTED_TWO_RELATIVE)

        # W opposite to W_mm, or across it, for ever: out of the cone of Lemma 4
        cone = check_theorem3(data, trace)[3]
        assert cone.verdict == "holds" and cone.bound < 1
        for level in (2.0, 1.0):
            error = np.where(trace.W_norm > 0, level, np.nan)
            table = check_theorem3(data, tampered(trace, W_alignment_error=error))
            assert table[3].verdict == "fails"


class TestLemma9:
    def test_holds_in_high_dimension(self):
        for seed in range(3):
            assert check_lemma9(make_dm(n=2, T=3, d=15_000, seed=seed)).all_hold

    def test_low_dimension_and_other_tokens(self):
        table = check_lemma9(make_dm())
        assert not table.all_hold and "under 1680 l" in table[0].reason
        assert "make_dm" in check_lemma9(orthogonal())[0].reason
        table = check_lemma9(make_dm(), assume_conditions=True)  # Figure 3 would break it
        assert not table[0].holds and table[1].holds
        assert "not checked" in table[0].reason

    def test_refuses_tokens_that_repeat(self):
        data = make_dm(n=2, d=15_000)
        X = data.X.clone()
        X[1] = X[0]
        twice = Dataset(X, data.y, opt=data.opt[[0, 0]], meta=data.meta)
        assert [check.holds for check in check_lemma9(twice)] == [True, False]
        scaled = Dataset(1.1 * data.X, data.y, opt=data.opt, meta=data.meta)
        assert [check.holds for check in check_lemma9(scaled)] == [False, True]


class TestSecondForms:
    """Values at the last iterate against plain formulas of its u and W."""

    @pytest.fixture
    def last(self):
        data = make_dm(n=4, d=12, alpha=2.0, sigma=0.3, seed=5)
        trace = joint(data, 0.3, p=0.3, steps=40)
        phi = attention_map(data.X, trace.W)
        return data, trace, torch.einsum("it,itd->id", phi, data.X), data.y, trace.u

    def test_lemmas_11_and_12(self, last):
        data, trace, mean, y, u = last
        table = check_lemma11(data, trace, assume_conditions=True)
        scores = y[:, None] * (data.X @ u)
        gap = scores.gather(1, data.opt[:, None]) - scores.gather(1, 1 - data.opt[:, None])
        ends = [check.values[-1] for check in table[:2]]
        assert ends == pytest.approx([float(gap.min()), float(gap.max())], rel=FORMS)
        margin = y * (mean @ u)
        ratio = float(margin.max() - margin.min())
        assert table["loss_ratio"].values[-1] == pytest.approx(ratio, rel=FORMS)
        bar = (y[:, None] * data.X[torch.arange(4), data.opt]).sum(0)
        value = float((y * (mean @ bar)).min() / bar.norm())
        check = check_lemma12(data, trace, assume_conditions=True)[0]
        assert check.values[-1] == pytest.approx(value, rel=FORMS)

    def test_lemma_13_gradient_and_hessian(self, last):
        data, trace, *_, y, u = last
        theta, d = torch.cat([u, trace.W.flatten()]), data.d

        def loss(theta):
            phi = attention_map(data.X, theta[d:].reshape(d, d))
            return torch.exp(-y * torch.einsum("it,itd,d->i", phi, data.X, theta[:d])).mean()

        table = check_lemma13(data, trace, assume_conditions=True)
        pull = float(torch.func.grad(loss)(theta)[:d].norm() / loss(theta))
        assert table[0].values[-1] == pytest.approx(pull, rel=FORMS)
        norm = torch.linalg.eigvalsh(torch.func.hessian(loss)(theta) / loss(theta)).abs().max()
        assert table[3].values[-1] == pytest.approx(float(norm), rel=FORMS)

    @pytest.mark.parametrize("p", [0, 0.4, ROOT])
    def test_bounds_of_a_run_recorded_at_every_step(self, p):
        """Of the decoder and the loss, with avg_t as a plain weighted mean and a = 1, n = 2."""
        data, eta = orthogonal(), 1.5
        trace = joint(data, eta, p=p, steps=120, record=range(121))
        s, given = np.arange(1.0, 121), {"assume_conditions": True}
        U, best = np.cumsum(eta * s**-p), 1 / math.sqrt(2)  # u_mm = x_1 - x_3
        wrong = 1 - 1 / (1 + np.exp(-trace.gaps.min(axis=1)))
        average = np.cumsum(eta * s**-p * wrong[:-1]) / U
        tau = 0.44 * best
        late = 10 * math.log(2) / best <= U
        turned = 6 * ((2 * math.log(11) / tau + eta) / U + 9.7 * math.sqrt(2) * average)
        direction = check_decoder_direction(data, trace, **given)[0]
        np.testing.assert_allclose(direction.bounds, turned[late], rtol=FORMS)
        rest = (math.log(2) + eta**2 * (1.03 + 0.62) * np.cumsum(s ** (-2 * p))) / U
        sharper = check_sharper_theorem4(data, trace, **given)[0]
        whole = best - (best + 1) * average - rest
        np.testing.assert_allclose(sharper.bounds, whole, rtol=FORMS, atol=FORMS)
        margin = check_theorem4(data, trace, **given)[0]
        np.testing.assert_allclose(margin.bounds, 0.39 * best - math.log(2) / U, atol=FORMS)
        # in words: from when on these bounds say something
        longest = math.sqrt(10 / 9)  # of the rows
        for check, small in ((direction, 1 / (29.1 * math.sqrt(2))), (sharper, best / (best + 1))):
            assert f"under {small:.2g} (at last {average[-1]:.3g})" in check.reason
            if small < 0.5:
                needed = math.log(1 / small - 1) / (longest * eta)
                assert f"log t must exceed {needed:.3g}" in check.reason
        total = np.cumsum(eta * np.arange(1.0, 10**5) ** -p)
        bites = int((total >= 3 * (2 * math.log(11) / tau + eta)).argmax()) + 1
        assert f"below 2 only from t = {bites:.3g} on" in direction.reason
        first = int((total >= math.log(2) / (0.39 * best)).argmax()) + 1
        assert f"from t = {first:.4g} on" in margin.reason
        loss = check_theorem2(data, trace, **given)
        plain = [0.4 * best * U, U]
        if p == ROOT:
            plain += [1.2 * eta * best * (np.cbrt(s + 1) - 1), 3 * eta * np.cbrt(s)]
        for check, bounds in zip(loss, plain, strict=True):
            np.testing.assert_allclose(check.bounds, bounds, rtol=FORMS, atol=FORMS)
        gaps = check_lemma11(data, trace, **given)
        np.testing.assert_allclose(gaps[0].bounds, 0.032 * best * U, rtol=FORMS)
        np.testing.assert_allclose(gaps[1].bounds, 35 * best * U, rtol=FORMS)
        steep = check_lemma13(data, trace, **given)
        u = trace.u_norm
        for check, bounds in zip(
            steep, (tau, 1.0, math.log(1.05), 2 + u**2 + 2 * u, 2 + u**2 + 0.77 * u), strict=True
        ):
            np.testing.assert_allclose(check.bounds, np.broadcast_to(bounds, 121), rtol=FORMS)
        # what rounding is allowed for
        fall = -trace.log_loss
        for check in loss:
            assert check.rounding == pytest.approx(1e-9 * check.value, abs=0) and fall[-1] > 1
        assert gaps[3].rounding == 1e-15
        assert gaps[4].rounding == pytest.approx(2e-15 * longest, abs=0)
        assert steep[1].rounding == pytest.approx(1e-9, abs=0)
        room = 1e-14 * np.abs(fall)[(steep[2].values == steep[2].value).argmax()]
        assert steep[2].rounding == pytest.approx(room, abs=0)

    def test_bounds_of_theorem_3(self):
        data, eta = orthogonal(), 1.5
        trace = joint(data, eta, steps=50, record=range(51))
        svm, t = solve_w_svm(data), np.arange(2.0, 51)
        Xi, Lambda = 1 / svm.norm, float(lambertw(4 * 2 / math.e * 11 * 1100).real)
        path = eta * np.log((t + 1) / 2)
        rows = check_theorem3(data, trace, assume_conditions=True)
        plain = Xi / 2 * path, eta * np.log(t), 2 / Xi**2 * (2 * Lambda / Xi + eta) / path
        for check, bounds in zip(rows, (*plain, np.full(49, 1 - Xi / 2)), strict=True):
            np.testing.assert_allclose(check.bounds, bounds, rtol=FORMS)
        rooms = [1e-9 * rows[0].bound, 1e-9 * rows[1].bound, 0, 1e-12]
        assert [check.rounding for check in rows] == pytest.approx(rooms, rel=FORMS, abs=0)
        for check, series in zip(rows, (trace.W_norm, trace.W_norm), strict=False):
            assert check.values.tolist() == series[2:].tolist()

    def test_segment_ends_at_the_next_iterate(self):
        for T in (2, 3):
            data = make_dm(n=3, T=T, d=9, alpha=1.5, sigma=0.4, seed=1)
            trace = joint(data, 0.2, p=0.3, q=0.6, steps=30, record=range(31))
            first, last = segment_losses(JointView(data, trace, assume=True), [0.0, 1.0])
            assert first == pytest.approx(trace.log_loss, rel=FORMS, abs=FORMS)
            assert last[:-1] == pytest.approx(trace.log_loss[1:], rel=FORMS)

    def test_growth_of_gaps_is_that_of_the_next_record(self):
        data = at_the_limit(3, seed=4)
        trace = joint(data, 0.3, steps=20, record=range(21))
        check = check_lemma11(data, trace, assume_conditions=True)["growth"]
        later = trace.step[1:-1] + 1
        growth = (trace.gaps[2:] - trace.gaps[1:-1]).min(axis=1) * later / 0.3
        assert check.values[:-1] == pytest.approx(growth, rel=FORMS)

    @pytest.mark.parametrize(("p", "eta"), [(0.0, 3.0), (ROOT, 1.0)])
    def test_mean_nonopt_score_of_sparse_records(self, p, eta):
        """From every iteration it is exact; from a few it is larger, by little."""
        data = orthogonal()
        every = JointView(data, joint(data, eta, p=p, steps=300, record=range(301)), assume=True)
        exact = mean_nonopt_softmax(every)
        nonopt = 1 - every.softmax[:, [0, 1], data.opt.numpy()].min(axis=1)
        weights = (every.step + 1.0) ** -p
        plain = np.cumsum((weights * nonopt)[:-1]) / np.cumsum(weights[:-1])
        assert exact[1:] == pytest.approx(plain, rel=FORMS)
        few = sorted({*range(10), *np.geomspace(10, 300, 40).astype(int)})
        trace = joint(data, eta, p=p, steps=300, record=few)
        sparse = mean_nonopt_softmax(JointView(data, trace, assume=True))
        assert (sparse[1:] >= exact[few[1:]] * (1 - FORMS)).all()
        assert (sparse[1:] <= exact[few[1:]] * 1.5).all()

    def test_hessian_holds_at_any_decoder_and_any_T(self):
        for T, seed in ((2, 0), (3, 1), (4, 2)):
            data = make_dm(n=3, T=T, d=6, alpha=1.0, sigma=0.6, seed=seed)
            table = check_lemma13(data, joint(data, 2.0, p=0, q=0, u0=torch.ones(6)))
            rows = [check for check in table if check.key in HESSIAN]
            assert len(rows) == (2 if T == 2 else 1)
            assert all(check.holds for check in rows)


OTHER = [
    ("start is not zero", orthogonal(), {"u0": 1e-3 * torch.ones(4, dtype=torch.float64)}),
    ("start is not zero", orthogonal(), {"W0": 1e-3 * torch.ones(4, 4, dtype=torch.float64)}),
    ("decay q", orthogonal(), {"q": 0}),
    ("step size eta", orthogonal(), {"p": 1}),
    ("step size eta", orthogonal(), {"eta": 1.01 * largest_eta(2, ROOT)}),
    ("T = 2", make_dm(n=2, T=3, d=8), {"eta": 1e-4}),
    ("n nu / b_-", at_the_limit(3, coupling=0.006), {"eta": 1e-4}),
    ("step 0", orthogonal(), {"record": range(1, 5)}),
]


class TestHypotheses:
    @pytest.mark.parametrize(("reason", "data", "settings"), OTHER, ids=[row[0] for row in OTHER])
    def test_conditions_come_first(self, reason, data, settings):
        trace = joint(data, **{"eta": largest_eta(2, ROOT)} | settings)
        for check in CONDITIONED:
            rows = [row for row in check(data, trace) if row.key not in FREE]
            assert rows and all(row.verdict == "not applicable" for row in rows)
            assert all(reason in row.reason for row in rows)

    @pytest.mark.parametrize(
        ("rule", "reason"),
        [
            (GD(0.1), "NGD"),
            (Polyak(), "NGD"),
            (NGD(0.1, normalise="shared"), "apart"),
            (NGD(0.1, decay=(ROOT, 1), max_step=0.5), "cap"),
            (None, "joint"),
        ],
        ids=str,
    )
    def test_other_rules_and_fixed_decoders_are_never_compared(self, rule, reason):
        data = orthogonal() if rule else make_separation_pair()
        trace = train(data, rule or NGD(0.1), 5, train_u=rule is not None, record=range(6))
        for check in DECORATED:
            for assumed in (False, True):
                table = check(data, trace, assume_conditions=assumed)
                rows = [row for row in table if row.key not in HESSIAN or not rule]
                assert all(not row.applicable and reason in row.reason for row in rows)
        assert all(reason in row.reason for row in check_lemma10(data, trace))

    def test_some_hypotheses_are_their_own(self):
        data = make_dm(n=3, d=10)
        rows = check_theorem2(data, joint(data, 0.5))
        assert verdicts(rows) == ["not applicable", "holds"] * 2
        data, trace = small_run()
        assert "p = 0.666667" in check_loss_without_decay(data, trace)[0].reason
        row = check_decoder_direction(data, trace)[0]
        assert row.verdict == "not applicable" and "speaks of t >=" in row.reason
        away = joint(data, 0.1, u0=torch.ones(data.d, dtype=torch.float64))
        rows = check_lemma10(data, away)
        assert all(not row.applicable and "u_0" in row.reason for row in rows)

    def test_statements_say_what_was_not_checked(self):
        data = make_dm(n=3, d=30)
        trace = joint(data, 0.05)
        for check in [*CONDITIONED, check_decoder_direction]:
            plain, table = check(data, trace), check(data, trace, assume_conditions=True)
            for row in table:
                words = "" if row.key in FREE else " (conditions not checked)"
                assert row.statement == plain[row.key].statement + words


class TestBrokenHypotheses:
    """The conclusion goes with the hypothesis."""

    def test_products_a_hundred_times_too_large(self):
        """n nu = 0.5 b_- and 0.9 b_-, against 0.005 b_-."""
        for coupling, lemma12, pl in ((0.005, True, True), (0.5, False, True), (0.9, False, False)):
            data = repelling(8, coupling)
            trace = joint(data, largest_eta(8, ROOT))
            separated = check_lemma12(data, trace, assume_conditions=True)[0]
            steep = check_lemma13(data, trace, assume_conditions=True)[0]
            assert (separated.holds, steep.holds) == (lemma12, pl)
        figure3 = make_dm()
        trace = joint(figure3, 0.05)
        assert not check_lemma12(figure3, trace, assume_conditions=True)[0].holds

    @pytest.mark.parametrize(
        ("check", "keys"),
        [
            (check_lemma11, {"gap_low", "opt_score", "growth"}),
            (check_lemma12, {"separation"}),
            (check_lemma13, {"gradient_low"}),
            (check_theorem2, {"rate"}),
            (check_theorem4, {"margin", "positive"}),
        ],
        ids=lambda value: getattr(value, "__name__", ""),
    )
    def test_optimal_tokens_no_larger_than_others(self, check, keys):
        data, trace = equal_sizes()
        assert keys <= set(failing(check(data, trace, assume_conditions=True)))

    def test_long_steps(self):
        """Of W, eta = 5 and q = 0: the loss rises on the way to the next iterate. Of u, a thousand
        times the step size: the losses come apart."""
        data, trace = equal_sizes(5.0)
        assert not check_lemma13(data, trace, assume_conditions=True)["segment"].holds
        assert not check_theorem3(data, trace, assume_conditions=True)[1].holds
        data = at_the_limit(3, seed=1)
        table = check_lemma11(data, joint(data, 10.0, p=0), assume_conditions=True)
        assert failing(table) == ["loss_ratio"]


TAMPERED = [
    (check_lemma10, {"u_norm": 1.5}, {"u_norm", "u_power"}),
    (check_lemma10, {"u_norm": 1.01}, {"u_norm"}),
    (check_lemma10, {"W_norm": 1.5}, {"W_norm", "W_log"}),
    (check_lemma11, {"scores": 0.001}, {"gap_low"}),
    (check_lemma11, {"scores": 1e4}, {"gap_high", "loss_ratio"}),
    (check_lemma11, {"scores": -1.0}, {"gap_low", "gap_ratio", "growth"}),
    (check_lemma11, {"least_opt_score": 0.999}, {"opt_score"}),
    (check_lemma12, {"gaps": -1e4}, {"separation"}),
    (check_lemma13, {"gaps": -1e4}, {"gradient_low"}),
    (check_theorem2, {"log_loss": 0.7}, {"rate", "closed_rate"}),
    (check_theorem2, {"log_loss": 4.0}, {"converse", "closed_converse"}),
    (check_theorem2, {"log_loss": math.nan}, {"rate"}),
    (check_theorem3, {"W_norm": 0.1}, {"norm_low"}),
    (check_theorem3, {"W_norm": 1.5}, {"norm_high"}),
    (check_theorem3, {"W_alignment_error": 1e12}, {"rate", "cone"}),
    (check_theorem3, {"W_alignment_error": 100.0}, {"cone"}),
    (check_theorem4, {"scores": -1e4}, {"margin", "positive"}),
    (check_sharper_theorem4, {"scores": -1e4}, {"margin"}),
]


@pytest.mark.parametrize(("check", "change", "keys"), TAMPERED)
def test_a_tampered_trace_is_refused(check, change, keys):
    data, trace = small_run()
    assert check(data, trace).all_hold
    assert keys <= set(failing(check(data, tampered(trace, **change))))


@pytest.mark.parametrize(
    ("check", "p", "change"),
    [
        (check_sharper_theorem4, ROOT, {"u_norm": 10.0}),
        (check_decoder_direction, 0, {"u_alignment_error": 1e3}),
    ],
)
def test_a_tampered_trace_is_refused_where_the_bound_bites(check, p, change):
    data, trace = biting_run(p)
    assert check(data, trace, assume_conditions=True)[0].holds
    assert not check(data, tampered(trace, **change), assume_conditions=True)[0].holds


def test_hessian_refuses_a_smaller_decoder():
    """The bound grows with |u|: a trace that claims |u| = 0 and large scores must fail."""
    data = make_dm(n=2, d=5, sigma=0.2, alpha=1.0)
    trace = joint(data, 2.0, p=0, steps=60)
    assert check_lemma13(data, trace)["hessian_two"].holds
    false = tampered(trace, u_norm=0, scores=1e4)
    assert not check_lemma13(data, false)["hessian_two"].holds


def test_loss_without_decay_refuses_a_slower_loss():
    data = orthogonal()
    trace = joint(data, largest_eta(2, 0), p=0)
    assert check_loss_without_decay(data, trace).all_hold
    for factor, wrong in ((0.7, "rate"), (4.0, "converse")):
        table = check_loss_without_decay(data, tampered(trace, log_loss=factor))
        assert failing(table) == [wrong]
