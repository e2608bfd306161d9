"""The report: its verdicts on sound, broken, tied and infeasible data, and its three forms."""

import dataclasses
import json
import math
import re
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import coherent_data
from orthonormal import orthonormal_pair as orthonormal
from scipy.special import lambertw
from tolerances import CLOSED_FORM

from attnbias import NGD, Dataset, fit_rate, make_example1, train
from attnbias.data import make_degenerate, make_two_sample_trap
from attnbias.diagnosis import diagnose as module
from attnbias.diagnosis.diagnose import diagnose
from attnbias.diagnosis.guarantees import GUARANTEES, HYPOTHESES, Guarantee, evaluate, hypotheses
from attnbias.errors import RangeError, SolverError
from attnbias.geometry.coherence import token_coherence
from attnbias.geometry.tokens import gap_rows

SQUARED = {"m2", "theorem6-strict", "unequal-strict"}


def infeasible() -> Dataset:
    """Two sequences that want opposite things, and a third that is in nobody's way."""
    X = torch.zeros(3, 2, 4, dtype=torch.float64)
    X[0, 0, 0], X[0, 1, 0], X[1, 0, 0], X[1, 1, 0] = 1, -1, -1, 1
    X[2, 0, 2], X[2, 1, 3] = 1, 1
    return Dataset(X, [1, 1, 1], u=[1.0, 0.0, 1.0, 0.0], name="infeasible")


def tied() -> Dataset:
    X = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    return Dataset(X, [1, 1], u=[1.0, 0.0], name="tied")


def unequal() -> Dataset:
    X = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.05, 0.0, 0.9]]]
    return Dataset(X, [1], u=[1.0, 0.5, 0.0], name="unequal")


def ragged() -> Dataset:
    X = torch.eye(6, dtype=torch.float64).reshape(2, 3, 6)
    return Dataset(X, [1, 1], u=[1.0, 0, 0, 1.0, 0, 0], lengths=[3, 2], name="ragged")


def two_close() -> Dataset:
    """All hypotheses hold, and a query that is nearly the other token limits the step."""
    return Dataset([[[1.0, 0.0], [0.02, 1.0]]], [1], u=[1.0, 0.0])


KINDS = (orthonormal, make_degenerate, infeasible, tied, unequal, ragged)


def applying(report) -> set:
    return {guarantee.key for guarantee in report.guarantees if guarantee.applies}


