"""What the tokens alone decide: scores, optimal tokens, gaps and their Gram matrix."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.linalg import vector_norm

from .._validate import TensorLike, as_floats, require_finite, require_shape, require_vectors
from .._validate.sequences import as_token_indices
from ..data import Dataset
from ..dataset import require_dataset
from ..errors import MissingDecoderError, QueryError, RangeError, TiedTokensError

__all__ = ["GapRows", "VectorRows", "gap_rows", "optimal_tokens", "selected_tokens", "token_scores"]

# Features above which d x d matrices are formed only when they are asked for: 34 MB each.
WIDE = 2048


# Numbers of X, or entries of a Gram matrix, up to which what is known of a data set is kept: 32 MB.
KEPT = 2**22
# Numbers of X from which a copy costs as much as the scores: made when a data set is asked again.
LARGE = 2**13


class Known:
    """What the tokens of a data set decide, each once: the tensors that all who ask share.

    They are read, and never written into nor handed to a caller, who gets copies. `data` is a copy
    of its own, by which a change in place is seen, whoever made it: a numpy array that shares the
    memory of a tensor, or `tensor.data`, leaves no trace in torch's version counter.
    """

    def __init__(self, data: Dataset) -> None:
        self.data = data
        self._rows: GapRows | None = None  # of the optimal tokens asked for last
        self._gram: tuple[GapRows, torch.Tensor] | None = None

    def holds(self, data: Dataset) -> bool:
        """Whether the data set is still what it was."""
        mine, theirs = self.data._tensors(), data._tensors()
        return mine.keys() == theirs.keys() and all(
            _same(mine[name], value) for name, value in theirs.items()
        )

    @cached_property
    def scores(self) -> torch.Tensor:
        """(n, T), as `token_scores` gives them."""
        return _scores(self.data, self.data.u)

    @cached_property
    def best(self) -> torch.Tensor:
        """(n,), as `optimal_tokens` gives them."""
        return _untied(self.scores)

    @property
    def opt(self) -> torch.Tensor:
        """(n,) the optimal tokens that came with the data, or those of its decoder."""
        return self.best if self.data.opt is None else self.data.opt

    def rows(self, opt: torch.Tensor | None = None) -> GapRows:
        """The rows of (W-SVM) of the data's optimal tokens, or of others."""
        opt, rows = self.opt if opt is None else opt, self._rows
        if rows is None or not torch.equal(rows.opt, opt):
            self._rows = rows = _rows(self.data, opt)
        return rows

    def own_rows(self, data: Dataset, opt: torch.Tensor | None = None) -> GapRows:
        """Rows for a caller, in tensors of their own but for the keys, which are the data's."""
        rows = self.rows(opt)
        if self.data is data:
            return rows
        held = (rows.differences, rows.queries, rows.sequence, rows.token, rows.opt)
        differences, queries, sequence, token, opt = (value.clone() for value in held)
        return GapRows(differences, queries, sequence, token, opt, data.keys.detach())

    def gram(self, opt: torch.Tensor | None = None) -> torch.Tensor:
        """(N', N') the Gram matrix of these rows."""
        rows, last = self.rows(opt), self._gram
        if last is None or last[0] is not rows:
            last = rows, rows.gram()
            self._gram = last if last[1].numel() <= KEPT else None
        return last[1]


_known: WeakKeyDictionary[Dataset, Known | None] = WeakKeyDictionary()


def known(data: Dataset) -> Known:
    """What is known of a data set as it stands; in its place nothing, after a change.

    Copies, parts and pickles of it begin anew. Of two threads that ask first one finds it out in
    vain.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> data = make_separation_pair()
    >>> known(data).scores.tolist(), known(data) is known(data)
    ([[1.0, 0.0]], True)
    >>> data.X[0, 0] *= 7
    >>> known(data).scores.tolist()
    [[7.0, 0.0]]
    """
    require_dataset(data, cross=True)
    found = _known.get(data)
    if found is None or not found.holds(data):
        if data.X.numel() > KEPT:
            return Known(data)
        if data.X.numel() > LARGE and data not in _known:
            _known[data] = None
            return Known(data)
        found = _known[data] = Known(data.detached())
    return found


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype != other.dtype:  # what counts as a tie is a matter of the dtype
        return False
    if one.numel() < 2**14 or not one.is_cpu:
        return torch.equal(one, other)
    return np.array_equal(one.numpy(), other.detach().numpy())  # a fourth of torch's time


