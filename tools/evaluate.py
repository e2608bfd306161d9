"""`make evaluate`: does this machine find what the book says? A sample, in ten minutes.

Three figures, five rows of the ledger with different verdicts, two certificates, one head of a
small model and a file of Rocq: what is expected, what is measured here, and how far the two may
differ. A figure's chapter is run, and all that it prints is compared with its recorded notebook.
The exit status is 0 if all rows agree that could run; with --all each of them must run.
"""

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from attnbias import Dataset, InfeasibleError, make_example1, solve_w_svm
from book.claims import SECTIONS, Evidence
from book.texts import load_bundled_head
from tools.chapters import ROOT
from tools.compare_outputs import NUMBER, RTOL, compare_cells, compare_texts, count_numbers
from tools.sync_notebooks import TIMEOUT_S, client_for, code_cells, read_source, read_stored

BOOK = ROOT / "book"
PROOFS = ROOT / "proofs"
GLUED = "application/papermill.record/text/plain"
# What a row of a figure shows: the chapter, and the number by the name under which it is glued.
FIGURES = {
    "Figure 2: NGD's exponent, last decade": ("paper/figure2", "fig2_ngd_late"),
    "Figure 3: |W| of Polyak steps at the end": ("paper/figure3", "fig3_polyak_W"),
    "Figure 8: step of GD past one half": ("paper/bad_start", "bad_half_4"),
}
CLAIMS = ("lemma4", "theorem1", "fig2-predicted", "saturation", "condition1")
ROCQ = ("Spec", "Sums", "Vectors", "Margin", "M1")  # the last one is checked; it needs the others
NOT_RUN = "not run"


@dataclass(frozen=True)
class Row:
    """One comparison; `agrees` is None where it could not be made."""

    what: str
    expected: str
    measured: str
    tolerance: str
    agrees: bool | None


def glued(cells: list, name: str) -> str:
    """The number that a notebook glues under a name, as it is printed."""
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        if output.get("metadata", {}).get("scrapbook", {}).get("name") == name:
            return str(output["data"][GLUED]).strip("'")
    raise KeyError(f"no cell glues {name}")


def figure(what: str, chapter: str, name: str) -> Row:
    """Run a chapter and compare all that it prints with what was recorded."""
    source = BOOK / f"{chapter}.md"
    _, recorded = read_stored(source.with_suffix(".ipynb"))
    run = client_for(read_source(source), source, timeout=TIMEOUT_S).execute()
    recorded, found = code_cells(recorded), code_cells(run.cells)
    moved = sum(bool(compare_cells(*pair)) for pair in zip(recorded, found, strict=True))
    measured = f"{glued(found, name)}; {moved} of {len(found)} cells differ"
    tolerance = f"{RTOL:.0%}, {count_numbers(recorded)} numbers"
    return Row(what, glued(recorded, name), measured, tolerance, moved == 0)


def claim(key: str) -> Row:
    """Judge a claim of the ledger anew."""
    sections = json.loads((BOOK / "results/ledger.json").read_text(encoding="utf8"))["sections"]
    kept = next(row for rows in sections.values() for row in rows if row["key"] == key)
    asked = next(one for claims in SECTIONS.values() for one in claims if one.key == key)
    found = asked.judge(Evidence(BOOK / "results"))
    agrees = kept["verdict"] == found.verdict
    agrees &= not compare_texts(kept["number"], found.number)
    expected = brief(kept["verdict"], kept["number"])
    measured = brief(found.verdict, found.number)
    return Row(f"ledger: {key}", expected, measured, f"same verdict, {RTOL:.0%}", agrees)


def brief(verdict: str, number: str) -> str:
    """The first words of a verdict, and the two sides that decided."""
    return f"{' '.join(verdict.split()[:3])}: {', '.join(NUMBER.findall(number)[-2:])}"


