"""The paper's figures as experiments, and those that installed packages register."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .._extras import load_registered, registered
from .._files import as_path
from .._validate import PathLike, require_choice, short
from ..errors import DtypeError
from . import fig2, fig3, fig8, fig9, fig10
from .forms import Form
from .networks.figures import NetworkFigure, fig1, fig4, fig6, fig7
from .networks.runs import Plan, merged, train_all
from .result import ExperimentResult

__all__ = [
    "ExperimentResult",
    "describe",
    "fig10",
    "fig2",
    "fig3",
    "fig8",
    "fig9",
    "list",
    "load",
    "merge",
    "run",
]


class Experiment(Protocol):
    """An experiment: a module, or a row of a table of them."""

    @property
    def TITLE(self) -> str:
        """One line on it."""
        ...

    @property
    def FORM(self) -> Form:
        """What its results are like."""
        ...

    @property
    def run(self) -> Callable[..., ExperimentResult | Plan]:
        """Run it."""
        ...


_PAPER: dict[str, Any] = {  # each an Experiment; of a module mypy sees only what it exports
    "fig1": fig1,
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "fig6": fig6,
    "fig7": fig7,
    "fig8": fig8,
    "fig9": fig9,
    "fig10": fig10,
}


_GROUP = "attnbias.experiments"  # entry points: a name and a module
_PARTS = ("run", "TITLE", "FORM")  # of it


def module_of(name: str) -> Experiment:
    """The experiment of a name.

    Raises
    ------
    RangeError
        For a name that is not registered.
    RegistrationError
        For one that is, by a package that is broken.
    """
    require_choice("name", name, tuple(list()))
    if name in _PAPER:
        return _PAPER[name]
    wanted = "a module with " + ", ".join(_PARTS)
    return load_registered(
        _GROUP, name, wanted, lambda found: all(hasattr(found, part) for part in _PARTS)
    )


def list() -> builtins.list[str]:
    """Names of the experiments, as `run` takes them: the paper's figures, then what is registered.

    Your own joins them by an entry point of your package, in the group ``attnbias.experiments``,
    whose value is a module with `run`, `TITLE` and `FORM`, which says what its results are like;
    one of that name in ``attnbias.plots`` names the function that draws its result.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from attnbias import experiments
    >>> experiments.list()[:9]
    ['fig1', 'fig2', 'fig3', 'fig4', 'fig6', 'fig7', 'fig8', 'fig9', 'fig10']
    """
    return [*dict.fromkeys([*_PAPER, *registered(_GROUP)])]


def describe(name: str) -> str:
    """One line on an experiment.

    Raises
    ------
    RangeError
        For a name that is not registered.

    Examples
    --------
    >>> from attnbias import experiments
    >>> experiments.describe("fig3")
    'Figure 3: step-size rules for W and u together, on data model DM'
    """
    return module_of(name).TITLE


def parameters(name: str) -> dict[str, inspect.Parameter]:
    """The settings of an experiment, those of all network experiments among them.

    Raises
    ------
    RangeError
        For a name that is not registered.
    """
    chosen = module_of(name).run
    known = dict(inspect.signature(chosen).parameters)
    if known.pop("training", None) is not None:
        shared = inspect.signature(train_all).parameters
        known |= {key: shared[key] for key in shared if key not in {"recipe", *known}}
    return known


def run(name: str, **settings: Any) -> ExperimentResult | Plan:
    """Run an experiment of the registry.

    Parameters
    ----------
    name : str
        One of `list()`.
    **settings
        Those of the experiment's own `run`, such as seeds and steps; see
        `attnbias.experiments.fig2.run`.

    Returns
    -------
    ExperimentResult, or the Plan of a dry run

    Raises
    ------
    RangeError
        For an unknown experiment or setting; and the errors of the experiment.

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.run("fig2", seeds=1, steps=1000)
    >>> len(result.traces["NGD"])
    1
    """
    chosen = module_of(name).run
    known = parameters(name)
    for key in settings:
        require_choice(key, key, tuple(known))
    return chosen(**settings)


def load(name: str, folder: PathLike = "results") -> ExperimentResult:
    """Read the recorded run of an experiment.

    Parameters
    ----------
    name : str
        Such as "fig6". The claims of one that takes more than a chapter's time are not stored,
        and are judged anew.
    folder : path
        Where `attnbias run` put it, by default that of the command; or the file itself.

    Returns
    -------
    ExperimentResult

    Raises
    ------
    RangeError
        For an unknown experiment.
    MissingFileError, FileFormatError

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from attnbias import experiments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = experiments.run("fig2", seeds=1, steps=1000).save(Path(folder) / "fig2.npz")
    ...     experiments.load("fig2", folder).seeds
    (0,)
    """
    form, path = module_of(name).FORM, as_path(folder)
    return form.load(path if path.suffix == form.suffix else path / form.file)


def merge(name: str, folders: Sequence[PathLike]) -> ExperimentResult:
    """One result of a network's figure from parts that were run apart, on several machines say.

    Parameters
    ----------
    name : str
        "fig1", "fig4", "fig6" or "fig7".
    folders : sequence of path
        Where the parts are: runs of different optimizers that agree in seeds and settings.

    Returns
    -------
    ExperimentResult
        Its provenance has that of each part under "parts".

    Raises
    ------
    RangeError
        For another experiment; an optimizer in two parts; parts that differ in a setting.
    DtypeError, MissingFileError, FileFormatError

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from attnbias import experiments
    >>> small = {"source": "bundled", "size": "small", "steps": 1, "eval_examples": 20}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = [Path(folder) / label for label in ("SNGD", "SGD")]
    ...     for part in parts:
    ...         chosen = {"optimizers": [part.name], "step_sizes": {part.name: 0.1}}
    ...         _ = experiments.run("fig6", seeds=1, records=1, out=part, **small, **chosen)
    ...     sorted(experiments.merge("fig6", parts).logs)
    ['SGD', 'SNGD']
    """
    figures = [key for key, row in _PAPER.items() if isinstance(row, NetworkFigure)]
    require_choice("name", name, figures)
    if isinstance(folders, str) or not isinstance(folders, Sequence) or not folders:
        raise DtypeError(
            "folders",
            expected="a list of folders",
            got=short(folders),
            remedy='for example ["one/results", "other/results"]',
        )
    return merged([load(name, folder) for folder in folders])