def token_scores(data: Dataset, u: TensorLike | None = None) -> torch.Tensor:
    """Scores gamma_{i,t} = y_i u' x_{i,t} of Definition 1, in float64.

    Parameters
    ----------
    data : Dataset
    u : (d,) tensor, optional
        The decoder; the data set's own by default.

    Returns
    -------
    (n, T) float64 tensor
        -inf at padding. Scores of one sequence that differ by no more than the rounding
        error of the product X u are made exactly equal, so that data meant to satisfy
        Assumption 2 do.

    Raises
    ------
    MissingDecoderError, ShapeError, DtypeError, NonFiniteError, DeviceError
    RangeError
        When scores leave the range of float64.

    Notes
    -----
    Source: Definition 1 of the paper. Equalising is ours [d]: a spread of 1e-16 between
    scores meant to be equal would otherwise decide the run once the softmax of a
    wrong token saturates.

    Examples
    --------
    >>> from attnbias import make_separation_pair, token_scores
    >>> token_scores(make_separation_pair()).tolist()
    [[1.0, 0.0]]
    """
    if u is None:
        return known(data).scores.clone()
    require_dataset(data, cross=True)
    return _scores(data, as_floats("u", u, (data.d,), "(d,)", data.X.device))


def _scores(data: Dataset, u: torch.Tensor | None) -> torch.Tensor:
    """`token_scores` of a decoder that is one."""
    if u is None:
        raise MissingDecoderError(
            "u",
            expected="a decoder, in the data set or as an argument",
            got="none",
            remedy="use data.with_decoder(u), pass opt where it is taken, or of a head "
            "head.dataset(readout=...)",
        )
    X, y, u = data.X.double(), data.y.double(), u.double()
    scores = y[:, None] * (X @ u)
    # Each product of length d is off by at most about d eps |x||u|; 4 leaves room for
    # the rounding of u itself, which makers get from a linear solve.
    eps = torch.finfo(data.X.dtype).eps
    tolerance = 4 * eps * data.d**0.5 * vector_norm(X, dim=2).amax(dim=1) * vector_norm(u)
    if not all(np.isfinite(each.detach().cpu().numpy()).all() for each in (tolerance, scores)):
        for name, value in (("X", X), ("u", u)):  # which a change in place may have spoilt
            require_finite(name, value)
        raise RangeError(
            "u",
            expected="scores y u'x, and norms of u and x, within the range of float64",
            got=f"entries up to {float(X.abs().max()):.3g} in X, {float(u.abs().max()):.3g} in u",
            remedy="rescale the tokens or the decoder",
        )
    return _equalise(scores.masked_fill(~data.mask, -torch.inf), tolerance)


def _equalise(scores: torch.Tensor, tolerance: torch.Tensor) -> torch.Tensor:
    """Replace each run of sorted scores with steps within tolerance by the run's mean."""
    # in numpy, whose calls cost a third of torch's on arrays of this size
    values, within = scores.cpu().numpy(), tolerance.cpu().numpy()[:, None]
    each = np.arange(len(values))[:, None]
    order = values.argsort(axis=1, kind="stable")
    ordered = values[each, order]
    finite = np.isfinite(ordered)  # those at padding are -inf, and come first
    known = np.where(finite, ordered, 0.0)
    new = np.ones(known.shape, dtype=bool)
    new[:, 1:] = (np.diff(known, axis=1) > within) | ~finite[:, :-1]
    if new.all():
        return scores
    run = new.cumsum() - 1  # through all sequences
    count = np.bincount(run)
    mean = (np.bincount(run, known.ravel()) / count)[run].reshape(known.shape)
    out = np.empty_like(values)
    out[each, order] = np.where((count == 1)[run].reshape(known.shape), ordered, mean)
    return torch.from_numpy(out).to(scores.device)


