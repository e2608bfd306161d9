"""Give results that were recorded before files had a checksum one, their numbers unchanged.

    python -m scripts.sign_results book/results

Files of the library's experiments in the folder and below it are read, unchecked if they have no
checksum yet, and written anew; all others, and those that are signed, stay as they are.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

from pandas.testing import assert_frame_equal

from attnbias import experiments
from attnbias._records import FORMAT, read_json, read_table, write_json, write_table


def sign(path: Path) -> bool:
    """Whether the file had no checksum, and has one now."""
    if path.suffix == ".parquet":
        frame, header = read_table(path, ())
        if header["format"] == FORMAT:
            return False
        write_table(path, frame, _plain(header))
        again, found = read_table(path, ())
        assert_frame_equal(again, frame, check_exact=True)
    else:
        header = json.loads(path.read_text(encoding="utf8"))
        if header["format"] == FORMAT:
            return False
        write_json(path, header["kind"], _plain(header))
        found = read_json(path, header["kind"])
    if found | {"format": 1} != header:
        raise AssertionError(f"{path} has changed")
    return True


def _plain(header: dict) -> dict:
    return {key: value for key, value in header.items() if key not in ("kind", "format")}


def main() -> None:
    warnings.filterwarnings("ignore", ".*written before files had a checksum")
    for path in sorted(Path(sys.argv[1]).rglob("*.*")):
        if path.stem in experiments.list() and path.suffix in (".json", ".parquet"):
            print(path, "signed" if sign(path) else "was signed")


if __name__ == "__main__":
    main()
