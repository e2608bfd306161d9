"""What a training run of a network recorded, as json holds it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._validate import require_choice, require_int
from ..data._source import translated

CURVES = (
    "train_loss",
    "train_accuracy",
    "test_loss",
    "test_accuracy",
    "batch_loss",
    "grad_norm",
    "step_size",
    "seconds",
)


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
        return self.curves[require_choice("name", name, self.curves)]

    def diverged(self, steps: list[int]) -> TrainingLog:
        """The log of a run that got no further: its losses are infinite at the later steps."""
        missing = len(steps) - len(self.step)
        ends = {name: np.inf if name.endswith("_loss") else np.nan for name in self.curves}
        curves, norms = self._each(
            lambda name, series: np.append(series, np.full(missing, ends.get(name, np.nan)))
        )
        return TrainingLog(np.array(steps), curves, norms, self.meta | {"diverged": True})

    def _each(self, made) -> list[dict]:
        """Curves and norms with what is made of each series and its name."""
        parts = (self.curves, self.norms)
        return [{name: made(name, series) for name, series in part.items()} for part in parts]

    def to_json(self, digits: int | None = None) -> dict:
        """Lists and numbers, NaN as None, infinity as "inf"; rounded to so many significant digits.

        Raises
        ------
        DtypeError, RangeError
        """
        digits = None if digits is None else require_int("digits", digits, low=1, high=17)
        curves, norms = self._each(lambda _, s: [_rounded(float(value), digits) for value in s])
        return {"step": self.step.tolist(), "curves": curves, "norms": norms, "meta": self.meta}

    @classmethod
    def from_json(cls, stored: dict) -> TrainingLog:
        """The inverse of `to_json`.

        Raises
        ------
        FileFormatError
        """
        with translated("training log", "step, curves, norms and meta of one run", "run it again"):
            step = np.array(stored["step"], dtype=int)
            curves, norms = (
                {name: np.array(values, dtype=float) for name, values in stored[key].items()}
                for key in ("curves", "norms")
            )
            lengths = {len(values) for values in (step, *curves.values(), *norms.values())}
            if len(lengths) != 1 or not set(CURVES) <= curves.keys():
                raise ValueError("curves are missing or of unequal lengths")
            return cls(step, curves, norms, dict(stored["meta"]))


def _rounded(value: float, digits: int | None) -> float | str | None:
    if not np.isfinite(value):
        return None if np.isnan(value) else "inf"
    return value if digits is None else float(f"{value:.{digits}g}")
