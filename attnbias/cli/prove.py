"""`attnbias prove`: theorems about a file of tokens."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import asdict
from pathlib import Path

from .base import add_json


def prove_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="npz file with X, y, u, of sequences of one length")
    where = "the Rocq file to write (default: the name of the tokens, ending in .v)"
    parser.add_argument("-o", "--out", metavar="FILE", help=where)
    words = "compile it, by coqc of Debian's package coq"
    parser.add_argument("--check", action="store_true", help=words)
    words = "folder of the proofs that it imports (default: the package's own)"
    parser.add_argument("--proofs", metavar="PATH", help=words)
    add_json(parser)


def run_prove(arguments: argparse.Namespace) -> tuple[dict, object]:
    """Solve, or find Gordan's certificate; then write, and check."""
    from ..data import Dataset
    from ..errors import InfeasibleError
    from ..geometry.rocq.proof import prove_infeasible
    from ..geometry.svm import solve_w_svm
    from ..geometry.tokens import known

    data = Dataset.load(arguments.path)
    source = Path(arguments.path)
    out = arguments.out or source.with_name(re.sub(r"\W", "_", source.stem) + ".v")
    how = {"check": arguments.check, "proofs": arguments.proofs, "progress": sys.stderr.isatty()}
    try:
        proof = solve_w_svm(data).prove(out, data, **how)
    except InfeasibleError as error:
        proof = prove_infeasible(known(data).rows(), error.certificate, out, data, **how)
    return asdict(proof) | {"path": str(proof.path)}, proof
