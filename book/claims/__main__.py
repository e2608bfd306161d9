"""`python -m book.claims --write book`: judge every claim by runs, in about a minute."""

import argparse
import sys
from pathlib import Path

from . import ANSWERS, SECTIONS, Evidence, find_all, made_now, verdicts, write, write_pages


def main(argv=None) -> None:
    """Print the verdicts; with `--write FOLDER` put page and data there."""
    parser = argparse.ArgumentParser(prog="python -m book.claims", description=__doc__)
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FOLDER",
        help="write ledger.md, answers.md and results/ledger.json there",
    )
    parser.add_argument(
        "--pages",
        action="store_true",
        help="with --write: the pages alone, from the verdicts that results/ledger.json has",
    )
    chosen = parser.parse_args(argv)
    folder = chosen.write
    if folder is not None and not folder.is_dir():
        parser.error(f"--write: a folder was expected, and {folder} is none: name the book's")
    if chosen.pages:
        if folder is None:
            parser.error("--pages: a folder was expected: add --write with the book's")
        return write_pages(folder, ANSWERS)
    evidence = Evidence() if folder is None else Evidence(folder / "results")
    sections = find_all(SECTIONS, evidence, progress=sys.stderr.isatty())
    for key, verdict in verdicts(sections).items():
        print(f"{key:28}{verdict}")
    if folder is not None:
        write(folder, sections, made_now(), ANSWERS)


if __name__ == "__main__":
    main()
