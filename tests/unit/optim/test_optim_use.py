"""SNGD and SPS in other people's loops: groups, saved states, schedules, and the usual idioms."""

import copy
import io
import math
import warnings
from functools import partial

import pytest
import torch
from points import INPUTS, LABELS, Points, by_hand
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)

from attnbias.errors import DtypeError, NonFiniteError, RangeError
from attnbias.optim import SNGD, SPS

# A few operations in float64, among them a logarithm and its inverse.
CLOSED_FORM = 1e-12


def layers(seed: int = 0) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.nn.Parameter(torch.randn(5, 3, generator=generator, dtype=torch.float64))
        for _ in range(2)
    ]


def mean_loss(params, rows=slice(None)) -> torch.Tensor:
    return sum((INPUTS[rows] @ p).square().sum(dim=1).mean() for p in params)


def moves(optimizer, params, *, backward=1.0, loss=1.0, clip=math.inf) -> list[torch.Tensor]:
    """How far each layer moves, where the gradient is `backward` times that of the loss."""
    before, value = [p.detach().clone() for p in params], mean_loss(params)
    optimizer.zero_grad()
    (backward * value).backward()
    torch.nn.utils.clip_grad_norm_(params, clip)
    optimizer.step(loss=loss * value.detach())
    return [p.detach() - old for p, old in zip(params, before, strict=True)]


def gradients(params) -> tuple[list[torch.Tensor], float, float]:
    """Those of the loss, their norm, and the loss."""
    value = mean_loss(params)
    found = torch.autograd.grad(value, params)
    return found, math.sqrt(sum(float(g.square().sum()) for g in found)), float(value.detach())


class TestGroups:
    @pytest.mark.parametrize(
        ("make", "first", "second"),
        [
            (SPS, {"lr": 1e-6}, {"lr": 0.02, "c": 9.0}),
            (partial(SNGD, lr=0.1), {"max_step": 1e-6}, {"lr": 0.3}),
        ],
    )
    def test_each_has_its_own_cap_and_constant(self, make, first, second):
        params = layers()
        grads, norm, loss = gradients(params)
        optimizer = make([{"params": params[:1], **first}, {"params": params[1:], **second}])
        eta = {SPS: min(0.02, loss / 9 / norm**2)}.get(make, 0.3 / norm)
        assert eta != 0.02  # else c would not be seen
        for step, size, g in zip(moves(optimizer, params), (1e-6, eta), grads, strict=True):
            # the step is a difference of numbers of about 1, with 16 digits each
            torch.testing.assert_close(step, -size * g, rtol=CLOSED_FORM, atol=1e-15)
        assert float(optimizer.last_step_size) == pytest.approx(1e-6, rel=CLOSED_FORM)

    @pytest.mark.parametrize(
        ("make", "group", "error", "words"),
        [
            (SPS, {"max_step": 0.1}, DtypeError, "The cap of SPS is its lr"),
            (partial(SNGD, lr=1), {"c": 0.5}, DtypeError, "SNGD has no such option"),
            (partial(SNGD, lr=1), {"process_group": False}, DtypeError, "no such option here"),
            (partial(SNGD, lr=1), {"nonfinite": "skip"}, RangeError, "give it to SNGD itself"),
            (SPS, {"loss_floor": 1.0}, RangeError, "give it to SPS itself"),
            (SPS, {"smoothing": 2, "steps_per_epoch": 3}, RangeError, "give it to SPS itself"),
            (SPS, {"smoothing": 2}, DtypeError, "both or neither"),
            (SPS, {"max_grad_norm": 1.0}, RangeError, "give it to SPS itself"),
        ],
    )
    def test_what_a_group_cannot_have_is_refused_by_name(self, make, group, error, words):
        params = layers()
        with pytest.raises(error, match=words) as caught:
            make([{"params": params[:1]}, {"params": params[1:], **group}])
        assert str(caught.value).startswith(tuple(group))
        make([{"params": params[:1]}, {"params": params[1:], "name": "head", "lr_scale": 2}])

    def test_it_is_refused_also_where_it_is_changed_later(self):
        params = layers()
        optimizer = SPS([{"params": [p]} for p in params])
        for group in optimizer.param_groups:
            optimizer.step(loss=1.0)
            group["loss_floor"] = 0.5
            if group is not optimizer.param_groups[-1]:
                with pytest.raises(RangeError, match="loss_floor: expected one value"):
                    optimizer.step(loss=1.0)
                optimizer.param_groups[-1]["loss_floor"] = 0.5
        with pytest.raises(DtypeError, match="max_step: .* write lr="):
            SPS(params, max_step=1.0)

    @pytest.mark.parametrize(
        ("make", "name", "value"),
        [
            (make, name, value)
            for make, names in (
                (SPS, ("lr", "c", "max_grad_norm", "momentum", "weight_decay")),
                (partial(SNGD, lr=1), ("lr", "max_step", "momentum", "weight_decay")),
            )
            for name in names
            for value in (math.nan, -1.0)
        ],
    )
    def test_so_is_a_number_out_of_its_limits_and_nothing_moves(self, make, name, value):
        params = layers()
        optimizer = make(params)
        optimizer.param_groups[0][name] = value
        with pytest.raises((RangeError, NonFiniteError), match=f"^{name}: expected a number"):
            moves(optimizer, params)
        assert all(map(torch.equal, params, layers()))


