"""What checks read of a run: rebuilt from gaps and scores, against the weights themselves."""

import inspect
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from instances import not_optimal, random_data
from joint_instances import orthogonal
from lemma_instances import tampered

from attnbias import (
    GD,
    NGD,
    Dataset,
    Polyak,
    make_example1,
    make_separation_pair,
    solve_w_svm,
    theorems,
    train,
)
from attnbias.errors import DtypeError, InfeasibleError, NonFiniteError, RangeError, ShapeError
from attnbias.geometry.svm import certify
from attnbias.model import attention_map, empirical_risk, predict
from attnbias.rules import Rule
from attnbias.theorems.joint.conditions import dm_threshold
from attnbias.theorems.joint.constants import power_sum
from attnbias.theorems.run import TraceView
from attnbias.theorems.statements import (
    GRADIENT,
    fails,
    needs_gd,
    needs_joint,
    needs_ngd,
    needs_norms,
    needs_polyak,
    needs_start,
    needs_zero_start,
)
from attnbias.theorems.w.sparsification import rate_bound

# the closed form against autograd, both in float64 before the softmax saturates
CLOSE = 1e-11


def start(d, norm=0.5, seed=1):
    W = torch.randn(d, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return W * norm / W.norm()


CASES = {
    "Assumption 2": make_example1(n=3, T=4, d=20, seed=3),
    "general scores": random_data(3, 4, 30, seed=0),
    "ragged": random_data(3, 4, 30, seed=0, lengths=[4, 2, 3], scale=2.5),
}


def run_of(data, rule=None, steps=6, **settings):
    rule = rule or NGD(0.05)
    settings = {"W0": start(data.d), "record": range(steps + 1)} | settings
    return TraceView(data, train(data, rule, steps, **settings)), settings["W0"]


@pytest.mark.parametrize("name", CASES)
def test_softmax_margin_and_loss_are_those_of_the_model(name):
    data = CASES[name]
    run, _ = run_of(data)
    for r, step in enumerate(run.step):
        W = train(data, NGD(0.05), int(step), W0=start(data.d)).W
        attention = attention_map(data.X, W, lengths=data.lengths).numpy()
        opt = run.rows.opt.numpy()
        np.testing.assert_allclose(
            np.exp(run.log_opt[r]), attention[range(data.n), opt], rtol=CLOSE
        )
        others = attention[run.sequence, run.rows.token.numpy()]
        np.testing.assert_allclose(np.exp(run.log_other[r]), others, rtol=CLOSE)
        margin = (data.y * predict(data.X, W, data.u, lengths=data.lengths)).numpy()
        np.testing.assert_allclose(run.margin[r], margin, rtol=1e-10, atol=CLOSE)


@pytest.mark.parametrize("name", CASES)
def test_the_weights_give_the_gradient_of_autograd(name):
    data = CASES[name]
    run, W0 = run_of(data)
    W = W0.clone().requires_grad_(True)
    empirical_risk(data, W).backward()
    descent = run.rows.combine(torch.from_numpy(run.p[0])) * np.exp(run.log_scale[0]) / run.n
    np.testing.assert_allclose(descent.numpy(), -W.grad.numpy(), rtol=0, atol=CLOSE)
    norm = float(W.grad.norm())
    assert run.grad_size[0] * np.exp(run.log_scale[0]) == pytest.approx(norm, rel=1e-10)
    h = run.rows.gaps(start(data.d, seed=5)).numpy()
    along = float((-W.grad * start(data.d, seed=5)).sum()) / norm
    assert run.toward(h)[0] == pytest.approx(along, abs=1e-10)


def test_the_iterate_along_and_across_and_its_constants():
    data = CASES["Assumption 2"]
    run, _ = run_of(data, steps=50, record=[0, 50])
    W, unit = run.trace.W, run.svm.weights * run.Xi
    along = float((W * unit).sum())
    assert run.along[-1] == pytest.approx(along, rel=1e-10)
    assert run.across[-1] == pytest.approx(float((W - along * unit).norm()), rel=1e-8)
    assert run.constants().phi_low == min(0.25, float(run.trace.least_opt_score[-1]))
    assert TraceView(data, run.trace, phi=0.01).constants().phi_low == 0.01
    assert run.constants(phi=0.01).phi_low == 0.01 and run.constants().Xi == run.Xi


KINDS = {"GD": needs_gd, "NGD": needs_ngd, "Polyak": needs_polyak}


@pytest.mark.parametrize(
    ("rule", "kind"), [(GD(0.1), "GD"), (NGD(0.1), "NGD"), (Polyak(), "Polyak")]
)
def test_hypotheses_in_words(rule, kind):
    run, _ = run_of(CASES["Assumption 2"], rule)
    assert run.kind == kind
    own = KINDS[kind]
    assert not fails(run, own, *GRADIENT, needs_start)
    assert needs_zero_start(run) == "W_0 = 0 needed"
    assert fails(run, own, needs_joint, lambda run: "first") == needs_joint(run) != ""
    assert fails(run, own, lambda run: "first", needs_joint) == "first"
    assert all(f"not {kind}" in asks(run) for name, asks in KINDS.items() if name != kind)


@pytest.mark.parametrize(("gap_power", "norm_power"), [(0.5, 0.0), (0.0, -2.0), (1.0, -1.0)])
def test_a_rule_is_named_by_both_its_powers(gap_power, norm_power):
    """A step of (L - L*)^(1/2) was taken for GD: Theorem 6 held."""
    data = CASES["Assumption 2"]
    rule = Rule("own", math.log(0.1), gap_power, norm_power)
    trace = train(data, rule, 20)
    run = TraceView(data, trace)
    for kind, asks in KINDS.items():
        assert asks(run) == f"for {kind}, not a rule of powers {gap_power:g} and {norm_power:g}"
    for check in (theorems.check_theorem6, theorems.check_theorem7, theorems.check_theorem1):
        assert not any(each.applicable for each in check(data, trace))


def other_example(seed):
    """Example 1 of another seed: the same shapes, and the same scores."""
    return make_example1(n=3, T=4, d=20, seed=seed)


BAD = [
    (ShapeError, "gaps", lambda data, run: (make_example1(n=4, T=4, d=20), run)),
    (DtypeError, "Trace", lambda data, run: (data, data)),
    (DtypeError, "Dataset", lambda data, run: (run, run)),
    (DtypeError, "SVMSolution", lambda data, run: (data, run, "none")),
    (
        ShapeError,
        "record",
        lambda data, run: (data, replace(run, step=run.step[:0], gaps=run.gaps[:0])),
    ),
    (ShapeError, "no gaps", lambda data, run: (data, replace(run, gaps=None))),
    (ShapeError, "scores", lambda data, run: (data, replace(run, scores=np.zeros((2, 3, 5))))),
    (
        DtypeError,
        "lacks loss",
        lambda data, run: (data, replace(run, meta={"steps": 3, "rule_parameters": {}})),
    ),
    (RangeError, "do not fit", lambda data, run: (data, replace(run, gaps=np.nan * run.gaps))),
    (RangeError, "do not fit", lambda data, run: (other_example(4), run)),
    (RangeError, "do not fit", lambda data, run: (other_example(4).with_decoder(data.u), run)),
    (RangeError, "of these data", lambda data, run: (data, run, solve_w_svm(other_example(4)))),
]


@pytest.mark.parametrize(("error", "words", "given"), BAD)
def test_a_trace_or_an_svm_of_other_data_is_refused(error, words, given):
    data = CASES["Assumption 2"]
    trace = train(data, NGD(0.1), 3)
    assert not needs_zero_start(TraceView(data, trace))
    with pytest.raises(error, match=words):
        TraceView(*given(data, trace))


def test_infeasible_data_and_too_many_numbers_are_refused(monkeypatch):
    data = Dataset([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]], [1, -1], u=[1.0, 0.0])
    with pytest.raises(InfeasibleError):
        TraceView(data, train(data, NGD(0.1), 3, svm=False))
    run, _ = run_of(CASES["Assumption 2"])
    run.N = 5000
    with pytest.raises(RangeError, match="Gram"):
        run.K  # noqa: B018
    monkeypatch.setattr("attnbias.theorems.trace_validation._MOST", 35)
    data = CASES["Assumption 2"]
    TraceView(data, train(data, NGD(0.1), 2, record=[0, 1, 2]))
    with pytest.raises(RangeError, match="4 records of 9 rows"):
        TraceView(data, train(data, NGD(0.1), 3, record=[0, 1, 2, 3]))


