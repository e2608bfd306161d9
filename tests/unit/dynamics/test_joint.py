"""Joint training of W and u: printed numbers, autograd, named ends, refusals."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import (
    EQ_10,
    FEW,
    JOINT_ENGINES,
    JOINT_RULES,
    SERIES,
    assert_same_run,
    random_data,
    random_start,
    seeds,
    start_decoder,
)
from joint_instances import orthogonal
from plain_loop import autograd_run
from tolerances import AUTOGRAD, CLOSED_FORM, FORMS, PRINTED_FIVE_RELATIVE, PRINTED_FOUR_RELATIVE

from attnbias import GD, NGD, Dataset, Polyak, Trace, solve_u_svm, solve_w_svm, train
from attnbias.dynamics import arguments
from attnbias.dynamics.trace import OF_OPTIMAL
from attnbias.errors import DtypeError, InfeasibleError, RangeError
from attnbias.theorems.run import TraceView

NAMES = (*SERIES, "log_u_step_size", "u_norm", "u_alignment_error", "path_length")
NAMES += ("u_path_length", "least_opt_score", "gaps", "scores")


def joint(data, rule, steps, form=("auto", "auto"), **options) -> Trace:
    return train(data, rule, steps, train_u=True, engine=form[0], coordinates=form[1], **options)


def joint_data(n, T, d, *, seed, lengths=None) -> Dataset:
    """Gaussian tokens whose optimal one stands anywhere; no decoder."""
    data = random_data(n, T, d, seed=seed, lengths=lengths)
    generator = torch.Generator().manual_seed(seed)
    opt = (torch.rand(n, generator=generator) * data.lengths).long()
    return Dataset(data.X, data.y, lengths=lengths, name=f"joint {seed}", opt=opt)


@pytest.mark.parametrize("form", JOINT_ENGINES[:2])
def test_printed_losses_of_equation_10_and_without_decay_of_u(form):
    eta, record = 0.0145 / (3 * 2**0.5), [1, 10, 100, 1000, 10_000]
    trace = joint(orthogonal(), NGD(eta, decay=EQ_10), 10**4, form, record=record)
    printed = [-0.0012737, -0.0052582, -0.0146946, -0.0352731, -0.0797373]
    np.testing.assert_allclose(trace.log_loss, printed, rtol=PRINTED_FIVE_RELATIVE)
    bound = [-0.00096667, -0.0039848, -0.011117, -0.026639, -0.060114]
    assert (trace.log_loss <= bound).all()
    assert (trace.gaps >= 0).all() and trace.least_opt_score[-1] == 0.5
    rule, record = NGD(0.0102530, decay=(0, 1)), [1000, 10_000, 50_000]
    trace = joint(orthogonal(), rule, 50_000, form, record=record)
    printed = [-3.8772, -38.968, -195.52]
    np.testing.assert_allclose(trace.log_loss, printed, rtol=PRINTED_FOUR_RELATIVE)
    assert (trace.log_loss <= [-2.90, -29.0, -145]).all()


@pytest.mark.parametrize("form", JOINT_ENGINES)
@pytest.mark.parametrize("rule", [NGD(0.5), NGD(0.5, decay=EQ_10)], ids=repr)
def test_the_first_step_of_W_is_void(form, rule):
    """From u = 0 all scores tie, grad_W = 0, and 0/0 = 0: W_1 = W_0, exactly."""
    data = joint_data(3, 4, 12, seed=1)
    start = random_start(data, 0.5, 0)
    trace = joint(data, rule, 2, form, W0=start, record=[0, 1, 2])
    assert trace.log_step_size[0] == -math.inf and trace.step_size[0] == 0
    assert np.isfinite(trace.log_u_step_size).all() and np.isfinite(trace.log_grad_norm).all()
    assert trace.path_length.tolist()[:2] == [0, 0] and trace.path_length[2] > 0
    one = joint(data, rule, 1, form, W0=start, record=[1])
    assert torch.equal(one.W, start) and float(one.u.norm()) == pytest.approx(0.5)


@pytest.mark.parametrize("form", JOINT_ENGINES)
@pytest.mark.parametrize("rule", [NGD(0.5), NGD(0.5, normalise="shared"), GD(0.5)], ids=repr)
def test_a_vanishing_gradient_of_u_moves_W_alone(form, rule):
    """Under uniform attention the tokens' mean is 0, and with it grad_u; grad_W is not."""
    data = Dataset([[[1.0, 0.0], [-1.0, 0.0]]], [1], opt=[0])
    u0 = torch.tensor([1.0, 0.0], dtype=torch.float64)
    trace = joint(data, rule, 2, form, u0=u0, record=[0, 1, 2])
    own = rule.norm_power == -1 and rule.normalise == "separate"
    assert (trace.log_u_step_size[0] == -math.inf) == own
    assert trace.u_path_length[:2].tolist() == [0, 0] and trace.path_length[1] > 0
    assert trace.u_path_length[2] > 0


