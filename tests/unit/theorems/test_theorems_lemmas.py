"""Lemmas 2 to 6, the bounds (G) on the gradient, and Assumption 1 giving feasibility."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, random_start, seeds
from lemma_instances import (
    assert_refused,
    at,
    coupled,
    equal_score_data,
    failing,
    opposed_tokens,
    opposite_pair,
    orthonormal,
    positions,
    sizes,
    spread_gaps,
    start_with_gaps,
    tampered,
    unequal_scores,
    verdicts,
)
from tolerances import CLOSED_FORM, PRINTED_FOUR

from attnbias import GD, NGD, Dataset, Polyak, make_example1, make_separation_pair, train
from attnbias.data.degenerate import make_two_sample_trap
from attnbias.errors import DtypeError, InfeasibleError, RangeError
from attnbias.geometry.assumptions import check_assumption1, example1_threshold
from attnbias.geometry.svm import solve_w_svm
from attnbias.geometry.tokens import gap_rows
from attnbias.model import attention_map
from attnbias.theorems import check_gradient_bounds, check_lemma4, check_lemma5
from attnbias.theorems.run import TraceView
from attnbias.theorems.w.assumption1 import check_assumption1_feasible, check_lemma6
from attnbias.theorems.w.gradient import COSINE, least_cosine, toward_w_mm
from attnbias.theorems.w.lemma2 import check_lemma2, lemma2_zeta
from attnbias.theorems.w.lemma3 import check_lemma3, gap_checks, softmax_checks

few = st.integers(2, 3)
DENSE = [0, 1, 2, 3, 10, 11, 100, 101, 300]


def run_of(data, rule=None, steps=300, **options):
    return train(data, rule or NGD(0.1), steps, record=[s for s in DENSE if s <= steps], **options)


class TestGradientBounds:
    @FEW
    @given(**sizes, scale=st.sampled_from([0.3, 3.0, 30.0]))
    def test_hold_at_any_start(self, n, T, seed, scale):
        data, svm = equal_score_data(n, T, seed)
        table = check_gradient_bounds(data, at(data, random_start(data, scale, seed), svm), svm=svm)
        assert table.all_hold, table

    def test_attained(self):
        data = opposite_pair()
        table = check_gradient_bounds(data, run_of(data, NGD(0.5)))
        assert table.all_hold
        assert all(abs(table[k].slack) < CLOSED_FORM for k in (1, 2, 4))

    def test_norms_that_are_not_eq14s_or_outside_the_bounds(self):
        data = orthonormal()
        trace = run_of(data)
        for which, shift in ((0, 1e-9), (1, -0.1), (2, math.log(2.1))):
            false = tampered(trace, log_grad_norm=trace.log_grad_norm + shift)
            assert verdicts(check_gradient_bounds(data, false))[which] == "fails"


class TestLemma2:
    def test_holds_for_almost_all_draws(self):
        """More often than 1 - 2 delta, and the bounds on scores follow from that on logits."""
        data = make_example1(n=3, T=3, d=20)
        held = 0
        for seed in range(40):
            table = check_lemma2(data, random_start(data, 0.05, seed), omega=0.05, delta=0.1)
            held += table.all_hold
            if table[0].holds:
                assert table[1].holds
                assert table[2].holds
        assert held >= 32

    def test_what_omega_and_zeta_allow(self):
        data = make_example1(n=3, T=3, d=20)
        W0, B = random_start(data, 0.05, 0), float(data.X.norm(dim=2).max())
        zeta = lemma2_zeta(data, 0.05, 0.1)
        printed = 0.05 * B**2 * math.sqrt(2 * math.log(2 * 9 / 0.1))
        assert zeta == pytest.approx(printed, rel=CLOSED_FORM)
        table = check_lemma2(data, W0, omega=0.05, zeta=zeta, delta=0.1)
        assert table.all_hold
        norm = 0.05 * (20 + math.sqrt(2 * math.log(10)))
        bounds = [zeta, math.exp(-2 * zeta), math.exp(2 * zeta), norm]
        assert [check.bound for check in table] == pytest.approx(bounds, rel=CLOSED_FORM)
        share = 3 * attention_map(data.X, W0)
        values = [float(share.min()), float(share.max()), float(W0.norm())]
        assert [check.value for check in table[1:]] == pytest.approx(values, rel=CLOSED_FORM)
        eps = np.finfo(float).eps
        room = 64 * eps * 20 * (1 + table[0].value)
        rooms = [room, room * bounds[1], room * bounds[2], 64 * eps * norm]
        assert [check.rounding for check in table] == pytest.approx(rooms, rel=CLOSED_FORM, abs=0)
        assert_refused(check_lemma2(data, W0, omega=0.0501, zeta=zeta, delta=0.1), "omega")
        assert verdicts(check_lemma2(data, 10 * W0, omega=0.05)) == ["fails"] * 4
        for zeta, verdict in ((0.54, "holds"), (0.56, "holds, vacuous")):
            assert verdicts(check_lemma2(data, W0, omega=0.05, zeta=zeta))[2] == verdict

    def test_scores_at_the_limit(self):
        """Logits zeta and -zeta of two tokens: scores exp(+-2 zeta) / (1 + ...) times 2."""
        data = Dataset([[[1.0, 0.0], [-1.0, 0.0]]], [1], u=[1.0, 0.0])
        W0 = torch.tensor([[0.3, 0.0], [0.0, 0.0]], dtype=torch.float64)
        table = check_lemma2(data, W0, omega=0.01, zeta=0.3)
        assert table[0].slack == pytest.approx(0, abs=CLOSED_FORM)
        for check, x in zip(table[1:3], (0.6, -0.6), strict=True):
            sides = 2 / (1 + math.exp(x)), math.exp(-x)
            assert (check.value, check.bound) == pytest.approx(sides, rel=CLOSED_FORM)

    def test_ragged_and_without_decoder(self):
        X = torch.ones(2, 3, 2, dtype=torch.float64)
        data = Dataset(X, [1, -1], lengths=[2, 3])
        table = check_lemma2(data, torch.zeros(2, 2).double(), omega=0.1)
        assert table.all_hold
        for check in table[1:3]:  # uniform, at every length
            assert check.value == pytest.approx(1, rel=CLOSED_FORM)


class TestLemma3:
    @FEW
    @given(few, few, seeds, positions, st.sampled_from(["NGD", "GD", "Polyak"]))
    def test_at_the_limit_of_assumption1(self, n, T, seed, position, kind):
        """Tokens as far from orthogonal as Assumption 1 allows, steps as long as it allows."""
        mu = min(1 / 15, 4 / 3 * 0.1 / (n * math.exp(0.1)))
        data = coupled(n, T, 0.999 * mu, seed, position)
        gaps = 2 * np.random.default_rng(seed).random(n * (T - 1)) - 1
        W0 = start_with_gaps(data, gaps)
        svm = solve_w_svm(data)
        longest = 0.99 * math.log(2) * float(svm.margin) / (1.2 * mu)
        rule = {"NGD": NGD(longest), "GD": GD(5.0), "Polyak": Polyak(max_step=5.0)}[kind]
        trace = run_of(data, rule, W0=W0, svm=svm)
        assert check_assumption1(data, phi=float(trace.least_opt_score[0])).all_hold
        table = check_lemma3(data, trace, svm=svm)
        assert table.all_hold, table

    def test_score_bound_is_attained_at_the_start(self):
        data = orthonormal()
        W0 = start_with_gaps(data, [-2.0, 0.5])
        table = check_lemma3(data, run_of(data, W0=W0))
        assert table.all_hold
        assert abs(table[0].slack) < CLOSED_FORM
        assert table[0].bound == pytest.approx(1 / (1 + math.exp(2)), rel=CLOSED_FORM)

    @pytest.mark.parametrize(
        "gaps, score", [([-3.0, 0.0], 0.0453), ([0.5, 3.0], 0.60), ([0.9, 3.0], 0.69)]
    )
    def test_broken_part_ii(self, gaps, score):
        """Without Assumption 1 a gap falls although the score is below the level, above 1/2 too."""
        data = opposed_tokens()
        trace = run_of(data, NGD(0.01), W0=start_with_gaps(data, gaps))
        assert_refused(check_lemma3(data, trace), "Assumption 1 fails")
        run = TraceView(data, trace)
        assert math.exp(run.log_opt[0, 0]) == pytest.approx(score, abs=0.01)
        rising = gap_checks(run)
        assert verdicts(rising[:2]) == ["fails"] * 2
        assert rising[0].values[0] == run.gap_speed[0, 1]
        if score < 0.5:
            assert rising[0].values[0] == pytest.approx(-0.63356, abs=PRINTED_FOUR)

    @pytest.mark.parametrize("n, T", [(3, 3), (6, 2)])
    def test_no_gap_falls_while_a_constraint_is_violated(self, n, T):
        """At the limit of Assumption 1, with the sequences' scores anywhere between 1/4 and 1: the
        gaps rise wherever the score is below the level, and fall somewhere above it."""
        mu = min(1 / 15, 1 / (3 * n * math.exp(0.1)))
        level = (1 + math.sqrt(0.5)) / 2
        assert level > 1 / (1 + math.exp(-1))
        between = violated = falls = 0
        for seed in range(30):
            rng = np.random.default_rng(seed)
            data = coupled(n, T, 0.999 * mu, seed, (-1, 0, 1)[seed % 3])
            # one number a sequence is its score, and the others share the rest unevenly
            phi = rng.choice([0.26, 0.5, 0.6, 0.73, 0.85, 0.999], n)
            share = rng.dirichlet(np.ones(T - 1), n)
            gaps = np.log(phi[:, None] / ((1 - phi[:, None]) * share)).ravel()
            run = TraceView(data, at(data, start_with_gaps(data, gaps)))
            assert check_assumption1(data, phi=0.25).all_hold
            velocity, score = run.gap_speed[0], np.exp(run.log_opt[0])[run.sequence]
            below = score <= level
            assert (velocity[below] >= 0).all()
            between += int((below & (score > 0.5)).sum())
            violated += int((run.gaps[0] < 1).sum())
            falls += int((velocity[~below] < 0).sum())
            rising = gap_checks(run)[0]
            assert rising.holds and rising.vacuous == (not below.any())
            if below.any():
                assert rising.value == velocity[below].min()
        assert between > 30 and violated > 30 and falls > 0

    def test_broken_part_i(self):
        """The pair on which convergence is not global: its score falls to nothing."""
        data = make_two_sample_trap()
        trace = train(data, NGD(0.1), 1000, record=[0, 1, 10, 100, 1000])
        assert_refused(check_lemma3(data, trace), "Assumption 1 fails")
        (score,) = softmax_checks(TraceView(data, trace))
        assert score.verdict == "fails" and score.values[-1] < 1e-183

    def test_steps_too_long(self):
        data = coupled(2, 2, 0.06, 0, 0)
        svm = solve_w_svm(data)
        longest = math.log(2) * float(svm.margin) / (1.2 * 0.06)
        assert check_lemma3(data, run_of(data, NGD(0.99 * longest)), svm=svm).all_hold
        assert_refused(check_lemma3(data, run_of(data, NGD(1.01 * longest)), svm=svm), "a step of")

    def test_changed_records(self):
        data = coupled(3, 2, 0.03, 1, 0)
        trace = run_of(data, W0=start_with_gaps(data, [-1.0, 0.5, 1.0]))
        assert check_lemma3(data, trace).all_hold
        low = np.append(trace.least_opt_score[:-1], 0.2)
        assert verdicts(check_lemma3(data, tampered(trace, least_opt_score=low)))[0] == "fails"
        keys = ["score", "rising_step", "fall_step", "change"]
        # from t = 0 to 1, in the sequence with score below 1/2
        for shift, wrong in ((1e-9, keys[3:]), (-0.5, keys)):
            gaps = trace.gaps.copy()
            gaps[1, 0] += shift
            table = check_lemma3(data, tampered(trace, gaps=gaps))
            assert failing(table) == wrong

    def test_phi_low_is_a_quarter_at_most(self):
        data = coupled(2, 2, 0.03, 1, 0)
        half = tampered(run_of(data), least_opt_score=np.full(len(DENSE), 0.26))
        score = check_lemma3(data, half)["score"]
        assert score.holds and score.bound == 0.25

    def test_score_before_the_step_decides(self):
        """One gap falls while the score goes from under 1/2 to above it."""
        data = Dataset(torch.eye(3).double()[None], [1], u=[1.0, 0.0, 0.0])
        trace = run_of(data, steps=1, W0=start_with_gaps(data, [-1.0, 5.0]))
        assert check_lemma3(data, trace)[2].holds
        gaps = trace.gaps.copy()
        gaps[1] = [10.0, 4.0]
        assert check_lemma3(data, tampered(trace, gaps=gaps))[2].verdict == "fails"

    def test_what_is_not_recorded_and_where_nothing_is_said(self):
        data = orthonormal()
        table = check_lemma3(data, train(data, NGD(0.1), 10, record=[0, 5, 10]))
        reasons = [check.reason for check in table if not check.applicable]
        assert reasons == ["no two consecutive steps are recorded"] * 2
        table = check_lemma3(data, run_of(data, W0=start_with_gaps(data, [2.0, 3.0])))
        assert verdicts(table)[1:3] == ["holds, vacuous"] * 2 and table.all_hold
        single = make_separation_pair()  # without cross terms
        assert check_lemma3(single, run_of(single))[-1].verdict == "holds, vacuous"
        low = start_with_gaps(data, [-800.0, 0.0])
        assert_refused(check_lemma3(data, run_of(data, W0=low)), "below the smallest float")


class TestFeasible:
    @FEW
    @given(st.integers(1, 3), few, seeds, positions)
    def test_at_the_limit_of_assumption1(self, n, T, seed, position):
        mu = 0.999 * min(1 / 15, 1 / 3 / (n * math.exp(0.1)))
        data = coupled(n, T, mu, seed, position)
        table = check_assumption1_feasible(data)
        assert table.all_hold, table
        assert table[0].bound >= table[1].bound
        plain = 1 - 3 * mu - 1.2 * (n - 1) * mu  # all tokens are of norm 1
        assert table[0].bound == pytest.approx(plain, rel=CLOSED_FORM)
        assert table[0].rounding == pytest.approx(64 * np.finfo(float).eps * n, abs=0)

    def test_bounds_on_the_orthonormal_instance(self):
        table = check_assumption1_feasible(orthonormal())
        assert [check.value for check in table] == pytest.approx([2, 2, 1], rel=CLOSED_FORM)
        assert [check.bound for check in table] == pytest.approx([1, 0.4, 0.1], rel=CLOSED_FORM)

    def test_ragged(self):
        whole = coupled(2, 3, 0.02, 3, 0)
        data = Dataset(whole.X, whole.y, whole.u, lengths=[3, 2])
        table = check_assumption1_feasible(data)
        assert table.all_hold
        rows = gap_rows(data)
        expected = rows.gram() @ torch.tensor([0.5, 0.5, 1.0], dtype=torch.float64)
        assert table[0].value == pytest.approx(float(expected.min()), rel=CLOSED_FORM)

    def test_refused(self):
        assert_refused(check_assumption1_feasible(make_two_sample_trap()), "Assumption 1 fails")
        zero = Dataset([[[0.0, 0.0], [1.0, 0.0]]], [1], u=[1.0, 0.0])
        assert_refused(check_assumption1_feasible(zero), "zero")
        with pytest.raises(DtypeError, match="svm"):
            check_assumption1_feasible(orthonormal(), svm=solve_w_svm(make_separation_pair()))

    def test_a_margin_that_is_too_small(self, monkeypatch):
        data = orthonormal()
        svm = dataclasses.replace(solve_w_svm(data), norm=100.0)
        assert verdicts(check_assumption1_feasible(data, svm=svm)) == ["holds", "holds", "fails"]

        def refuse(data):
            raise InfeasibleError("data", expected="rows", got="none", remedy="none")

        monkeypatch.setattr("attnbias.theorems.w.assumption1.solve_w_svm", refuse)
        assert verdicts(check_assumption1_feasible(data)) == ["holds", "holds", "fails"]


class TestLemma4:
    @FEW
    @given(**sizes, size=st.sampled_from([1.0, 10.0, 1000.0]))
    def test_holds_everywhere(self, n, T, seed, size):
        data, svm = equal_score_data(n, T, seed)
        for W in (random_start(data, size, seed), start_with_gaps(data, spread_gaps(data, 9, 1))):
            table = check_lemma4(data, at(data, W, svm), svm=svm)
            assert table[0].holds, table

    @pytest.mark.parametrize("rule", [GD(0.3), NGD(0.1), Polyak()])
    def test_holds_along_a_run(self, rule):
        data = make_example1(n=4, T=3, d=40)
        trace = run_of(data, rule)
        assert check_lemma4(data, trace).all_hold and check_gradient_bounds(data, trace).all_hold

    def test_attained(self):
        data = opposite_pair()
        table = check_lemma4(data, run_of(data))
        assert table.all_hold
        assert max(abs(check.slack) for check in table) < CLOSED_FORM

    def test_on_the_bad_pair(self):
        data = make_two_sample_trap()
        run = TraceView(data, train(data, NGD(0.1), 20_000))
        assert least_cosine(run) == pytest.approx(0.0693, abs=PRINTED_FOUR)
        assert toward_w_mm(run)[-1] == pytest.approx(0.1961, abs=PRINTED_FOUR)
        assert check_lemma4(data, run.trace).all_hold

    def test_broken_assumption2(self):
        data, W = unequal_scores()
        trace = at(data, W)
        assert_refused(check_lemma4(data, trace), "Assumption 2 fails")
        run = TraceView(data, trace)
        cosine = COSINE.along(run, toward_w_mm(run), least_cosine(run))
        assert cosine.verdict == "fails"
        assert cosine.value == pytest.approx(-0.4472, abs=PRINTED_FOUR)

    def test_progress_along_a_run(self):
        data = orthonormal()
        trace = run_of(data)
        table = check_lemma4(data, tampered(trace, path_length=2.1))
        assert verdicts(table) == ["holds", "fails"]
        table = check_lemma4(data, run_of(data, NGD(0.1, momentum=0.5)))
        assert verdicts(table) == ["holds", "not applicable"] and "momentum" in table[1].reason


class TestLemma5:
    @FEW
    @given(**sizes, size=st.sampled_from([0.0, 1.0, 10.0]))
    def test_holds_from_any_start(self, n, T, seed, size):
        data, svm = equal_score_data(n, T, seed)
        trace = run_of(data, NGD(0.5), W0=random_start(data, size, seed), svm=svm)
        table = check_lemma5(data, trace, svm=svm)
        assert all(check.holds or not check.applicable for check in table), table
        assert verdicts(table)[0] == "holds"

    def test_upper_side_is_attained(self):
        data = make_separation_pair()
        table = check_lemma5(data, run_of(data, NGD(0.5)))
        assert table.all_hold
        assert abs(table[0].slack) < CLOSED_FORM

    def test_start_against_w_mm(self):
        """W_0 = -8 W_mm: t_0 = 4 * 8 / 0.5 = 64, and the projection's bound bites from 32 on."""
        data = make_separation_pair()
        W0 = -8 * solve_w_svm(data).weights
        table = check_lemma5(data, train(data, NGD(0.5), 63, W0=W0))
        assert verdicts(table) == ["holds", "holds", "not applicable"]
        assert "t_0 = 64" in table[2].reason
        table = check_lemma5(data, train(data, NGD(0.5), 30, W0=W0))
        assert verdicts(table)[1] == "holds, vacuous"
        assert "from t = 32" in table[1].reason
        table = check_lemma5(data, train(data, NGD(0.5), 100, W0=W0))
        assert table.all_hold
        assert table[2].step.min() == 64

    def test_changed_records(self):
        data = orthonormal()
        trace = run_of(data)
        for name, factor, which in (("W_norm", 1.01, 0), ("gaps", 0.4, 1), ("W_norm", 0.2, 2)):
            table = check_lemma5(data, tampered(trace, **{name: factor}))
            assert verdicts(table)[which] == "fails"
        assert_refused(check_lemma5(data, train(data, NGD(0.1), 0))[:2], "no step after")


