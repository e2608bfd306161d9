"""Where a run ended: the tokens that it selects, its direction, and why it stopped."""

from __future__ import annotations

import numpy as np
import torch

from .._threads import spared
from ..dataset import Dataset
from ..errors import AttnBiasError, DtypeError, InfeasibleError, RangeError, ShapeError
from ..geometry.solution import SVMSolution
from ..geometry.svm import solve_w_svm
from ..geometry.tokens import GapRows, gaps_of, logits_of
from ..rules import Descent

LISTED = 6  # sequences that the words name
AT_ONCE = 1000  # rows N' up to which words wait for a hard-margin solution: a second
LAST = "the last W has attnbias.dynamics.trace.alignment_error(trace.W[None], svm.W)"
ROUNDING = 4e-15  # share of the largest eigenvalue below which, for each row, one is rounding
STILL = 1e-3  # of |W|; GD on its way moves by log 2 of log t in the later half, some hundredths
SAME = 1e-6  # share of |W|^2 by which gaps and norm of a run may disagree: rounding


def missed(logits: torch.Tensor, opt: torch.Tensor) -> torch.Tensor:
    """The sequences whose largest logit, (n, T), is not that of token `opt` alone."""
    best = logits == logits.amax(dim=1, keepdim=True)
    own = best.gather(1, opt[:, None]).squeeze(1) & (best.sum(dim=1) == 1)
    return (~own).nonzero().flatten()


def in_words(trace, data: Dataset | None) -> str:
    """On which tokens the sequences end; with the data, how W stands to the SVM of those."""
    logits, opt = trace.last_logits, trace.opt
    if logits is None:
        return ""
    if not bool(logits[torch.isfinite(logits)].any()):
        return "all logits are equal, so that no token is selected"
    if opt is None:
        found = "no optimal tokens given, `selected` has those that it ends on"
    else:
        others, n = missed(logits, opt).tolist(), len(opt)
        if not others:
            return "every sequence ends on its optimal token"
        named = ", ".join(map(str, others[:LISTED])) + (", ..." if len(others) > LISTED else "")
        found = f"{n - len(others)} of {n} sequences end on their optimal token (not: {named})"
    if data is None or not len(trace.step) or trace.status == "diverged":
        return found
    parts = (found, _standing_still(trace), _beside_their_svm(trace, data))
    return "; ".join(filter(None, parts))


def _standing_still(trace) -> str:
    """Since when W has moved by next to nothing of its norm, if for half of the run or longer."""
    path, step = trace.path_length, trace.step
    if not (np.isfinite(path).all() and trace.W_norm[-1] > 0):
        return ""
    left = path[-1] - path
    first = int(np.argmax(left <= STILL * trace.W_norm[-1]))
    if 2 * step[first] >= step[-1]:
        return ""
    by, steps = left[first], step[-1] - step[first]
    return (
        f"W stands still: it has moved by {by:.1g} in the {steps:,} steps "
        f"since step {step[first]:,}, at step size {trace.step_size[-1]:.3g} (largest_gd_step_size "
        "in diagnose(data).constants keeps every step short)"
    )


def _beside_their_svm(trace, data: Dataset) -> str:
    if trace.gaps.shape[1] > AT_ONCE:
        return "solve_w_svm(data, trace.selected) is the SVM of the selected tokens"
    try:
        error = trace.alignment_with(solve_w_svm(data, trace.selected))[-1]
    except InfeasibleError:
        return "the SVM of the selected tokens has no solution"
    except AttnBiasError as refused:
        return f"the SVM of the selected tokens is not solved for ({type(refused).__name__})"
    return f"1 - cosine with the SVM of the selected tokens {error:.2g}"


def why_diverged(rule: Descent) -> str:
    """What a step that is too long for floats comes from."""
    if getattr(rule, "gap_power", 0) and rule.log_max_step == np.inf:
        return (
            "the loss stays above the floor of Polyak's step while the gradient vanishes, so that "
            "steps grow without end: give a cap, Polyak(max_step=...)"
        )
    return "a step too long for floats, or its logits: take a smaller step size, or smaller tokens"