@pytest.mark.parametrize("form", JOINT_ENGINES)
@pytest.mark.parametrize("rule", [GD(1e5), NGD(1e3, max_step=1e5), Polyak(1e5)], ids=repr)
def test_step_size_keeps_its_digits_beside_a_large_log_loss(form, rule):
    """The rule's own number, or its cap, to the last digit where the rounding of log L is 1e-8."""
    data = joint_data(1, 3, 8, seed=5)
    u0 = 1e8 * solve_u_svm(data).weights
    trace = joint(data, rule, 2, form, u0=u0, record=[0, 1, 2])
    assert trace.log_loss.max() < -1e7
    assert trace.log_step_size.tolist() == [math.log(1e5)] * 3
    assert trace.log_u_step_size.tolist() == [math.log(1e5)] * 3


def test_path_lengths_of_equation_10():
    """eta sum s^-p for u and eta sum_{s >= 2} 1/s for W: the steps have just these lengths."""
    data = joint_data(3, 3, 12, seed=2)
    trace = joint(data, NGD(0.3, decay=EQ_10), 300, record=[1, 2, 300])
    s = np.arange(1, 301.0)
    u_path = [0.3 * (s[:t] ** (-2 / 3)).sum() for t in (1, 2, 300)]
    W_path = [0.3 * (1 / s[1:t]).sum() for t in (1, 2, 300)]
    np.testing.assert_allclose(trace.u_path_length, u_path, rtol=CLOSED_FORM)
    np.testing.assert_allclose(trace.path_length, W_path, rtol=CLOSED_FORM)
    assert (trace.u_norm <= trace.u_path_length * (1 + CLOSED_FORM)).all()
    assert trace.longest_step[-1] == pytest.approx(0.15, rel=CLOSED_FORM)


def test_score_gaps_take_either_sign():
    """From a start for which other tokens score best, some score gaps pass through zero."""
    data = joint_data(3, 3, 10, seed=4)
    u0 = -0.1 * solve_u_svm(data).weights
    trace = joint(data, NGD(0.1), 200, u0=u0, record=range(201))
    top = trace.scores[:, np.arange(3), data.opt.numpy()]
    gaps = top[:, :, None] - trace.scores
    assert gaps[0].min() < -0.1
    assert ((gaps[:-1] < 0) & (gaps[1:] > 0)).any()


@pytest.mark.parametrize("form", JOINT_ENGINES)
def test_scores_and_gaps_are_those_of_the_iterates(form):
    data = joint_data(3, 4, 10, seed=5, lengths=[4, 2, 3])
    trace = joint(data, NGD(0.2, decay=(0.2, 0.3)), 20, form, W0=random_start(data, 0.5, 1))
    scores = (data.y[:, None] * (data.X @ trace.u)).masked_fill(~data.mask, -math.inf)
    np.testing.assert_allclose(trace.scores[-1], scores, rtol=AUTOGRAD, atol=AUTOGRAD)
    best = data.X[torch.arange(3), data.opt][:, None]
    gaps = ((best - data.X) @ trace.W @ data.queries[:, :, None]).squeeze(2)
    kept = data.mask.scatter(1, data.opt[:, None], False)
    np.testing.assert_allclose(trace.gaps[-1], gaps[kept], rtol=AUTOGRAD, atol=AUTOGRAD)
    assert trace.u_norm[-1] == pytest.approx(float(trace.u.norm()), rel=CLOSED_FORM)
    assert trace.W_norm[-1] == pytest.approx(float(trace.W.norm()), rel=CLOSED_FORM)


@FEW
@given(seeds, st.integers(1, 3), st.integers(2, 4), st.sampled_from(JOINT_RULES), st.booleans())
def test_all_forms_agree(seed, n, T, rule, ragged):
    lengths = [2 + (seed + i) % (T - 1) for i in range(n)] if ragged else None
    data = joint_data(n, T, n * T + 2, seed=seed, lengths=lengths)
    options = {"record": [0, 1, 10, 60], "W0": random_start(data, 0.2, seed)}
    first, *others = (joint(data, rule, 60, form, **options) for form in JOINT_ENGINES)
    for other in others:
        assert_same_run(first, other, FORMS, NAMES)


@pytest.mark.parametrize("rule", [NGD(0.5), NGD(5.0, decay=EQ_10), Polyak()], ids=repr)
def test_long_compiled_runs_agree(rule):
    data = joint_data(4, 4, 20, seed=11)
    runs = [joint(data, rule, 3000, form, record=[0, 100, 3000]) for form in JOINT_ENGINES[:2]]
    assert_same_run(*runs, FORMS, NAMES)