def optimal_tokens(data: Dataset, u: TensorLike | None = None) -> torch.Tensor:
    """Index opt_i of the token with the largest score (Definition 1), unique in each sequence.

    Parameters
    ----------
    data : Dataset
    u : (d,) tensor, optional

    Returns
    -------
    (n,) long tensor

    Raises
    ------
    TiedTokensError
        When two tokens of a sequence share the largest score up to rounding.
    MissingDecoderError, ShapeError, DtypeError, NonFiniteError, DeviceError

    Examples
    --------
    >>> from attnbias import make_separation_pair, optimal_tokens
    >>> optimal_tokens(make_separation_pair()).tolist()
    [0]
    """
    return known(data).best.clone() if u is None else _untied(token_scores(data, u))


def _untied(scores: torch.Tensor) -> torch.Tensor:
    """(n,) the largest score of each sequence, if it has one."""
    top = scores.topk(2, dim=1).values
    tied = (top[:, 0] == top[:, 1]).nonzero().flatten()
    if tied.numel():
        i = int(tied[0])
        raise TiedTokensError(
            "u",
            expected="one token with the largest score in each sequence",
            got=f"{tied.numel()} sequences with a tie, first {i} at score {float(top[i, 0]):.6g}",
            remedy="change u, or drop repeated tokens from these sequences",
        )
    return scores.argmax(dim=1)