def test_joint_traces_and_saved_ones_are_known_by_their_data(tmp_path):
    data, rule = CASES["Assumption 2"], NGD(0.1, decay=(2 / 3, 1))
    joint = train(data, rule, 5, train_u=True)
    with pytest.raises(RangeError, match="do not fit"):
        TraceView(other_example(4), joint)
    for good in (train(data, NGD(0.1), 5), joint):
        loaded = type(good).load(good.save(tmp_path / "trace.npz"))
        assert np.array_equal(TraceView(data, loaded).gaps, good.gaps)


def test_without_the_last_record_the_decoder_alone_tells():
    """W is that of the last iteration: it says nothing of a record before it."""
    data = CASES["Assumption 2"]
    trace = train(data, NGD(0.1), 5, record=[0, 2])
    assert TraceView(data, trace).step[-1] == 2
    with pytest.raises(RangeError, match="do not fit"):
        TraceView(other_example(4), trace)


def checks_with_an_svm():
    """Every check of the library that takes a solution from its caller."""
    for name, value in vars(theorems).items():
        own = inspect.isfunction(value) and value.__module__.startswith(theorems.__name__)
        if own and name.startswith("check_") and "svm" in inspect.signature(value).parameters:
            yield value


CHECKS = {check.__name__: check for check in checks_with_an_svm()}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_solution_that_is_not_optimal_is_refused(check):
    """Before, its duality gap (2 and more) was taken for rounding, and most checks held."""
    data = CASES["Assumption 2"]
    trace, svm = train(data, NGD(0.1), 3), solve_w_svm(data)
    given = {"data": data, "trace": trace, "opt": data.opt, "loss": "exponential"}
    asked = inspect.signature(check).parameters
    given = {name: given[name] for name in given if name in asked}
    for kind in ("longer", "random"):
        with pytest.raises(RangeError, match="svm: expected an optimal solution"):
            check(**given, svm=not_optimal(svm, kind))
    check(**given, svm=svm)