def test_a_decoder_of_the_data_only_chooses_the_optimal_tokens():
    data = random_data(3, 3, 10, seed=6)
    opt = (data.y[:, None] * (data.X @ data.u)).argmax(dim=1)
    bare = Dataset(data.X, data.y, opt=opt)
    one, two = (joint(each, NGD(0.1), 50) for each in (data, bare))
    assert_same_run(one, two, FORMS, NAMES)
    assert one.u_norm[0] == 0 and math.isnan(one.u_alignment_error[0])


def test_infeasible_labels_need_svm_false():
    """(W-SVM) has a solution, (u-SVM) none: equal optimal tokens of opposite labels."""
    X = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]]
    data = Dataset(X, [1, -1], opt=[0, 0])
    with pytest.raises(InfeasibleError):
        joint(data, NGD(0.1), 5)
    assert joint(data, NGD(0.1), 5, svm=False, u0=[0.3, 0.1]).status == "completed"


def test_records_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr(arguments, "LARGEST_RECORDS", 8 * 21 * (18 + 2 + 2 * 2))
    assert joint(orthogonal(), NGD(0.1), 20, record=range(21)).status == "completed"
    with pytest.raises(RangeError, match="record"):
        joint(orthogonal(), NGD(0.1), 21, record=range(22))


# ---- without optimal tokens -------------------------------------------------------------------

BLIND = ("log_loss", "log_grad_norm", "log_step_size", "log_u_step_size", "W_norm", "u_norm")
BLIND += ("path_length", "u_path_length", "longest_step", "scores")


def bare(data) -> Dataset:
    """The same tokens, of which none is known to be optimal."""
    return dataclasses.replace(data, opt=None)


@pytest.mark.parametrize("form", JOINT_ENGINES)
@pytest.mark.parametrize("rule", JOINT_RULES, ids=repr)
def test_without_optimal_tokens_the_steps_are_those_of_autograd(form, rule):
    """And those of any token taken for the optimal one: the loss does not see which it is."""
    data = joint_data(3, 4, 14, seed=6, lengths=[4, 2, 3])
    starts = {"W0": random_start(data, 0.5, 6), "u0": start_decoder(data, 0.3)}
    record = [0, 1, 5, 10]
    trace = joint(bare(data), rule, 10, form, record=record, **starts)
    plain = autograd_run(data, rule, 10, record, train_u=True, **starts)
    for name in set(BLIND) & plain.keys():
        # relative, and absolute where a logarithm passes through zero; measured at 1e-13
        np.testing.assert_allclose(getattr(trace, name), plain[name], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(trace.W, plain["W"], rtol=0, atol=1e-10 * float(trace.W.norm()))
    for opt in ([0, 1, 2], [3, 0, 1]):
        other = dataclasses.replace(data, opt=opt)
        again = joint(other, rule, 10, form, record=record, svm=False, **starts)
        assert_same_run(trace, again, FORMS, BLIND)
        assert torch.equal(trace.selected, again.selected)
    assert trace.status == "completed"


def test_without_optimal_tokens_a_saturated_run_is_as_exact():
    """Losses of exp(-1000), where the first tokens have a softmax of exp(-3000)."""
    data = joint_data(4, 4, 20, seed=3, lengths=[4, 2, 3, 4])
    options = {"W0": random_start(data, 0.1, 3), "record": [0, 100, 20_000]}
    trace = joint(bare(data), NGD(0.1), 20_000, **options)
    known = dataclasses.replace(data, opt=trace.selected)
    again = joint(known, NGD(0.1), 20_000, **options)
    assert trace.log_loss[-1] < -500 and (trace.selected > 0).any()
    assert_same_run(trace, again, FORMS, BLIND)


def test_what_needs_optimal_tokens_is_left_out_and_selected_goes_on(tmp_path):
    data = joint_data(3, 4, 14, seed=6, lengths=[4, 2, 3])
    trace = joint(bare(data), NGD(0.1), 2000)
    assert trace.opt is None
    for name in OF_OPTIMAL:
        with pytest.raises(AttributeError, match=f"no series '{name}'.*go on with `selected`"):
            getattr(trace, name)
    assert "opt_score" not in trace.to_dataframe().columns
    known = dataclasses.replace(data, opt=trace.selected)
    svm, again = solve_w_svm(known), joint(known, NGD(0.1), 2000)
    error = trace.alignment_with(svm)
    np.testing.assert_allclose(error[2:], again.W_alignment_error[2:], rtol=1e-6)
    assert error[-1] < 1e-3 and "no optimal tokens given" in repr(trace)
    assert f"selected tokens {error[-1]:.2g}" in repr(trace)
    loaded = Trace.load(trace.save(tmp_path / "run.npz"))
    assert loaded.ending == trace.ending and torch.equal(loaded.selected, trace.selected)
    with pytest.raises(DtypeError, match="knew its optimal tokens"):
        TraceView(known, trace)
    other = dataclasses.replace(data, opt=(trace.selected + 1) % data.lengths)
    with pytest.raises(RangeError, match="do not fit"):
        TraceView(other, again, svm=svm)