def optimum() -> Row:
    """Weights for Figure 2's tokens and their dual weights prove each other optimal."""
    svm = solve_w_svm(make_example1(n=10, T=6, d=200, seed=0)).certify()
    worst = max(svm.primal_residual, svm.dual_residual, svm.duality_gap)
    what = "W_mm of Figure 2: its largest residual"
    return Row(what, "0", f"{worst:.1e}", "1e-9", bool(worst <= 1e-9))


def contradiction() -> Row:
    """Non-negative weights under which the rows add up to nothing: no W satisfies them."""
    tokens = [[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [-1.0, 2.0]]]
    what = "no W for two sequences: |sum of rows|"
    try:
        solve_w_svm(Dataset(tokens, [1.0, 1.0], [1.0, 1.5]), opt=[1, 1])
    except InfeasibleError as error:
        least, size = float(error.certificate.min()), error.residual
        return Row(what, "0", f"{size:.1e}", "1e-9", bool(size <= 1e-9 and least >= 0))
    return Row(what, "0", "a solution", "1e-9", False)


def head() -> Row:
    """A trained head beside W_mm of the tokens that it selects."""
    against = load_bundled_head(5, 8).compare()
    _, recorded = read_stored(BOOK / "yours/your_model.ipynb")
    expected, measured = glued(recorded, "ym_cosine"), f"{against.cosine:.3f}"
    agrees = not compare_texts(expected, measured)
    return Row("head 8 of layer 5, MiniLM: cosine", expected, measured, f"{RTOL:.0%}", agrees)


def proof(names: tuple[str, ...] = ROCQ, folder: Path = PROOFS) -> Row:
    """Compile a file of Rocq and read what its theorems assume."""
    what, expected = f"proofs/{names[-1]}.v: axioms beyond Rocq's reals", "0"
    if shutil.which("coqc") is None:
        return Row(what, expected, NOT_RUN, "Debian's package coq", None)
    kept = tomllib.loads((BOOK / "_ext/checked.toml").read_text(encoding="utf8"))["axioms"]
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            shutil.copy(folder / f"{name}.v", place)
            call = ["coqc", "-Q", ".", "attnbias", f"{name}.v"]
            done = subprocess.run(call, cwd=place, capture_output=True, text=True)
            if done.returncode:
                return Row(what, expected, done.stderr.strip().splitlines()[-1], "none", False)
    used = set(re.findall(r"^([A-Za-z_][\w.']*) :", done.stdout, re.MULTILINE))
    return Row(what, expected, str(len(used - set(kept))), "none", used <= set(kept))


def rows() -> Iterator[Callable[[], Row]]:
    yield from (lambda what=what, at=at: figure(what, *at) for what, at in FIGURES.items())
    yield from (lambda key=key: claim(key) for key in CLAIMS)
    yield from (optimum, contradiction, head, proof)


def table(found: list[Row]) -> str:
    """The rows in columns; the verdict of a row comes first."""
    said = {True: "agrees", False: "DIFFERS", None: NOT_RUN}
    lines = [("", "what", "expected", "measured", "tolerance")]
    lines += [(said[r.agrees], r.what, r.expected, r.measured, r.tolerance) for r in found]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = (zip(line, widths, strict=True) for line in lines)
    return "\n".join("  ".join(text.ljust(width) for text, width in row).rstrip() for row in cells)


def status(found: list[Row], demand_all: bool) -> int:
    """0 if all rows agree, but for those that could not run unless all are demanded."""
    return int(any(row.agrees is False or (demand_all and not row.agrees) for row in found))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make evaluate", description=__doc__)
    parser.add_argument("--all", action="store_true", help="a row that could not run is a failure")
    chosen = parser.parse_args(argv)
    begun, found = time.monotonic(), []
    for make in rows():
        found.append(make())
        print(f"{time.monotonic() - begun:4.0f} s  {found[-1].what}", flush=True)
    agree = sum(row.agrees is True for row in found)
    print(f"\n{table(found)}\n\n{agree} of {len(found)} rows agree")
    return status(found, chosen.all)


if __name__ == "__main__":
    raise SystemExit(main())