def test_the_rounding_of_a_solution_is_what_the_solver_leaves():
    data = CASES["Assumption 2"]
    trace, svm = train(data, NGD(0.1), 3), solve_w_svm(data)
    assert TraceView(data, trace, certify(svm.rows, (1 + 1e-8) * svm.dual)).norm_rounding() < 1e-7
    with pytest.raises(RangeError, match="gap 1e-05"):
        TraceView(data, trace, certify(svm.rows, (1 + 1e-5) * svm.dual))


def test_single_precision_tokens_are_read_in_double():
    data = Dataset(
        CASES["ragged"].X.float(), CASES["ragged"].y, CASES["ragged"].u.float(), lengths=[4, 2, 3]
    )
    run, _ = run_of(data)
    assert run.gaps.dtype == run.K.dtype == np.float64


NAN, START = math.nan, start(20)
CONDITIONS = (theorems.check_condition1, theorems.check_condition2)
BOUNDED = (theorems.check_lemma7, theorems.check_rate, theorems.check_theorem1)
JOINT = [
    check for check in CHECKS.values() if "assume_conditions" in inspect.signature(check).parameters
]


def run_checks():
    wanted = {"data", "trace"}
    found = {getattr(theorems, name) for name in theorems.__all__ if name.startswith("check_")}
    return sorted(
        (check for check in found if wanted <= inspect.signature(check).parameters.keys()),
        key=lambda check: check.__name__,
    )


def test_keys_name_the_checks_of_a_table_in_its_order():
    """Whatever the run: here one that has no hypothesis, and one of Eq. 10."""
    data, pair = orthogonal(), make_separation_pair()
    joint = train(data, NGD(0.1, decay=(2 / 3, 1)), 3, train_u=True)
    for given in ((pair, train(pair, NGD(0.1), 3, loss="logistic")), (data, joint)):
        tables = {check.__name__: check(*given) for check in run_checks()}
        keys = {name: [each.key for each in table] for name, table in tables.items()}
        assert all(each and len(set(each)) == len(each) and all(each) for each in keys.values())
        assert keys["check_theorem6"] == ["step", "height", "rate", "ceiling", "rate_low"]
        assert keys["check_rate"] == ["start", "growth", "outward", "across", "rate"]
        assert keys["check_theorem7"][:4] == ["step_low", "step_high", "path", "rate"]
        assert keys["check_gd_lower_bound"] == ["closed_form", "gap_low", "gap_high", "rate_low"]


@pytest.mark.parametrize("rule", [GD(1e-160), GD(1e-170), NGD(1e-160), NGD(1e-320)])
def test_no_proved_statement_fails_where_the_norm_of_w_underflows(rule):
    data = make_separation_pair()
    trace = train(data, rule, 100)
    for check in run_checks():
        assert "fails" not in [each.verdict for each in check(data, trace)]


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e12])
def test_a_norm_of_zero_is_known_where_all_gaps_are_zero_to_rounding(size):
    """Steps there and back leave a rounding of the largest gap, whatever its size."""
    data = make_separation_pair()
    trace = train(data, NGD(size), 10)
    gaps = trace.gaps.copy()
    for rest, known in ((1e-13, True), (1e-3, False)):
        gaps[5] = rest * gaps.max()
        norm = np.where(trace.step == 5, 0.0, trace.W_norm)
        view = TraceView(data, tampered(trace, W_norm=norm, gaps=gaps))
        assert (needs_norms(view) == "") == known


@pytest.mark.parametrize("factor", [0.0, np.inf])
def test_a_recorded_norm_that_is_not_known_leaves_every_statement_undecided(factor):
    data = make_separation_pair()
    trace = train(data, NGD(0.5), 10)
    trace = tampered(trace, W_norm=np.where(trace.W_norm > 0, factor, 0.0))
    for check in (theorems.check_rate, theorems.check_theorem1, theorems.check_lemma5):
        assert all("such a norm is not known" in each.reason for each in check(data, trace))


