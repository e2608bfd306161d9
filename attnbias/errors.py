"""Named errors: each says what was expected, what came, and what to do.

Every error derives from `AttnBiasError` and from the built-in a caller would have
caught anyway (`ValueError`, `TypeError`, ...), so both kinds of handler work.
"""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = [
    "AttnBiasDeprecationWarning",
    "AttnBiasError",
    "ChecksumError",
    "DeviceError",
    "DivergedError",
    "DtypeError",
    "FileAccessError",
    "FileFormatError",
    "InfeasibleError",
    "LabelError",
    "MemoryLimitError",
    "MissingDecoderError",
    "MissingExtraError",
    "MissingFileError",
    "NonFiniteError",
    "PaddingWarning",
    "QueryError",
    "RangeError",
    "RegistrationError",
    "ShapeError",
    "SolverError",
    "TiedTokensError",
    "UnderflowError",
]

# What a terminal obeys, or can't print: the C0 and C1 controls but tab and newline, surrogates, and
# marks that turn the order of letters.
_CONTROL = re.compile("[\0-\b\v-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with its control characters escaped; tab and newline stay."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class AttnBiasError(Exception):
    """Base of all errors raised on purpose by attnbias.

    Parameters
    ----------
    what : str
        The argument, file or computation at fault.
    expected, got, remedy : str
        What would have been right, what came, and how to mend it.

    Examples
    --------
    >>> error = AttnBiasError("eta", expected="above 0", got="-1", remedy="pass a positive one")
    >>> print(error)
    eta: expected above 0; got -1. Pass a positive one.
    """

    def __init__(self, what: str, *, expected: str, got: str, remedy: str) -> None:
        self.what, self.expected, self.got, self.remedy = what, expected, got, remedy
        text = f"{what}: expected {expected}; got {got}. {_sentence(remedy)}"
        super().__init__(printable(text))

    def __str__(self) -> str:  # that of OSError would drop the message
        return str(self.args[0])

    def __reduce__(self):  # the default loses keyword arguments, which breaks process pools
        words = {"expected": self.expected, "got": self.got, "remedy": self.remedy}
        return functools.partial(type(self), self.what, **words), (), vars(self)


# A word that may begin with a capital letter: not a name in code, nor what a line of code sets.
_WORD = re.compile(r"[a-z][a-z'-]*(?=[ ,:;]|$)(?! =)")


def _sentence(text: str) -> str:
    """With a capital, unless it begins with a name in code, and a full stop."""
    text = text.strip()
    text = text[:1].upper() + text[1:] if _WORD.match(text) else text
    return text + ("" if text.endswith((".", "!")) else ".")


class ShapeError(AttnBiasError, ValueError):
    """A tensor has the wrong rank or size.

    Examples
    --------
    >>> from attnbias import Dataset
    >>> try:
    ...     Dataset([[1.0, 0.0]], [1.0])
    ... except ShapeError as error:
    ...     print(error.expected)
    shape (n, T, d), none of them zero
    """


class DtypeError(AttnBiasError, TypeError):
    """An argument has the wrong type or a tensor the wrong dtype.

    Examples
    --------
    >>> from attnbias import diagnose
    >>> try:
    ...     diagnose("tokens.npz")
    ... except DtypeError as error:
    ...     print(error.expected)
    a Dataset
    """


class NonFiniteError(AttnBiasError, ValueError):
    """A tensor or number is NaN or infinite where it must be finite.

    Examples
    --------
    >>> from attnbias import Dataset
    >>> try:
    ...     Dataset([[[1.0], [float("nan")]]], [1.0])
    ... except NonFiniteError as error:
    ...     print(error.expected)
    finite numbers
    """


class RangeError(AttnBiasError, ValueError):
    """A number or a choice lies outside its allowed range.

    Examples
    --------
    >>> from attnbias import NGD
    >>> try:
    ...     NGD(-1.0)
    ... except RangeError as error:
    ...     print(error.got)
    -1
    """


class PaddingWarning(UserWarning):
    """Sequences end in zero rows that look like padding, and no lengths were given.

    One zero row at the end of every sequence is a token like others, since it would pad them to
    nothing, and so are the first two rows, since attention over one token selects nothing.

    Examples
    --------
    >>> import warnings
    >>> from attnbias import Dataset
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     data = Dataset([[[1.0], [2.0], [3.0]], [[1.0], [2.0], [0.0]]], [1, -1])
    >>> caught[0].category.__name__
    'PaddingWarning'
    """


class LabelError(AttnBiasError, ValueError):
    """A label is neither -1 nor +1.

    Examples
    --------
    >>> from attnbias import Dataset
    >>> try:
    ...     Dataset([[[1.0], [0.0]]], [0.5])
    ... except LabelError as error:
    ...     print(error.remedy)
    map your two classes to -1 and +1
    """


class QueryError(AttnBiasError, ValueError):
    """A statement on self-attention was asked of data with queries or keys of their own.

    Examples
    --------
    >>> from attnbias import Dataset, check_assumption1
    >>> data = Dataset([[[1.0, 0.0], [0.0, 0.0]]], [1.0], [1.0, 0.0], query=[[0.0, 1.0]])
    >>> try:
    ...     check_assumption1(data)
    ... except QueryError as error:
    ...     print(error.got)
    Dataset(n=1 sequences, T=2 tokens, d=2 features, decoder given, queries given)
    """


class TiedTokensError(AttnBiasError, ValueError):
    """A sequence has no unique optimal token (Definition 1 assumes one).

    Examples
    --------
    >>> from attnbias import Dataset, optimal_tokens
    >>> try:
    ...     optimal_tokens(Dataset([[[1.0, 0.0], [1.0, 2.0]]], [1.0], [1.0, 0.0]))
    ... except TiedTokensError as error:
    ...     print(error.expected)
    one token with the largest score in each sequence
    """


class MissingDecoderError(AttnBiasError, ValueError):
    """A computation needs the decoder u, and the data set carries none.

    Examples
    --------
    >>> from attnbias import Dataset, optimal_tokens
    >>> try:
    ...     optimal_tokens(Dataset([[[1.0], [0.0]]], [1.0]))
    ... except MissingDecoderError as error:
    ...     print(error.remedy)
    use data.with_decoder(u), pass opt where it is taken, or of a head head.dataset(readout=...)
    """


class DeviceError(AttnBiasError, RuntimeError):
    """Tensors that must share a device don't, or the device is not there.

    Examples
    --------
    >>> issubclass(DeviceError, RuntimeError)
    True
    """


class InfeasibleError(AttnBiasError, ValueError):
    """A hard-margin SVM has no solution; carries Gordan's certificate.

    Attributes
    ----------
    certificate : torch.Tensor, shape (N',)
        Non-negative weights with sum 1 under which the constraint rows add up to zero.
    residual : float
        Norm of that weighted sum over the weighted sum of the rows' norms.

    Examples
    --------
    >>> from attnbias import Dataset, solve_w_svm
    >>> data = Dataset([[[0.0, 0.0], [1.0, 0.0]]], [1.0], [1.0, 0.0])
    >>> try:
    ...     solve_w_svm(data)
    ... except InfeasibleError as error:
    ...     print(error.certificate.tolist())
    [1.0]
    """

    certificate: torch.Tensor | None = None
    residual: float | None = None


class SolverError(AttnBiasError, RuntimeError):
    """A solver stopped before its certificate was tight.

    Examples
    --------
    >>> issubclass(SolverError, RuntimeError)
    True
    """


class MissingFileError(AttnBiasError, FileNotFoundError):
    """A file is not where it was said to be.

    Examples
    --------
    >>> from attnbias import Trace
    >>> try:
    ...     Trace.load("no-such-run.npz")
    ... except FileNotFoundError as error:
    ...     print(type(error).__name__)
    MissingFileError
    """


class FileAccessError(AttnBiasError, OSError):
    """A path can't be used as a file: a folder, an impossible name, or no permission.

    Examples
    --------
    >>> from attnbias import Trace
    >>> try:
    ...     Trace.load(".")
    ... except FileAccessError as error:
    ...     print(error.expected)
    the name of a file, and the right to use it
    """


class FileFormatError(AttnBiasError, ValueError):
    """A file is damaged, foreign, or of another version.

    Examples
    --------
    >>> import tempfile
    >>> from attnbias import Trace
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     try:
    ...         Trace.load(file.name)
    ...     except FileFormatError as error:
    ...         print(error.expected)
    an npz file of plain arrays
    """


class ChecksumError(FileFormatError):
    """A file's sha256 differs from the recorded one.

    Examples
    --------
    >>> issubclass(ChecksumError, FileFormatError)
    True
    """


class MissingExtraError(AttnBiasError, ImportError):
    """An optional dependency is needed and not installed.

    Examples
    --------
    >>> issubclass(MissingExtraError, ImportError)
    True
    """


class RegistrationError(AttnBiasError, ImportError):
    """What an installed package registers under an entry point cannot be imported or used.

    Examples
    --------
    >>> issubclass(RegistrationError, ImportError)
    True
    """


class DivergedError(AttnBiasError, ArithmeticError):
    """Training left the finite numbers.

    Examples
    --------
    >>> issubclass(DivergedError, ArithmeticError)
    True
    """


class UnderflowError(AttnBiasError, ArithmeticError):
    """A gradient is too small for float64, and not zero.

    Examples
    --------
    >>> import torch
    >>> from attnbias import attention_loss, make_separation_pair
    >>> data = make_separation_pair()
    >>> W = (1e6 * torch.eye(2).double()).requires_grad_()
    >>> try:
    ...     attention_loss(data.X, data.y, data.u, W).backward()
    ... except UnderflowError as error:
    ...     print(error.got)
    a norm of exp(-1e+06)
    """


class MemoryLimitError(AttnBiasError, MemoryError):
    """A device has no memory left for what was asked.

    Examples
    --------
    >>> issubclass(MemoryLimitError, MemoryError)
    True
    """


class AttnBiasDeprecationWarning(DeprecationWarning):
    """A name that you use leaves the public ones: what takes its place, and when it goes.

    It is said once for each name and process.

    Examples
    --------
    >>> issubclass(AttnBiasDeprecationWarning, DeprecationWarning)
    True
    """


_said: set[str] = set()  # the names of which this process has been warned


def leaving(module: str, goes: str, names: Mapping[str, tuple[str, str]]) -> Callable[[str], Any]:
    """A module's `__getattr__` for names that leave it in a release: each still does as before.

    Parameters
    ----------
    module, goes : str
        The module, and the release that no longer has the names.
    names : mapping
        Each name, with the module it is taken from and what takes its place.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        home, instead = names[name]
        full = f"{module}.{name}"
        if full not in _said:
            _said.add(full)
            words = f"{full} goes in attnbias {goes}: use {instead}"
            warnings.warn(words, AttnBiasDeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home), name)

    return get
