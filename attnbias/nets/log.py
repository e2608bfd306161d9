"""What a training run of a network recorded, as json holds it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..errors import FileFormatError, RangeError

CURVES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "batch_loss", "grad_norm",
          "step_size", "seconds")  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainingLog:
    """The curves of one run.

    Attributes
    ----------
    step : numpy.ndarray, shape (m,)
        Iterations recorded; 0 is the start.
    curves : dict of str to numpy.ndarray, shape (m,)
        By the names in `CURVES`. train_* and test_* are measured in evaluation mode on fixed
        examples of each set; batch_loss is the mean over the iterations since the last
        record, grad_norm and step_size the medians over them (NaN at the start). step_size
        is what multiplies the gradient: lr for SGD, lr / |g| for SNGD, the capped Polyak
        step for SPS; for Adam it is the lr, which multiplies no gradient. seconds is the
        time spent on iterations, evaluation not counted.
    norms : dict of str to numpy.ndarray, shape (m,)
        Frobenius norm of every weight matrix, by parameter name.
    meta : dict
        Arguments and sizes of the run.

    Examples
    --------
    >>> log = TrainingLog(np.arange(3), {"train_loss": np.array([0.7, 0.5, 0.4])}, {})
    >>> float(log["train_loss"][-1])
    0.4
    """

    step: np.ndarray
    curves: dict[str, np.ndarray]
    norms: dict[str, np.ndarray]
    meta: dict = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self.curves[name]
        except KeyError:
            raise RangeError(
                "name", expected="one of " + ", ".join(self.curves), got=repr(name)[:60],
                remedy="pick one of these; weight norms are in .norms",
            ) from None  # fmt: skip

    def same_curves(self, other: TrainingLog) -> bool:
        """Whether two runs agree in every digit, but for the time that they took."""
        mine, theirs = (
            {"step": log.step, **log.curves, **{f"norm {k}": norm for k, norm in log.norms.items()}}
            for log in (self, other)
        )
        names = mine.keys() - {"seconds"}
        return names == theirs.keys() - {"seconds"} and all(
            np.array_equal(mine[name], theirs[name], equal_nan=True) for name in names
        )

    def to_json(self, digits: int | None = None) -> dict:
        """Lists and numbers, NaN as None; rounded to so many significant digits, if given."""
        curves, norms = (
            {name: [_rounded(float(value), digits) for value in series[name]] for name in series}
            for series in (self.curves, self.norms)
        )
        step = [int(step) for step in self.step]
        return {"step": step, "curves": curves, "norms": norms, "meta": self.meta}

    @classmethod
    def from_json(cls, stored: dict) -> TrainingLog:
        """The inverse of `to_json`.

        Raises
        ------
        FileFormatError
        """
        try:
            step = np.array(stored["step"], dtype=int)
            curves, norms = (
                {name: np.array(values, dtype=float) for name, values in stored[key].items()}
                for key in ("curves", "norms")
            )
            lengths = {len(values) for values in (step, *curves.values(), *norms.values())}
            if len(lengths) != 1 or not set(CURVES) <= curves.keys():
                raise ValueError("curves are missing or of unequal lengths")
            return cls(step, curves, norms, dict(stored["meta"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(
                "training log", expected="step, curves, norms and meta of one run",
                got=f"{type(error).__name__}: {error}"[:200], remedy="run it again",
            ) from None  # fmt: skip


def _rounded(value: float, digits: int | None) -> float | None:
    if np.isnan(value):
        return None
    return value if digits is None else float(f"{value:.{digits}g}")