def away_from(trace, svm: SVMSolution) -> np.ndarray:
    """(R,) 1 - cosine of W with the SVM of any selection of the same tokens, from logit gaps.

    Notes
    -----
    Source: ours [c]. W_t = P_t + N, with P_t in the span of the rows z_k and N, across it, from
    W_0. The gaps g decide P_t: |P_t|^2 = g' K^+ g with the Gram matrix K. Taken of the gaps less
    their share along the SVM, this is the squared part across it, with no difference of norms.
    """
    gaps, norms = _gaps_beside(trace, svm), torch.from_numpy(trace.W_norm)
    nonzero, first = norms.where(norms > 0, torch.ones_like(norms)), norms.argmin()
    unit = gaps / nonzero[:, None]
    along = unit @ svm.dual.cpu() / svm.norm
    parts = torch.cat([unit - along[:, None] * svm.margins.cpu() / svm.norm, unit])
    with spared(svm.rows.differences.numel()):
        sizes, basis = torch.linalg.eigh(svm.rows.gram().cpu())
        basis = basis[:, sizes > ROUNDING * len(sizes) * sizes[-1]]  # rows may be dependent
        across, inside = ((parts @ basis).square() / sizes[-basis.shape[1] :]).sum(dim=1).chunk(2)
    outside = rest = (norms > 0).double() - inside
    if trace.meta["rule_parameters"]["gap_power"] is not None:  # else it may leave the span
        outside = rest[first] * (norms[first] / nonzero) ** 2
    outside = outside.clamp(min=0)
    if not bool((rest - outside).abs().max() <= SAME):
        raise RangeError(
            "direction",
            expected="an SVM of the tokens that were trained on",
            got="one whose rows do not give the norms of W from the gaps that were recorded",
            remedy="solve it for these data: solve_w_svm(data, trace.selected); beside others "
            + LAST,
        )
    return one_minus_cosine(along.numpy(), (across + outside).sqrt().numpy())


def _gaps_beside(trace, svm: SVMSolution) -> torch.Tensor:
    """(R, N') recorded gaps, of the rows of another selection."""
    if trace.last_logits is None or trace.gaps is None:
        raise ShapeError(
            "trace",
            expected="a Trace of `train` with its logits, or with every recorded W",
            got="one without, as files from before traces kept them",
            remedy="run the training again; " + LAST,
        )
    if not isinstance(svm.rows, GapRows) or svm.norm_name != "frobenius":
        raise DtypeError(
            "direction",
            expected="a solution of solve_w_svm",
            got=repr(svm),
            remedy=LAST,
        )
    mask, chosen = torch.isfinite(trace.last_logits), svm.rows.opt.cpu()
    lengths = torch.bincount(svm.rows.sequence.cpu(), minlength=len(chosen)) + 1
    if not torch.equal(lengths, mask.sum(dim=1)):
        raise ShapeError(
            "direction",
            expected=f"an SVM of {len(mask)} sequences of the lengths trained on",
            got=f"{len(svm.dual)} rows of {len(chosen)}",
            remedy="solve it for these data: solve_w_svm(data, trace.selected)",
        )
    first = trace.opt if trace.opt is not None else torch.zeros_like(chosen)
    return gaps_of(logits_of(torch.from_numpy(trace.gaps), first, mask), chosen, mask)


def alignment_error(W, direction) -> np.ndarray:
    """(R,) 1 - cosine of (R, d, d) matrices with a (d, d) direction, by the part across it.

    1 where W = 0.
    """
    W, unit = np.asarray(W), np.asarray(direction, dtype=float)
    largest = np.abs(W).max(axis=(1, 2), initial=0.0)
    W = W * np.where(largest < 1e-100, 2.0**600, 1.0)[:, None, None]  # so that squares are floats
    unit = unit / np.linalg.norm(unit)
    along = np.tensordot(W, unit, 2)
    return one_minus_cosine(along, np.linalg.norm(W - along[:, None, None] * unit, axis=(1, 2)))


def one_minus_cosine(along, across) -> np.ndarray:
    """From the parts of a matrix along a direction and across it; 1 at zero."""
    size = np.fmax(np.hypot(along, across), 1e-300)  # along is 0 where this matters
    # across^2 / (size (size + along)) is 1 - along / size without cancellation
    ahead = across**2 / np.fmax(size * (size + along), 1e-300)
    return np.where(along > 0, ahead, 1 - along / size)
