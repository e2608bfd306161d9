"""`attnbias heads`: every attention head of a model against its W_mm, as a table and a picture."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import itertools
import sys
from pathlib import Path

from ..._extras import need
from ...cli.base import Command, add_json
from ...errors import FileFormatError, MissingExtraError, RangeError

FILES = """\
MODEL is a name on the Hugging Face hub, a folder or a .gguf file. Without a model, --npz is a file
made by numpy.savez("heads.npz", q=q, k=k), with queries and keys (layers, heads, n, T, width) or
(n, T, width) as the softmax sees them, and lengths (n,) if the sequences are ragged.

The folder then holds heads.csv, a row a head, heads.svg if matplotlib is there, and heads.json,
which attnbias.experiments.load("heads", FOLDER) reads. After an interruption the same command goes
on; results that are there are only read, and those of another call refused.
"""


def heads_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("model", nargs="?", metavar="MODEL", help="whose heads; see below")
    parser.add_argument("--text", metavar="FILE", help="one sentence a line (default: 40 captions)")
    parser.add_argument("--npz", metavar="FILE", help="queries and keys in place of a model")
    words = (
        "position of the query, negative from the end, or all (default: the last of a causal "
        "model and of --npz, else the first)"
    )
    parser.add_argument("--query", type=_query, metavar="INDEX", help=words)
    words = "random heads beside each layer's (default: 10)"
    parser.add_argument("--random", type=int, default=10, metavar="COUNT", help=words)
    parser.add_argument("--seed", type=int, default=0, help="of the random heads (default: 0)")
    where = "where the results go (default: heads)"
    parser.add_argument("--out", default="heads", metavar="FOLDER", help=where)
    add_json(parser)


def _query(text: str):
    try:
        return "all" if text == "all" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number or all; got {text!r}") from None


def run_heads(arguments: argparse.Namespace) -> tuple[dict, str]:
    """Measure, write the three files, and say the table."""
    if (arguments.model is None) == (arguments.npz is None):
        raise RangeError(
            "MODEL",
            expected="a model or --npz",
            got="both" if arguments.npz else "neither",
            remedy="for example attnbias heads HuggingFaceTB/SmolLM2-135M --text captions.txt",
        )
    from ..._files import as_path, new_path, results_folder, write_text
    from . import experiments

    folder = as_path(arguments.out)
    if not (folder / "heads.json").exists():
        for name in ("heads.csv", "heads.svg"):
            new_path(folder / name)
        results_folder(folder)
    options = {"random": arguments.random, "seed": arguments.seed, "out": folder}
    options["progress"] = sys.stderr.isatty()
    if arguments.npz is None:
        if arguments.text is not None:
            options["sentences"] = arguments.text
        result = experiments.run(model=arguments.model, query=arguments.query, **options)
    else:
        found, settings = _stored(arguments.npz, arguments.query)
        result = experiments.measure(found, settings, **options)
    table, told = result.to_dataframe(), [str(result), str(folder)]
    if not (folder / "heads.csv").exists():
        write_text(folder / "heads.csv", table.to_csv())
    if not (folder / "heads.svg").exists():
        told += _drawn(result, folder / "heads.svg")
    rows = table.reset_index().to_dict("records")
    return {"settings": result.settings, "heads": rows}, "\n".join([_shown(table), "", *told])


def _drawn(result, path: Path) -> list[str]:
    """Write the picture, or say what is missing for it."""
    from ..._files import writing

    try:
        need("matplotlib", "plots")
    except MissingExtraError as error:
        return [f"no picture: {error}"]
    from . import plots

    with writing(path) as stream:
        plots.plot_head_table(result).savefig(stream, format="svg")
    return []


def _stored(path: str, query) -> tuple[list, dict]:
    """The heads of a file of queries and keys, and what identifies them."""
    from ..._records import read_npz
    from ..._validate import require_shape
    from ...nets import head_from_qk

    arrays, _ = read_npz(path, kind="queries and keys", header_required=False)
    if {"q", "k"} - arrays.keys() or arrays.keys() - {"q", "k", "lengths"}:
        raise FileFormatError(
            path,
            expected="arrays q and k (and lengths), no others",
            got=", ".join(sorted(arrays)) or "none",
            remedy='make it by numpy.savez("heads.npz", q=q, k=k, lengths=lengths)',
        )
    if query == "all":
        raise RangeError("--query", expected="one position", got="all", remedy="give a number")
    query = -1 if query is None else query
    q, k = arrays["q"], arrays["k"]
    if k.ndim == 3:
        q, k = q[None, None], k[None, None]
    require_shape("k", k, (None,) * 5, "(layers, heads, n, T, width)")
    require_shape("q", q, k.shape, "that of k")
    found = []
    for layer, head in itertools.product(*map(range, k.shape[:2])):
        made = head_from_qk(
            q[layer, head], k[layer, head], query=query, lengths=arrays.get("lengths")
        )
        found.append(dataclasses.replace(made, layer=layer, head=head))
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
    return found, {
        "model": Path(path).name,
        "sentences": k.shape[2],
        "inputs": digest,
        "query": query,
    }


def _shown(table) -> str:
    """The table by layer: medians over its heads."""
    names = {
        "attention": "saturation",
        "share": "same token",
        "first": "first token",
        "cosine_span": "cosine in the span",
        "margin": "share of the margin",
    }
    found = table.groupby("layer")[list(names)].median().rename(columns=names)
    return f"Medians over the heads of a layer:\n{found.round(3).to_string()}"


COMMAND = Command(
    "heads",
    "compare each attention head of a model with its W_mm, or resume",
    heads_arguments,
    run_heads,
    (
        "heads HuggingFaceTB/SmolLM2-135M --text captions.txt",
        "heads ./my-bert --query all --out my-bert-heads",
        "heads --npz heads.npz",
    ),
    FILES,
    resumes=True,
)