class TestVerdicts:
    def test_an_optimal_token_of_zeros_is_a_finding(self):
        X = [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
        report = diagnose(Dataset(X, [1, -1], u=[1.0, 0.0]))
        assert report.constants.b_o == 0 and report.separation["feasible"] is False
        assert [check.value for check in report.assumption1] == [math.inf] * 2
        assert "inf" in str(report) and json.dumps(report.to_dict())

    def test_everything_is_promised_on_orthonormal_tokens(self):
        report = diagnose(orthonormal(), step_size=0.5, target=0.0258)
        assert "falls under 0.25" in " ".join(str(report).split()) and "?" not in str(report)
        assert applying(report) == {guarantee.key for guarantee in GUARANTEES}
        assert all(hypothesis.holds for hypothesis in report.hypotheses.values())
        assert report.optimal["positions"] == {0: 1, 1: 1}
        assert report.separation["margin"] == pytest.approx(1, rel=CLOSED_FORM)
        assert report.separation["support"] == report.separation["rows"] == 2
        assert report.forecast["bound"] == "proved"
        # M1 with Lambda exp(Lambda) = 32: 2 (2 Lambda + 0.5) / (0.5 t) = 0.0258
        promised = 4 * (2 * float(lambertw(32).real) + 0.5) / 0.0258
        assert math.exp(report.forecast["bound_log"]) == pytest.approx(promised, rel=CLOSED_FORM)

    def test_degenerate_support_loses_the_squared_rates_alone(self):
        report = diagnose(make_degenerate())
        assert applying(report) == {guarantee.key for guarantee in GUARANTEES} - SQUARED
        assert report.hypotheses["strict"].holds is False
        assert report.separation["smallest_excess"] == pytest.approx(0, abs=CLOSED_FORM)
        assert math.isnan(report.forecast["estimate"])
        assert any("(log t)^2 / t^2" in sentence for sentence in report.limits)

    def test_low_dimension_loses_assumption1_and_all_that_needs_it(self):
        report = diagnose(make_example1(n=5, T=3, d=50))
        assert applying(report) == {"lemma4", "lemma5", "along-a-run", "m3"}
        assert report.forecast["bound"] == "conditional"

    def test_a_long_step_is_not_proved(self):
        data = Dataset([[[1.0, 0.0], [0.02, 0.99]]], [1], u=[1.0, 0.0])
        assert applying(diagnose(data)) == {guarantee.key for guarantee in GUARANTEES}
        limit = diagnose(data).forecast["largest_step_size"]
        assert diagnose(data, step_size=limit).forecast["bound"] == "proved"
        assert diagnose(data, step_size=1.01 * limit).forecast["bound"] == "conditional"

    def test_unequal_scores_leave_almost_nothing(self):
        report = diagnose(unequal())
        assert applying(report) == {"m3"}
        assert report.forecast["bound"] == "none"
        assert "Assumption 2" in report.to_dict()["in_short"]

    def test_unequal_scores_of_coherent_tokens_are_promised(self):
        report = diagnose(coherent_data(1))
        assert applying(report) == {"m3", "unequal", "unequal-strict"}
        assert "provably turns" in report.to_dict()["in_short"]
        words = " ".join(str(report).split())
        assert "Coherence: holds" in words and "counts from where all sequences" in words
        settling = token_coherence(coherent_data(1)).settling_path
        assert f"after a path of {settling:.3g} at the latest" in words and "?" not in words
        assert "on a wrong token" not in words and "on a wrong token" in str(diagnose(unequal()))
        apart = diagnose(coherent_data(1, room=1.5))
        assert applying(apart) == {"m3"} and "Coherence: fails" in str(apart)
        assert apart.to_dict()["coherence"][1]["verdict"] == "fails"

    def test_infeasible_is_a_finding_with_its_tokens(self):
        data = infeasible()
        report = diagnose(data)
        assert report.svm is None and report.hypotheses["feasible"].holds is False
        assert applying(report) == set()
        weights = {(b["sequence"], b["token"]): b["weight"] for b in report.separation["blocking"]}
        assert set(weights) == {(0, 1), (1, 0)}
        rows = gap_rows(data)
        places = zip(rows.sequence.tolist(), rows.token.tolist(), strict=True)
        a = torch.tensor([weights.get(place, 0.0) for place in places]).double()
        assert float(rows.combine(a).norm()) <= CLOSED_FORM
        assert "token 1 of sequence 0" in str(report)

    def test_tie_is_a_finding_with_its_sequences(self):
        report = diagnose(tied())
        assert report.optimal["tied_sequences"] == [1] and "sequence 1" in str(report)
        assert report.assumption1 is None and report.constants is None
        assert report.hypotheses["feasible"].holds is None
        assert {guarantee.missing for guarantee in report.guarantees} == {("optimal",)}

    def test_unfinished_solver_is_a_finding(self, monkeypatch):
        def stop(data):
            raise SolverError("solve_w_svm", expected="a certificate", got="none", remedy="wait")

        monkeypatch.setattr(module, "solve_w_svm", stop)
        report = diagnose(orthonormal())
        assert report.hypotheses["feasible"].holds is None and "not decided" in str(report)
        assert "certificate" in report.separation["message"]

    def test_padding_never_counts(self):
        report = diagnose(ragged())
        assert report.separation["rows"] == 3
        assert (report.summary["shortest"], report.summary["longest"]) == (2, 3)
        assert report.hypotheses["assumption1"].holds

    def test_float32_is_lifted(self):
        data = make_example1(n=4, T=3, d=40)
        single = diagnose(data.to(dtype=torch.float32))
        assert single.hypotheses["assumption2"].holds
        margin = diagnose(data).separation["margin"]
        assert single.separation["margin"] == pytest.approx(margin, 1e-5)
        assert "lifted to float64" in str(single)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), scale=st.floats(1e-2, 1e2))
def test_order_of_sequences_and_scale_of_the_decoder(seed, scale):
    data = make_example1(n=4, T=3, d=16, seed=seed)
    order = torch.randperm(4, generator=torch.Generator().manual_seed(seed))
    a, b = diagnose(data), diagnose(data.with_decoder(scale * data.u))
    assert a.optimal["positions"] == b.optimal["positions"]
    assert a.separation == b.separation and a.assumption1[0] == b.assumption1[0]
    c = diagnose(data[order])
    assert applying(a) == applying(c) and a.optimal["positions"] == c.optimal["positions"]
    assert c.separation["margin"] == pytest.approx(a.separation["margin"], rel=1e-10)


