"""How far W stands from a direction, and which sequences a run leaves on other tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike

from .._threads import spared
from ..errors import DtypeError, RangeError, ShapeError
from ..geometry.solution import SVMSolution
from ..geometry.tokens import GapRows, gaps_of, logits_of

if TYPE_CHECKING:
    from .trace import Trace

LAST = "the last W has attnbias.dynamics.trace.alignment_error(trace.W[None], svm.W)"
ROUNDING = 4e-15  # share of the largest eigenvalue below which, for each row, one is rounding
SAME = 1e-6  # share of |W|^2 by which gaps and norm of a run may disagree: rounding


def missed(logits: torch.Tensor, opt: torch.Tensor) -> torch.Tensor:
    """The sequences whose largest logit, (n, T), is not that of token `opt` alone."""
    best = logits == logits.amax(dim=1, keepdim=True)
    own = best.gather(1, opt[:, None]).squeeze(1) & (best.sum(dim=1) == 1)
    return (~own).nonzero().flatten()


def away_from(trace: Trace, svm: SVMSolution) -> np.ndarray:
    """(R,) 1 - cosine of W with the SVM of any selection of the same tokens, from logit gaps.

    Notes
    -----
    Source: ours [c]. W_t = P_t + N, with P_t in the span of the rows z_k and N, across it, from
    W_0. The gaps g decide P_t: |P_t|^2 = g' K^+ g with the Gram matrix K. Taken of the gaps less
    their share along the SVM, this is the squared offset, with no difference of norms.
    """
    (gaps, rows), norms = _gaps_beside(trace, svm), torch.from_numpy(trace.W_norm)
    nonzero, first = norms.where(norms > 0, torch.ones_like(norms)), norms.argmin()
    unit = gaps / nonzero[:, None]
    along = unit @ svm.dual.cpu() / svm.norm
    parts = torch.cat([unit - along[:, None] * svm.margins.cpu() / svm.norm, unit])
    with spared(rows.differences.numel()):
        sizes, basis = torch.linalg.eigh(rows.gram().cpu())
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


def _gaps_beside(trace: Trace, svm: SVMSolution) -> tuple[torch.Tensor, GapRows]:
    """(R, N') recorded gaps, of the rows of another selection, and these."""
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
    logits = logits_of(torch.from_numpy(trace.gaps), first, mask)
    return gaps_of(logits, chosen, mask), svm.rows


def alignment_error(W: ArrayLike, direction: ArrayLike) -> np.ndarray:
    """(R,) 1 - cosine of (R, d, d) matrices with a (d, d) direction, by the offset from it.

    1 where W = 0.
    """
    W, unit = np.asarray(W), np.asarray(direction, dtype=float)
    largest = np.abs(W).max(axis=(1, 2), initial=0.0)
    W = W * np.where(largest < 1e-100, 2.0**600, 1.0)[:, None, None]  # so that squares are floats
    unit = unit / np.linalg.norm(unit)
    along = np.tensordot(W, unit, 2)
    return one_minus_cosine(along, np.linalg.norm(W - along[:, None, None] * unit, axis=(1, 2)))


def one_minus_cosine(along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """From the parts of a matrix along a direction and across it; 1 at zero."""
    size = np.fmax(np.hypot(along, across), 1e-300)  # along is 0 where this matters
    # across^2 / (size (size + along)) is 1 - along / size without cancellation
    ahead = across**2 / np.fmax(size * (size + along), 1e-300)
    return np.where(along > 0, ahead, 1 - along / size)