NUMBERS = {
    "lr": 0.01,
    "c": 0.5,
    "smoothing": 2,
    "steps_per_epoch": 4,
    "loss_floor": 0.25,
    "max_grad_norm": 3.0,
    "momentum": 0.5,
    "weight_decay": 0.1,
}


class TestStates:
    @pytest.mark.parametrize(
        ("make", "plain", "options"),
        [
            (SPS, SPS, NUMBERS),
            (
                SNGD,
                partial(SNGD, lr=2.0),
                {"lr": 0.1, "max_step": 0.004, "momentum": 0.5, "nonfinite": "skip"},
            ),
        ],
    )
    def test_every_option_is_kept_shown_and_restored(self, make, plain, options):
        params = layers()
        optimizer = make(params, **options)
        moves(optimizer, params)
        stored = io.BytesIO()
        torch.save(optimizer.state_dict(), stored)
        copies = [copy.deepcopy(params) for _ in range(2)]
        loaded, fresh = map(plain, copies)
        loaded.load_state_dict(torch.load(io.BytesIO(stored.getvalue())))
        assert repr(loaded) == repr(optimizer)
        optimizers = (optimizer, loaded, fresh)
        ends = [moves(*each)[0] for each in zip(optimizers, [params, *copies], strict=True)]
        assert torch.equal(ends[0], ends[1])
        assert not torch.allclose(ends[0], ends[2], rtol=0.5)  # a state that isn't loaded
        for name, value in options.items():
            assert f"    {name}: {value}\n" in repr(optimizer)

    @pytest.mark.parametrize("flat", [False, True])
    @pytest.mark.parametrize(
        "make",
        [
            partial(SPS, momentum=0.5),
            partial(SNGD, lr=0.1),
            partial(SPS, smoothing=1.5, steps_per_epoch=2, nonfinite="skip", momentum=0.5),
        ],
    )
    def test_torchs_distributed_checkpoints_go_on(self, make, flat):
        """They begin with a step of zero gradients, which has no loss."""
        ends, options = [], StateDictOptions(flatten_optimizer_state_dict=flat)
        for stops in (False, True):
            torch.manual_seed(0)
            model = torch.nn.Linear(3, 2)

            def own(model):
                return make([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.03}])

            optimizer = own(model)
            for step in range(4):
                if stops and step == 2:
                    stored = get_state_dict(model, optimizer, options=options)
                    model = torch.nn.Linear(3, 2)
                    optimizer = own(model)
                    set_state_dict(
                        model,
                        optimizer,
                        model_state_dict=stored[0],
                        optim_state_dict=stored[1],
                        options=options,
                    )
                optimizer.zero_grad()
                loss = model(torch.eye(3)).square().sum()
                loss.backward()
                if step == 1 and optimizer.param_groups[0]["nonfinite"] == "skip":
                    loss = math.nan
                optimizer.step(loss=loss)
            ends += [torch.cat([model.weight.detach().flatten(), model.bias.detach()])]
            assert optimizer.skipped == (optimizer.param_groups[0]["nonfinite"] == "skip")
        assert torch.equal(*ends)
        with pytest.raises(DtypeError, match="^loss: "):  # a gradient needs its loss
            SPS(model.parameters()).step()

    @pytest.mark.skipif(
        torch.__version__ < "2.13",
        reason="torch 2.9 and before ask for a velocity themselves",
    )
    def test_a_flattened_state_may_lack_a_velocity(self):
        """Of a parameter that has had no gradient; torch's own SGD fails at its first."""
        model = torch.nn.ModuleList([torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)])
        first, options = (
            SNGD(model.parameters(), 0.1, momentum=0.5),
            {"options": StateDictOptions(flatten_optimizer_state_dict=True)},
        )
        model[0](torch.eye(3)).square().sum().backward()
        first.step()
        stored = get_state_dict(model, first, **options)
        second = SNGD(model.parameters(), 0.1, momentum=0.5)
        model.zero_grad()
        set_state_dict(
            model, second, model_state_dict=stored[0], optim_state_dict=stored[1], **options
        )
        before = model[1].weight.detach().clone()
        model[1](torch.eye(3)).square().sum().backward()
        second.step()
        assert not torch.equal(model[1].weight, before)

    def test_models_are_saved_and_copied_as_before(self):
        model = torch.nn.Linear(3, 2)
        optimizer, stored = SPS(model.parameters()), io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.save(model, stored)
            twin, copied = copy.deepcopy((model, optimizer))
            twin(torch.ones(3)).square().sum().backward()
            copied.step(loss=1.0)
        assert not torch.equal(twin.weight, model.weight)


