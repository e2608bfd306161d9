"""The notebook comparison accepts one unit in the last printed digit and refuses two."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbval_tolerance import PrintedText, texts_agree

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("0.123", "0.124"),
        ("loss = -27997.93 at step 10", "loss = -27997.94 at step 10"),
        ("9.99", "10.00"),
        ("  9.99 |", " 10.00 |"),
        ("1.0e-12", "9.9e-13"),
        ("1.23e-05", "1.24e-05"),
        ("-0.00", "0.00"),
        ("'0.988'", "'0.989'"),
        ("[0.1, 0.2]", "[0.1, 0.3]"),
        ("gap < 1e-12: True", "gap < 1e-12: True"),
    ],
)
def test_one_unit_in_the_last_digit_is_accepted(reference, found):
    assert texts_agree(reference, found)
    assert texts_agree(found, reference)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("0.123", "0.125"),
        ("-27997.93", "-27997.95"),
        ("1.23e-05", "1.25e-05"),
        ("1.23e-05", "1.23e-06"),
        ("0.12", "0.1"),
        ("0.1", "-0.1"),
        ("12 steps", "13 steps"),
        ("It took 12.", "It took 13."),
        ("v1.2.3", "v1.2.4"),
        ("a1.5", "a1.6"),
        ("gap < 1e-12: True", "gap < 1e-12: False"),
        ("0.5 0.5", "0.5"),
        ("0.5", "nan"),
        ("0.5\n", "0.5"),
    ],
)
def test_anything_more_is_refused(reference, found):
    assert not texts_agree(reference, found)
    assert not texts_agree(found, reference)
    assert PrintedText(reference) != found


def write_notebook(path, cells):
    """A notebook of cells that print, with the outputs that were once recorded."""
    notebook = nbformat.v4.new_notebook()
    for count, (source, recorded) in enumerate(cells, start=1):
        output = nbformat.v4.new_output("stream", name="stdout", text=recorded + "\n")
        cell = nbformat.v4.new_code_cell(source, execution_count=count, outputs=[output])
        notebook.cells.append(cell)
    nbformat.write(notebook, path)


def test_nbval_itself_passes_one_unit_and_fails_two(tmp_path):
    cells = [
        ("print(0.124)", "0.123"),
        ("print(0.125)", "0.123"),
        ("print(13)", "12"),
        ("print('same')", "same"),
    ]
    write_notebook(tmp_path / "small.ipynb", cells)
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "--color=no"]
    command += ["-p", "nbval_tolerance", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    run = subprocess.run(
        [*command, "-c", "/dev/null", str(tmp_path)], cwd=HERE, capture_output=True, text=True
    )
    assert "2 failed, 2 passed" in run.stdout, run.stdout + run.stderr
    assert "Cell 0" not in run.stdout.split("short test summary info")[-1]
