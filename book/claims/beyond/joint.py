"""Claims of our own on joint training without decay and without a zero start."""

import dataclasses

import numpy as np
import torch

from attnbias import (
    GD,
    NGD,
    Check,
    Dataset,
    Polyak,
    Trace,
    make_dm,
    solve_u_svm,
    solve_w_svm,
    train,
)
from attnbias.beyond.joint.checks import check_separate_step_size, check_shared_step_size
from attnbias.beyond.joint.data import make_orthogonal_two_norms
from attnbias.beyond.joint.geometry import with_selected_tokens
from attnbias.beyond.prompt.geometry import moving_margin
from attnbias.dynamics.problem import random_decoder, small_start

from ..claim import Section, refuted
from ..tamper import bent, each, stalls

claim = Section("Beyond the paper", 250, source="ours", chapter="chap-joint-open")

STEPS, SEEDS = 20_000, 10
SHARED = NGD(0.1, normalise="shared")


def loud_tokens(seed: int) -> Dataset:
    """Two sequences whose optimal tokens are parallel, the second's 1.5 to 4 times as long."""
    generator = torch.Generator().manual_seed(seed)
    m, first, second = torch.rand(3, generator=generator, dtype=torch.float64).tolist()
    X = [[[0.0, 0.8 + first, 0], [1, 0, 0]], [[0, 0, 0.8 + second], [1.5 + 2.5 * m, 0, 0]]]
    return Dataset(X, [1, 1], opt=[1, 1])


def _other_u(run: Trace) -> Trace:
    """u turned away from where it was, by one coordinate's sign."""
    u = run.u.clone()
    u[int(u.abs().argmax())] *= -1
    return dataclasses.replace(run, u=u)


@claim("c", "check_shared_step_size(")
@refuted("|W| grows like t^1.01", train=bent(0.01, "W_norm"))
@refuted("|u| grows t^.3 times as fast", train=bent(0.3, "scores"))
def joint_common_step(e):
    """On even tokens a common step size makes |W| grow like (2 / Xi) log |u|, its own like t."""
    generator = np.random.default_rng(0)
    for k in range(12):
        norms = {"opt_norm": generator.uniform(0.7, 2.0), "other_norm": generator.uniform(0.1, 0.5)}
        data = make_orthogonal_two_norms(2 + k % 3, 2 + k % 4, **norms)
        eta = generator.uniform(0.05, 0.3)
        rule = (NGD(eta, normalise="shared"), GD(eta), Polyak(), NGD(eta))[k % 4]
        check = check_separate_step_size if k % 4 == 3 else check_shared_step_size
        yield from check(data, e.run(train, data, rule, STEPS, train_u=True))
    return "orthogonal tokens of two sizes, n = 2 to 4, T = 2 to 5, twelve random sets"


@claim("d", "free, shared = (found[found.rule == name] for name in short)")
@refuted("|W| grows t^.05 times as fast", train=bent(0.05, "W_norm"))
def joint_log_slope(e):
    """On random tokens too, |W| has slope 2 / Xi in log |u| under joint-NGD."""
    slopes = []
    for seed in range(SEEDS):
        n, T = 3 + seed % 3, 2 + seed % 3
        data = make_dm(n, T=T, d=60, seed=seed)
        svm = solve_w_svm(data)
        W0 = small_start(60, 1.0, seed)
        run = e.run(train, data, SHARED, STEPS, train_u=True, W0=W0, svm=svm, record=40)
        late = run.step >= STEPS // 10
        fit = np.polyfit(np.log(run.u_norm[late]), svm.margin * run.W_norm[late], 1)
        slopes.append(float(fit[0]))
    off = max(abs(slope - 2) for slope in slopes)
    yield Check("slope of Xi |W| on log |u|, less 2, in size", off, 0.1)
    return (
        f"slopes {min(slopes):.3f} to {max(slopes):.3f}; (DM), n = 3 to 5, T = 2 to 4, random "
        f"W_0, {SEEDS} seeds"
    )


@claim("d", "with_selected_tokens(")
@refuted("W is at 1 - cosine .01 from there", train=stalls(0.01))
@refuted("u goes elsewhere", train=each(_other_u))
def joint_chosen(e):
    """From a large u_0 joint NGD may settle on other tokens, and goes to their SVMs."""
    moved = 0
    for seed in range(SEEDS):
        data = make_dm(3 + seed % 3, T=2 + seed % 3, d=60, seed=seed)
        u0 = random_decoder(60, 10.0, seed)
        run = e.run(train, data, NGD(0.1), STEPS, train_u=True, u0=u0, record=2)
        seen = with_selected_tokens(data, run.W)
        moved += int((seen.opt != data.opt).any())
        for now, svm in ((run.W, solve_w_svm(seen)), (run.u, solve_u_svm(seen))):
            cosine = float((now * svm.weights).sum()) / float(now.norm()) / svm.norm
            yield Check("1 - cosine with the SVM of the attended tokens", 1 - cosine, 1e-3)
    yield Check("seeds that attend to other than the optimal tokens", moved, 1, ">=")
    return f"(DM), n = 3 to 5, T = 2 to 4, |u_0| = 10, {SEEDS} seeds, {moved} attend so"


@claim("d", "moving_margin(")
@refuted("W goes on to 1 - cosine .005", train=stalls(0.005))
def joint_moving_margin(e):
    """Without decay W may miss W_mm where a sequence does not support u_mm."""
    errors, away = [], []
    for seed in range(SEEDS):
        data = loud_tokens(seed)
        speeds = solve_u_svm(data)
        run = e.run(train, data, NGD(0.1), 5 * STEPS, train_u=True, record=2)
        V = moving_margin(data, speeds.margins / speeds.norm)
        errors.append(1 - float((V * run.W).sum()) / float(run.W.norm()))
        svm = solve_w_svm(data)
        predicted = 1 - float((V * svm.weights).sum()) / svm.norm
        away.append(float(run.W_alignment_error[-1]) / predicted)
    yield Check("1 - cosine of W with the moving margin's direction", max(errors), 1e-3)
    yield Check("its 1 - cosine with W_mm over the limit predicted", min(away), 0.9, ">=")
    return "ten pairs of sequences, the second does not support u_mm; no decay"
