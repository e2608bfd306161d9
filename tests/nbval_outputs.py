"""A pytest plugin: nbval's cells are compared as tools/compare_outputs.py says, the shake's too.

What nbval compares otherwise stays: an output too many or too few fails, and so does anything on
stderr, where no recorded cell has anything. A cell that raises fails before it is compared.
"""

import pytest

from tools import warm_kernels
from tools.compare_outputs import compare_outputs, tolerance


def compare(cell, found, recorded, skip_compare=None) -> bool:
    """Whether a cell prints what was recorded, in the place of nbval's own comparison."""
    cell.comparison_traceback = compare_outputs(recorded, found, tolerance(cell.cell.source))
    return not cell.comparison_traceback


def pytest_configure(config: pytest.Config) -> None:
    """Put the comparison into nbval, where it is asked for notebooks, and warm kernels."""
    if config.getoption("nbval", default=False):
        from nbval.plugin import IPyNbCell

        IPyNbCell.compare_outputs = compare
        if parent := warm_kernels.install():
            config.add_cleanup(parent.end)
