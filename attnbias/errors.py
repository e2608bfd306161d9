"""Named errors: each says what was expected, what came, and what to do.

Every error derives from `AttnBiasError` and from the built-in a caller would have
caught anyway (`ValueError`, `TypeError`, ...), so both kinds of handler work.
"""

from __future__ import annotations

import functools


class AttnBiasError(Exception):
    """Base of all errors raised on purpose by attnbias.

    Parameters
    ----------
    what : str
        The argument, file or computation at fault.
    expected, got, remedy : str
        What would have been right, what came, and how to mend it.
    """

    def __init__(self, what: str, *, expected: str, got: str, remedy: str) -> None:
        self.what, self.expected, self.got, self.remedy = what, expected, got, remedy
        super().__init__(f"{what}: expected {expected}; got {got}. {_sentence(remedy)}")

    def __str__(self) -> str:  # that of OSError would drop the message
        return str(self.args[0])

    def __reduce__(self):  # the default loses keyword arguments, which breaks process pools
        words = {"expected": self.expected, "got": self.got, "remedy": self.remedy}
        return functools.partial(type(self), self.what, **words), (), vars(self)


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!")) else ".")


class ShapeError(AttnBiasError, ValueError):
    """A tensor has the wrong rank or size."""


class DtypeError(AttnBiasError, TypeError):
    """An argument has the wrong type or a tensor the wrong dtype."""


class NonFiniteError(AttnBiasError, ValueError):
    """A tensor or number is NaN or infinite where it must be finite."""


class RangeError(AttnBiasError, ValueError):
    """A number or a choice lies outside its allowed range."""


class LabelError(AttnBiasError, ValueError):
    """A label is neither -1 nor +1."""


class QueryError(AttnBiasError, ValueError):
    """A statement on self-attention was asked of data with queries or keys of their own."""


class TiedTokensError(AttnBiasError, ValueError):
    """A sequence has no unique optimal token (Definition 1 assumes one)."""


class MissingDecoderError(AttnBiasError, ValueError):
    """A computation needs the decoder u, and the data set carries none."""


class DeviceError(AttnBiasError, RuntimeError):
    """Tensors that must share a device don't, or the device is not there."""


class InfeasibleError(AttnBiasError, ValueError):
    """A hard-margin SVM has no solution; carries Gordan's certificate.

    Attributes
    ----------
    certificate : torch.Tensor, shape (N',)
        Non-negative weights with sum 1 under which the constraint rows add up to zero.
    residual : float
        Norm of that weighted sum over the weighted sum of the rows' norms.
    """

    def __init__(self, what, *, expected, got, remedy, certificate=None, residual=None):
        super().__init__(what, expected=expected, got=got, remedy=remedy)
        self.certificate, self.residual = certificate, residual


class SolverError(AttnBiasError, RuntimeError):
    """A solver stopped before its certificate was tight."""


class MissingFileError(AttnBiasError, FileNotFoundError):
    """A file is not where it was said to be."""


class FileAccessError(AttnBiasError, OSError):
    """A path can't be used as a file: a folder, an impossible name, or no permission."""


class FileFormatError(AttnBiasError, ValueError):
    """A file is damaged, foreign, or of another version."""


class ChecksumError(FileFormatError):
    """A file's sha256 differs from the recorded one."""


class MissingExtraError(AttnBiasError, ImportError):
    """An optional dependency is needed and not installed."""


class DivergedError(AttnBiasError, ArithmeticError):
    """Training left the finite numbers."""


class MemoryLimitError(AttnBiasError, MemoryError):
    """A device has no memory left for what was asked."""