@pytest.mark.parametrize("gap", [660.0, 700.0, 800.0, 2000.0])
def test_theorem_7_at_score_gaps_whose_exponential_underflows(gap):
    data = Dataset([[[1.0, 0.0], [0.0, 1.0]]], [1], u=[gap, 0.0])
    for rule in (Polyak(), Polyak(max_step=10.0)):
        table = theorems.check_theorem7(data, train(data, rule, 100))
        assert "fails" not in [each.verdict for each in table]
        assert ("underflows" in table[0].reason) == (gap >= 700)


def test_arguments_of_a_view_and_of_its_methods_are_checked():
    data = CASES["Assumption 2"]
    trace = train(data, NGD(0.1), 10)
    run = theorems.TraceView(data, trace)
    with pytest.raises(DtypeError, match="cross"):
        theorems.TraceView(data, trace, cross="yes")
    with pytest.raises(RangeError, match="phi"):
        run.constants(-1.0)
    for method in (run.per_sequence, run.toward):
        with pytest.raises(ShapeError):
            method([1.0, 2.0])
        with pytest.raises(DtypeError):
            method("words")


BAD_VALUES = [
    (CONDITIONS, RangeError, {"step_size": [0.0, -1.0], "decay": [(1.5, 1), (-0.1, 1), (0.5, 2)]}),
    (CONDITIONS, DtypeError, {"step_size": ["0.1"], "decay": [0.5]}),
    (CONDITIONS, ShapeError, {"u0": [torch.zeros(3)], "W0": [START[0]]}),
    (CONDITIONS, NonFiniteError, {"u0": [torch.full((20,), NAN)]}),
    ([dm_threshold], RangeError, {"n": [0], "alpha": [0.0], "T": [1], "delta": [0.0]}),
    ([theorems.check_lemma1], RangeError, {"t0": [-1]}),
    ([theorems.check_lemma2], RangeError, {"omega": [0], "delta": [0, 1], "zeta": [-1, 0]}),
    ([theorems.check_lemma2], DtypeError, {"omega": ["small"]}),
    ([theorems.check_lemma2], ShapeError, {"W0": [START[:3]]}),
    ([theorems.check_lemma6], RangeError, {"delta": [0, 1]}),
    ([theorems.check_lemma6], DtypeError, {"data": [[1, 2]]}),
    ([theorems.check_lemma7], RangeError, {"eps": [0, [1.0, -1]]}),
    ([theorems.check_lemma7], DtypeError, {"eps": ["a"]}),
    (BOUNDED, RangeError, {"phi": [-1, 0, 2.0]}),
    (BOUNDED, DtypeError, {"phi": ["small"], "svm": [3]}),
    (BOUNDED, NonFiniteError, {"phi": [NAN]}),
    ([theorems.check_fast_rate], RangeError, {"growth": [0, 1.5]}),
    ([theorems.check_fast_rate], DtypeError, {"growth": [None]}),
    (JOINT, DtypeError, {"assume_conditions": ["yes"]}),
]


# more than a machine word or a float holds, in every form that an index or a count comes in
BEYOND = [10**19, 10**400, np.uint64(2**64 - 1), np.array([2**64 - 1]), [10**400], slice(10**400)]


@pytest.mark.parametrize("value", [*BEYOND, "a", slice("a")], ids=repr)
def test_indices_and_counts_of_any_size_are_taken_or_refused_by_name(value):
    data = CASES["Assumption 2"]
    run = TraceView(data, train(data, NGD(0.1), 10))
    for function in (partial(power_sum, p=0.5), partial(rate_bound, run)):
        try:
            found = function(value)
        except (RangeError, DtypeError):
            continue
        assert not np.isnan(found).any()
    for t in (-(10**19), -1, [math.nan]):
        with pytest.raises(RangeError, match="t: expected counts of terms"):
            power_sum(t, 0.5)


@pytest.mark.parametrize(
    ("check", "error", "name", "value"),
    [
        (check, error, name, value)
        for checks, error, values in BAD_VALUES
        for check in checks
        for name, several in values.items()
        for value in several
    ],
)
def test_malformed_input_is_refused(check, error, name, value):
    data = CASES["Assumption 2"]
    trace = train(data, NGD(0.1), 10)
    given = {"data": data, "trace": trace, "W0": START, "omega": 0.1, "step_size": 0.1}
    given |= {"n": 3, "alpha": 3.4}
    asked = inspect.signature(check).parameters
    given = {each: given[each] for each in given if each in asked}
    with pytest.raises(error, match="expected .*; got "):
        check(**given | {name: value})