class TestSchedules:
    def test_a_warm_up_acts_on_the_cap(self):
        """Where the quotient is far above it, eta is the scheduled lr; and smoothing does not
        take the cap for the size that may not grow."""
        params = layers()
        optimizer = SPS(params, lr=1e-3, c=1e-3, smoothing=1.5, steps_per_epoch=9)
        warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(k, 4) / 4)
        for k in range(6):
            moves(optimizer, params)
            assert float(optimizer.last_step_size) == min(k, 4) / 4 * 1e-3
            warm_up.step()

    @pytest.mark.parametrize(
        ("make", "rate"), [(partial(SPS, lr=0.2), 0.2), (partial(SNGD, lr=0.3), 0.3)]
    )
    def test_decay_is_that_of_lr_whatever_the_gradient_is(self, make, rate):
        """For SPS of the cap: a loss at its floor gives no step, and the weights shrink."""
        params = layers()
        optimizer = make(params, weight_decay=0.1)
        for p in params:
            p.grad = torch.zeros_like(p)
        optimizer.step(loss=0.0)
        for p, start in zip(params, layers(), strict=True):
            torch.testing.assert_close(p.detach(), (1 - 0.1 * rate) * start.detach())


class WithoutLoss:
    """torch's SGD, which takes no `loss`."""

    def __init__(self, optimizer):
        self.zero_grad, self.take = optimizer.zero_grad, optimizer.step

    def step(self, loss):
        self.take()


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_capped_sngd_is_clipped_sgd(momentum):
    """Over steps that are clipped and steps that are not."""
    a, C, sizes = 0.05, 3.0, []
    ours, theirs, other = layers(), layers(), layers()
    capped = SNGD(ours, lr=C * a, max_step=a, momentum=momentum)
    plain = torch.optim.SGD(theirs, lr=a, momentum=momentum)
    free = SNGD(other, lr=C * a, momentum=momentum)
    for _ in range(30):
        moves(capped, ours)
        moves(WithoutLoss(plain), theirs, clip=C)
        moves(free, other)
        sizes.append(float(capped.last_step_size) == a)
    assert 0 < sum(sizes) < 30
    for p, q, r in zip(ours, theirs, other, strict=True):
        # torch divides by the norm + 1e-6, and 1e-6 / C is what 30 steps may each be off by
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-5)
        assert not torch.allclose(p, r, rtol=1e-2)


