"""What the tests of several rooms share: bad input that is refused, and gradients by autograd."""

import numpy as np
import pytest
import torch
from tolerances import CLOSED_FORM

from attnbias import NGD, Dataset, errors
from attnbias.errors import AttnBiasError

# of margins, in plain torch
RISK = {
    "exponential": lambda margin: torch.exp(-margin).mean(),
    "logistic": lambda margin: torch.nn.functional.softplus(-margin).mean(),
}


def refusals(*cases, **by_error):
    """A test that each (error, call), or call alone, is refused by an error of the library.

    The calls may also stand in lists, under the names of their errors.
    """
    pairs = [case if isinstance(case, tuple) else (AttnBiasError, case) for case in cases]
    pairs += [(getattr(errors, name), call) for name, calls in by_error.items() for call in calls]

    @pytest.mark.parametrize(("error", "call"), pairs)
    def refused(error, call):
        with pytest.raises(error) as caught:
            call()
        assert isinstance(caught.value, AttnBiasError)

    return refused


def refused_settings(make, *cases, **others):
    """A test that a value of a named argument is refused by this error, which names it."""

    @pytest.mark.parametrize(("name", "value", "error"), cases)
    def refused(name, value, error):
        with pytest.raises(error, match=name):
            make(**others | {name: value})

    return refused


def normal(*size, seed=0) -> torch.Tensor:
    """Gaussian numbers of this shape in float64."""
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def assert_gradient(run_of, W, loss, tolerance=CLOSED_FORM) -> torch.Tensor:
    """The step and the records of `run_of(W)`, one step of GD(0.1), against autograd of `loss`."""
    at = W.clone().requires_grad_()
    value = loss(at)
    (gradient,) = torch.autograd.grad(value, at)
    run = run_of(W)
    assert float(((run.W[0] - run.W[1]) / 0.1 - gradient).abs().max()) < tolerance
    assert abs(run.loss[0] - float(value.detach())) < CLOSED_FORM
    sizes = torch.linalg.vector_norm(gradient, dim=(-2, -1)).numpy()
    assert np.abs(np.exp(run.log_grad_norm[0]) / sizes - 1).max() < tolerance
    return gradient


def assert_unit_steps(run_of, size=0.1) -> None:
    """One step of NGD: of this length in the whole if shared, and in each part if separate."""
    for normalise, expected in (("shared", size), ("separate", [size, size])):
        run = run_of(NGD(size, normalise=normalise))
        axes = None if normalise == "shared" else (1, 2)
        moved = (run.W[1] - run.W[0]).numpy()
        found = np.linalg.norm(moved) if axes is None else np.linalg.norm(moved, axis=axes)
        assert found == pytest.approx(expected)


def two_orthogonal() -> Dataset:
    """Two sequences with rows e1 e1' and e2 e2': margins ask for W11, W22 >= 1.

    Solutions in the nuclear norm are [[1, c], [c, 1]], all |c| <= 1.
    """
    X = [[[1.0, 0, 0], [0, 0, 0]], [[0, 1.0, 0], [0, 0, 0]]]
    return Dataset(X, [1, 1], u=[1.0, 1.0, 0])