class TestWords:
    def test_signs_are_explained_where_they_occur_and_only_there(self):
        for make in KINDS:
            *body, signs = diagnose(make()).sections()
            said = " ".join(" ".join(line) for section in body for line in section.lines)
            explained = " ".join(text for _, text in signs.lines)
            assert signs.title == "Signs" and len(signs.lines) <= 3
            for sign in ("M1", "M2", "M3", "[b]", "[c]", "phi_low", "mu", "Xi"):
                occurs = re.search(rf"(?<!\w){re.escape(sign)}(?!\w)", said) is not None
                assert (f"{sign}: " in explained) == occurs, sign

    def test_why_something_is_not_promised(self):
        text = " ".join(str(diagnose(unequal())).split())
        assert "Not promised, because Assumption 2 fails: Lemma 3" in text
        assert "because Definition 1 (unique optimal tokens) fails" in " ".join(
            str(diagnose(tied())).split()
        )
        strict = " ".join(str(diagnose(make_degenerate())).split())
        assert "because strict complementarity fails" in strict

    @pytest.mark.parametrize(
        ("make", "options", "words"),
        [
            (tied, {}, "Drop the repeated tokens"),
            (infeasible, {}, "1 of 0, 0 of 1"),
            (orthonormal, {}, "Train: train(data, NGD(0.1),"),
            (orthonormal, {"steps": 0}, "diagnose(data, steps=2000)"),
            (make_two_sample_trap, {}, "solve_w_svm(data, trace.selected)"),
            (make_two_sample_trap, {"steps": 1}, "Run longer: diagnose(data, steps=1000)"),
            (make_example1, {"target": 1e-300}, "Take a coarser target"),
            (two_close, {"step_size": 1000.0}, "Take a step size of at most"),
        ],
    )
    def test_what_to_do_next(self, make, options, words):
        report = diagnose(make(), **options)
        assert words in " ".join(report.next)
        assert [section.title for section in report.sections()][-2] == "What to do next"

    def test_the_advice_to_train_is_good(self):
        data = make_example1(n=6, T=4, d=60, sigma=60**-0.5)
        said = re.match(r"Train: train\(data, NGD\((\S+)\), (\d+)\)", diagnose(data).next[0])
        trace = train(data, NGD(float(said[1])), int(said[2]))
        assert trace.W_alignment_error[-1] <= 0.01

    def test_gd_s_step_size_stands_where_gd_is_spoken_of(self):
        report = diagnose(make_example1(n=5, T=3, d=50))
        assert f"at most {report.constants.largest_gd_step_size:.4g} keeps" in str(report)
        apart = str(diagnose(coherent_data(1)))  # Lemma 3 needs Assumption 2
        assert "Lemma 3 asks" not in apart and "From W_0 = 0, with steps no longer than" in apart

    def test_a_repeated_token_contradicts_nothing(self):
        """The dual weight is on one of two equal rows; the other is no idle constraint."""
        X = torch.eye(4, dtype=torch.float64)[None].repeat(1, 2, 1)[:, [0, 1, 2, 5]]
        data = Dataset(X, [1], u=[1.0, 0.2, 0, 0])
        report = diagnose(data, target=1e-4)
        part = report.separation
        assert part["strictly_complementary"] and part["support"] == part["rows"] == 3
        assert part["smallest_excess"] == math.inf and math.isfinite(report.forecast["estimate"])
        trace = train(data, NGD(0.1), 30_000)
        assert abs(fit_rate(trace.step, trace.W_alignment_error, (1e3, 3e4)).exponent + 2) < 5e-3

    def test_the_median_of_an_even_number(self):
        X = torch.eye(4, dtype=torch.float64).reshape(2, 2, 4)
        assert diagnose(Dataset(X, [1, 1], u=[1.0, 0, 4, 0])).optimal["median_gap"] == 2.5


class TestForms:
    @pytest.mark.parametrize("make", KINDS)
    def test_text_json_and_html_say_the_same(self, make):
        report = diagnose(dataclasses.replace(make(), name="<script>alert(1)</script>"))
        assert repr(report) == str(report)
        lines = str(report).splitlines()
        assert max(map(len, lines)) <= 80
        assert all(line == line.rstrip() for line in lines)
        assert {"In short", "What the theory promises here"} <= set(lines)
        text = json.dumps(report.to_dict(), allow_nan=False)
        assert json.loads(text) == report.to_dict()
        assert set(report.to_dict()["hypotheses"]) == set(HYPOTHESES)
        said = "".join(ElementTree.fromstring(report._repr_html_()).itertext())
        assert "<script>" not in report._repr_html_() and "<script>" in said
        for section in report.sections():
            for label, text in section.lines:
                assert label in said and text in said

    def test_long_names_and_many_ties_stay_short(self):
        X = torch.ones(50, 2, 1, dtype=torch.float64)
        report = diagnose(Dataset(X, torch.ones(50), u=[1.0], name="tokens of " + "x" * 200))
        assert max(map(len, str(report).splitlines())) <= 80
        assert "and 44 more" in str(report)


class TestPromises:
    def test_needs_are_known_and_keys_unique(self):
        assert {key for guarantee in GUARANTEES for key in guarantee.needs} <= set(HYPOTHESES)
        assert len({guarantee.key for guarantee in GUARANTEES}) == len(GUARANTEES)

    def test_one_more_promise_plugs_in(self):
        extra = Guarantee("mine", "Mine", "Xi is {Xi:.3g}.", ("feasible",), "here", "c")
        report = diagnose(orthonormal(), guarantees=(*GUARANTEES, extra))
        assert report.guarantees[-1].statement == "Xi is 1."
        assert "Mine: Xi is 1. [c]" in str(report)
        with pytest.raises(RangeError, match="luck"):
            diagnose(orthonormal(), guarantees=(dataclasses.replace(extra, needs=("luck",)),))

    def test_failing_needs_come_before_undecided_ones(self):
        guarantee = Guarantee("p", "P", "{Xi:.3g}", ("optimal", "feasible", "strict"), "", "c")
        held = evaluate((guarantee,), hypotheses({"optimal": True, "feasible": False}), None)[0]
        assert held.missing == ("feasible",) and held.statement == "?"

    def test_without_w_mm_nothing_is_said_about_turning_to_it(self):
        report = diagnose(infeasible())
        assert report.hypotheses["assumption1"].holds is False
        assert not any("Assumption 1" in sentence for sentence in report.limits)