class TestIdioms:
    """Where loss and gradient are not of one function a Polyak step is wrong by a known factor."""

    def ratio(self, make, **wrong) -> float:
        """Length of the step by that of the right one."""
        ends = [
            moves(make(params), params, **options)
            for params, options in ((layers(), wrong), (layers(), {}))
        ]
        lengths = [math.sqrt(sum(float(m.square().sum()) for m in each)) for each in ends]
        return lengths[0] / lengths[1]

    def test_a_scaled_loss(self):
        uncapped = partial(SPS, lr=math.inf)
        assert self.ratio(uncapped, loss=2.0**12) == pytest.approx(2.0**12, rel=CLOSED_FORM)
        assert self.ratio(uncapped, loss=8.0, backward=8.0) == pytest.approx(1, rel=CLOSED_FORM)
        assert self.ratio(partial(SNGD, lr=0.1), backward=8.0) == pytest.approx(1, rel=CLOSED_FORM)

    def test_clipping(self):
        norm = gradients(layers())[1]
        clip = norm / 4
        # torch clips at the norm + 1e-6
        uncapped = partial(SPS, lr=math.inf)
        assert self.ratio(uncapped, clip=clip) == pytest.approx(4, rel=1e-5)
        right = partial(SPS, lr=math.inf, max_grad_norm=clip)
        both = [
            moves(make(params), params)[0]
            for make, params in ((uncapped, layers()), (right, layers()))
        ]
        torch.testing.assert_close(both[0] / 4, both[1], rtol=CLOSED_FORM, atol=1e-15)
        assert self.ratio(partial(SNGD, lr=0.1), clip=clip) == pytest.approx(1, rel=1e-5)

    @pytest.mark.parametrize("as_closure", [False, True])
    def test_accumulated_losses_are_added_up(self, as_closure):
        """Four quarters of a batch, each divided by 4, are the batch."""
        whole, parts, last = layers(), layers(), layers()
        moves(SPS(whole, lr=math.inf), whole)
        optimizer, hasty = SPS(parts, lr=math.inf), SPS(last, lr=math.inf)

        def quarters(params, k_each=4):
            losses = []
            for k in range(k_each):
                loss = mean_loss(params, slice(2 * k, 2 * k + 2)) / k_each
                loss.backward()
                losses.append(loss.detach())
            return losses

        if as_closure:
            optimizer.step(lambda: quarters(parts))
        else:
            optimizer.step(loss=quarters(parts))
        for p, q in zip(whole, parts, strict=True):
            torch.testing.assert_close(p, q, rtol=CLOSED_FORM, atol=CLOSED_FORM)
        losses = quarters(last)
        with pytest.warns(UserWarning, match="4 backward passes") as caught:
            hasty.step(loss=losses[-1])
        assert caught[0].filename == __file__
        share = float(losses[-1] / sum(losses))
        assert float(hasty.last_step_size / optimizer.last_step_size) == pytest.approx(share)

    @pytest.mark.parametrize("to_none", [True, False])
    @pytest.mark.parametrize("kind", ["dense", "sparse", "shared", "scaled", "checkpointed"])
    def test_a_single_pass_is_never_taken_for_several(self, kind, to_none):
        table = torch.nn.Embedding(6, 3, sparse=kind == "sparse")
        model = torch.nn.Sequential(table, torch.nn.Linear(3, 3))
        optimizer = SPS(model.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        words = torch.tensor([1, 4, 1])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(4):
                model.zero_grad(set_to_none=to_none)
                hidden = model(words)
                if kind == "checkpointed":
                    hidden = torch.utils.checkpoint.checkpoint(model, words, use_reentrant=False)
                loss = (hidden @ table.weight.T if kind == "shared" else hidden).square().mean()
                if kind == "scaled":
                    scaler.scale(loss).backward()
                    scaler.unscale_(optimizer)
                    scaler.step(optimizer, loss=loss)
                    scaler.update()
                else:
                    loss.backward()
                    optimizer.step(loss=loss)
        loss.detach_()
        for _ in range(2):
            model(words).square().mean().backward()
        with pytest.warns(UserWarning, match="backward passes"):
            optimizer.step(loss=loss)
        table.requires_grad_(False)  # from now on nothing is added to its gradient
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.step(loss=loss)


@pytest.mark.parametrize(
    ("make", "whole"), [(partial(SNGD, lr=0.1, momentum=0.5), False), (SPS, False), (SPS, True)]
)
def test_compiled_steps_are_eager_ones_and_keep_their_monitors(make, whole):
    torch.compiler.reset()
    ends = []
    for compiled in (False, True):
        params = layers()
        optimizer = make(params)
        takes = optimizer.step

        def iteration(optimizer=optimizer, params=params):
            optimizer.zero_grad()
            loss = mean_loss(params)
            loss.backward()
            takes(loss=loss)  # noqa: B023

        if compiled and whole:
            iteration = torch.compile(iteration, backend="eager")
        elif compiled:
            takes = torch.compile(optimizer.step, backend="eager")
        for _ in range(2):
            iteration()
        ends.append([optimizer.last_grad_norm, optimizer.last_step_size, *params])
    for eager, own in zip(*ends, strict=True):
        torch.testing.assert_close(own, eager, rtol=CLOSED_FORM, atol=CLOSED_FORM)


def test_the_chapters_closure_goes_through_accelerate():
    """It is called once for an accumulated batch; the loss of the last part would be a half."""
    accelerate = pytest.importorskip("accelerate")
    accelerate.state.GradientState._reset_state()  # of whatever ran before
    accelerator = accelerate.Accelerator(gradient_accumulation_steps=2, cpu=True)
    model, losses = Points(), []
    sps = SPS(model.parameters())
    model, optimizer = accelerator.prepare(model, sps)
    for rows in torch.arange(8).chunk(2):
        with accelerator.accumulate(model):
            loss = model(INPUTS[rows], LABELS[rows])["loss"]
            losses.append(loss.detach() / 2)
            accelerator.backward(loss)
            optimizer.step(lambda: losses)
    other = Points()
    own = SPS(other.parameters())
    by_hand(own, other, 1)
    torch.testing.assert_close(model.map, other.map, rtol=CLOSED_FORM, atol=CLOSED_FORM)
    assert float(sps.last_step_size) == pytest.approx(float(own.last_step_size), rel=CLOSED_FORM)