def score_levels(data: Dataset, u=None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three (n,) tensors: the largest score of each sequence, the next, and the least."""
    scores = known(data).scores if u is None else token_scores(data, u)
    top, second = scores.topk(2, dim=1).values.T
    return top, second, scores.masked_fill(~data.mask, torch.inf).amin(dim=1)


def resolve_opt(data: Dataset, opt: TensorLike | None = None) -> torch.Tensor:
    """`opt` validated; when None those given with the data, or those of the data's decoder."""
    if opt is None:
        return known(data).opt.clone()
    require_dataset(data, cross=True)
    return as_token_indices("opt", opt, data.lengths)


@dataclass(frozen=True, eq=False)
class GapRows:
    """The rows z_{i,tau} = (x_{i,opt} - x_{i,tau}) x_{i,1}' of the W-SVM, never formed.

    Attributes
    ----------
    differences : (N', d) float64
        x_{i,opt} - x_{i,tau}, sequence by sequence, tokens in order, opt and padding left out.
    queries : (n, d) float64
        x_{i,1}; (n, r), their coordinates, for `thin` rows.
    sequence, token : (N',) long
        Where each row comes from.
    opt : (n,) long
    keys : (n, T, d), optional
        The tokens, as they are given: their differences in float64 are rounded.

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> rows = solve_w_svm(make_separation_pair()).rows
    >>> rows.differences.tolist(), rows.gram().tolist()
    ([[1.0, 0.0]], [[1.0]])
    """

    differences: torch.Tensor
    queries: torch.Tensor
    sequence: torch.Tensor
    token: torch.Tensor
    opt: torch.Tensor
    keys: torch.Tensor | None = None

    def gram(self) -> torch.Tensor:
        """(N', N') matrix of <z_k, z_k'>: the product of two Gram matrices, entry by entry."""
        K, M = self.differences @ self.differences.T, self.queries @ self.queries.T
        return K.mul_(M[self.sequence][:, self.sequence])

    @property
    def factors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(N', d) and (N', d): z_k is the outer product of their rows k."""
        return self.differences, self.queries[self.sequence]

    def norms(self) -> torch.Tensor:
        """(N',) norms of the rows."""
        queries = vector_norm(self.queries, dim=1)
        return vector_norm(self.differences, dim=1) * queries[self.sequence]

    def thin(self) -> tuple[GapRows, torch.Tensor | None]:
        """The rows for an orthonormal basis (r, d) of the queries' span, and that basis.

        Sums of such rows are (d, r); times the basis they are (d, d). Where d x d is small
        or the queries span all, the rows are returned as they are, with None.
        """
        n, d = self.queries.shape
        if d <= max(n, WIDE):
            return self, None
        basis, coordinates = torch.linalg.qr(self.queries.T)
        return dataclasses.replace(self, queries=coordinates.T.contiguous()), basis.T

    def within(self, basis: torch.Tensor | None) -> GapRows:
        """The rows for the coordinates of W in an orthonormal basis (r, d), as `thin` has them."""
        if basis is None:
            return self
        require_vectors(basis=basis)
        require_shape("basis", basis, (None, self.queries.shape[1]), "(r, d)")
        return dataclasses.replace(self, queries=self.queries @ basis.T)

    def gaps(self, W: torch.Tensor) -> torch.Tensor:
        """(N',) logit gaps g_k = <z_k, W>."""
        require_vectors(W=W)
        require_shape("W", W, (self.differences.shape[1], self.queries.shape[1]), "that of W")
        return (self.differences * (self.queries @ W.T)[self.sequence]).sum(dim=1)

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        """(d, d) matrix sum_k weights_k z_k, by one matrix product; (d, r) for thin rows."""
        require_vectors(weights=weights)
        require_shape("weights", weights, (len(self.sequence),), "one a row")
        folded = self.differences.new_zeros(len(self.queries), self.differences.shape[1])
        folded.index_add_(0, self.sequence, weights[:, None] * self.differences)
        return folded.T @ self.queries


def tokens_of(rows: GapRows) -> torch.Tensor:
    """The (n, T, d) tokens that the rows are of, and their queries too."""
    if rows.keys is not None and torch.equal(rows.queries, rows.keys[:, 0].double()):
        return rows.keys
    raise QueryError(
        "svm",
        expected="queries that are the first tokens, with the tokens beside the rows",
        got="others" if rows.keys is not None else "no tokens",
        remedy="take a solution of data without queries or keys of their own",
    )


def places(mask: torch.Tensor, opt: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Sequence and token of each row of (W-SVM), in order: all tokens but the optimal ones."""
    return mask.scatter(1, opt[:, None], False).nonzero(as_tuple=True)


def gap_rows(data: Dataset, opt: TensorLike | None = None) -> GapRows:
    """The constraint rows of (W-SVM) for given (default: the data's) optimal tokens.

    From the keys and queries where the data have their own.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from attnbias.geometry.tokens import gap_rows
    >>> rows = gap_rows(make_separation_pair())
    >>> rows.sequence.tolist(), rows.token.tolist()
    ([0], [1])
    """
    return known(data).own_rows(data, None if opt is None else resolve_opt(data, opt))


def _rows(data: Dataset, opt: torch.Tensor) -> GapRows:
    sequence, token = places(data.mask, opt)
    given, queries = data.keys.detach(), data.queries.double().contiguous()
    keys = given.double()
    differences = keys[sequence, opt[sequence]] - keys[sequence, token]
    return GapRows(differences, queries, sequence, token, opt, given)


@dataclass(frozen=True, eq=False)
class VectorRows:
    """Rows written out as vectors, with the methods of `GapRows`.

    Attributes
    ----------
    rows : (N', D) float64
        Without their part in F where there are equalities.
    sequence, token : (N',) long
        Where each row comes from.
    shape : tuple of int
        That of the weights: (D,), or (d, d) for matrices that are flattened by rows.
    basis : (D, r) float64, optional
        An orthonormal basis of F, the span of the equalities' rows, which must give 0.

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_u_svm
    >>> rows = solve_u_svm(make_separation_pair()).rows
    >>> rows.rows.tolist(), rows.combine(torch.tensor([2.0]).double()).tolist()
    ([[1.0, 0.0]], [2.0, 0.0])
    """

    rows: torch.Tensor
    sequence: torch.Tensor
    token: torch.Tensor
    shape: tuple[int, ...]
    basis: torch.Tensor | None = None

    def gram(self) -> torch.Tensor:
        """(N', N') inner products."""
        return self.rows @ self.rows.T

    @property
    def factors(self) -> tuple[torch.Tensor]:
        """(N', D), the rows themselves."""
        return (self.rows,)

    def gaps(self, weights: torch.Tensor) -> torch.Tensor:
        """(N',) <row, weights>."""
        require_vectors(weights=weights)
        require_shape("weights", weights.reshape(-1), self.rows.shape[1:], "that of a row")
        return self.rows @ weights.reshape(-1).to(self.rows.dtype)

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        """The weighted sum of the rows, in the shape of the SVM's weights."""
        require_vectors(weights=weights)
        require_shape("weights", weights, (len(self.rows),), "one a row")
        return (self.rows.T @ weights.to(self.rows.dtype)).reshape(self.shape)

    def norms(self) -> torch.Tensor:
        """(N',) norms of the rows."""
        return vector_norm(self.rows, dim=1)

    def thin(self) -> tuple[VectorRows, None]:
        """The rows themselves, which have no factors, and no basis."""
        return self, None

    def within(self, _: None) -> VectorRows:
        """The rows themselves."""
        return self


def selected_tokens(data: Dataset, W: TensorLike) -> torch.Tensor:
    """The token with the largest logit of each sequence: where attention goes as W grows.

    Parameters
    ----------
    data : Dataset
    W : (d, d) tensor

    Returns
    -------
    (n,) long tensor
        The first of them where logits tie.

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, DeviceError

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> from attnbias.geometry.tokens import selected_tokens
    >>> data = make_separation_pair()
    >>> weights = solve_w_svm(data).weights
    >>> selected_tokens(data, weights).tolist(), selected_tokens(data, -weights).tolist()
    ([0], [1])
    """
    require_dataset(data, cross=True)
    W = as_floats("W", W, (data.d, data.d), "(d, d)", data.X.device).double()
    first = torch.zeros_like(data.lengths)
    return logits_of(gap_rows(data, first).gaps(W), first, data.mask).argmax(dim=1)


def logits_of(gaps: torch.Tensor, opt: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """(..., n, T) logits less that of the token `opt`, from gaps (..., N'); -inf at padding."""
    logits = gaps.new_full((*gaps.shape[:-1], *mask.shape), -torch.inf)
    sequence, token = places(mask, opt)
    logits[..., sequence, token] = -gaps
    logits[..., torch.arange(len(opt), device=opt.device), opt] = 0.0
    return logits


def gaps_of(logits: torch.Tensor, opt: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """(..., N') gaps of the rows of the W-SVM of `opt`, from logits (..., n, T)."""
    sequence, token = places(mask, opt)
    return logits[..., sequence, opt[sequence]] - logits[..., sequence, token]


def first_equal(rows: GapRows | VectorRows, chosen: torch.Tensor) -> torch.Tensor:
    """For each of the chosen rows the place among them of the first that is the same row.

    A token said twice, or a whole sequence, gives equal rows: those whose bits are the same.

    Parameters
    ----------
    rows : GapRows or VectorRows
    chosen : (N',) bool

    Returns
    -------
    (m,) long

    Examples
    --------
    >>> from attnbias.geometry.tokens import VectorRows
    >>> rows = VectorRows(torch.tensor([[1.0], [2.0], [1.0]]), *torch.zeros(2, 3).long(), (1,))
    >>> first_equal(rows, torch.tensor([True, True, True])).tolist()
    [0, 1, 0]
    """
    parts = [(part[chosen] + 0.0).cpu().numpy() for part in rows.factors]  # -0.0 is 0.0
    first: dict[bytes, int] = {}
    # by a digest of 512 bits, since the rows themselves may not fit twice
    digests = (
        hashlib.blake2b(b"".join(map(bytes, row))).digest() for row in zip(*parts, strict=True)
    )
    found = [first.setdefault(digest, k) for k, digest in enumerate(digests)]
    return torch.tensor(found, dtype=torch.long)