class TestLemma6:
    def test_bounds_of_a_draw(self):
        """Noise of variance 1/4 in 1000 dimensions, and l = log(6 (n T)^2 / delta)."""
        data = make_example1(n=3, T=3, d=1000, sigma=0.5, signal=7.0, position="first")
        table, logs = check_lemma6(data, delta=0.2), math.log(6 * 81 / 0.2)
        bounds = [1.63 * 250, 0.5 * 250, 1.9 / 4 * math.sqrt(1000 * logs)]
        bounds.append(7 / 2 * math.sqrt(2 * logs))
        assert [check.bound for check in table[:4]] == pytest.approx(bounds, rel=CLOSED_FORM)
        noise = data.X[:, 1:].reshape(6, 1000)
        products = noise @ noise.T
        sizes = products.diagonal().clone()
        values = [float(sizes.max()), float(sizes.min())]
        values.append(float((products - torch.diag(sizes)).abs().max()))
        values.append(float((data.X[:, 0] @ noise.T).abs().max()))
        assert [check.value for check in table[:4]] == pytest.approx(values, rel=CLOSED_FORM)
        rooms = [64 * np.finfo(float).eps * bound for bound in bounds]
        assert [check.rounding for check in table[:4]] == pytest.approx(rooms, abs=0)

    def test_holds_for_almost_all_draws(self):
        draws = (make_example1(n=3, T=2, d=170, seed=seed) for seed in range(20))
        tables = [check_lemma6(data, delta=0.5) for data in draws]
        assert sum(all(check.holds for check in table[:5]) for table in tables) >= 19

    def test_assumption1_from_the_threshold_on(self):
        """n = 1, T = 2 with a small score gap, so that the dimension is within reach."""
        options = {"n": 1, "T": 2, "opt_score": 0.01, "position": "first"}
        kappa = math.exp(0.01)
        needed = example1_threshold(1, 2, kappa, delta=0.1)
        table = check_lemma6(make_example1(d=needed + 1, **options))
        assert table.all_hold
        assert len(table) == 7
        small = check_lemma6(make_example1(d=1000, **options))
        assert verdicts(small) == ["holds"] * 5 + ["not applicable"] * 2
        assert f"d = {needed}" in small[5].reason

    def test_too_few_features_other_data_and_another_signal(self):
        assert_refused(check_lemma6(make_example1(n=3, T=2, d=100)), "16 l = 123")
        assert_refused(check_lemma6(make_two_sample_trap()), "make_example1")
        for delta in (0.0, 1.0):
            with pytest.raises(RangeError, match="delta"):
                check_lemma6(make_example1(n=3, T=2, d=1000), delta=delta)
        table = check_lemma6(make_example1(n=3, T=2, d=1000, signal=1.0))
        assert verdicts(table) == ["holds"] * 4 + ["not applicable"] * 3

    @pytest.mark.parametrize(("factor", "failing"), [(1.5, 0), (0.5, 1), (None, 2)])
    def test_noise_of_another_size_or_equal(self, factor, failing):
        data = make_example1(n=3, T=3, d=1000, position="first")
        X = data.X.clone() if factor is None else factor * data.X
        if factor is None:
            X[0, 1] = X[1, 2]
        other = Dataset(X, data.y, data.u / (factor or 1.0), meta=data.meta)
        assert verdicts(check_lemma6(other))[failing] == "fails"
