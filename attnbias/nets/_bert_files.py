"""Where a BERT encoder's files are, and reading them with `transformers` safely and quietly."""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from .._extras import need
from .._validate import short
from ..data._source import as_source, damaged, translated
from ..errors import MissingFileError

HUB_NAME = "bert-base-uncased"
HUB_REVISION = "86b5e0934494bd15c9632b12f734a8a67f723594"
CONFIG, WEIGHTS, WORDS = ("config.json",), ("model.safetensors",), ("tokenizer.json", "vocab.txt")


def name_or_folder(source, wanted) -> tuple[str, dict[str, Any]]:
    """What `from_pretrained` is given, the name first: that of the hub or a folder here.

    `wanted` are files that a folder must hold, each with its alternatives.
    """
    folder = as_source(source, "minilm", sample="tiny")
    if isinstance(folder, str):
        return HUB_NAME, {"local_files_only": False, "revision": HUB_REVISION}
    for names in wanted:
        if not any((folder / name).is_file() for name in names):
            raise MissingFileError(
                str(folder / names[0]),
                expected="a folder with config.json, model.safetensors and a tokenizer",
                got="no " + " and no ".join(names),
                remedy="write it with save_pretrained(folder) of the model and of the tokenizer",
            )
    _require_bert(folder / CONFIG[0])
    return str(folder), {"local_files_only": True}


def _require_bert(config: Path) -> None:
    try:
        kind = json.loads(config.read_text(encoding="utf-8")).get("model_type")
    except (ValueError, AttributeError) as error:
        kind = str(error)
    if kind != "bert":
        expected, remedy = 'json with "model_type": "bert"', "give a folder with a BERT encoder"
        raise damaged(config, expected, short(kind), remedy)


def pooling_of(source) -> str:
    """ "mean" where a folder says that its sentences are read by the mean of their tokens."""
    folder = as_source(source, "minilm", sample="tiny")
    file = Path(folder) / "1_Pooling" / "config.json"
    if isinstance(folder, str) or not file.is_file():
        return "first"
    with translated(file, "the pooling of a model of sentence-transformers"):
        return "mean" if json.loads(file.read_text())["pooling_mode_mean_tokens"] else "first"


@contextlib.contextmanager
def quiet(name: str) -> Iterator[Any]:
    """`transformers`, quiet while it reads, and with a name for what may go wrong.

    No random number is drawn of those of torch.
    """
    transformers = need("transformers")
    log, bars = transformers.logging, transformers.logging.is_progress_bar_enabled()
    level = log.get_verbosity()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            yield transformers
    except OSError as error:
        raise MissingFileError(
            name,
            expected="a model's config, safetensors weights and tokenizer",
            got=_first_line(error),
            remedy="check the connection and the files; a folder of your own needs no hub",
        ) from None
    except (ValueError, RuntimeError, KeyError, need("safetensors").SafetensorError) as error:
        expected = "weights and a tokenizer that fit the config"
        remedy = "the files are damaged or of another model: get them again"
        raise damaged(name, expected, _first_line(error), remedy) from None
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0].rstrip(" .")[:200]


def require_tokenizer_files(folder: Path) -> None:
    """Refuse a folder without a tokenizer, for which `transformers` makes an empty one."""
    if not any(re.search(r"token|vocab|\.model$", file.name) for file in folder.iterdir()):
        raise MissingFileError(
            str(folder),
            expected="a model and its tokenizer",
            got="no file of a tokenizer",
            remedy="write it beside the model: tokenizer.save_pretrained(folder)",
        )


def require_complete(name: str, missing) -> None:
    """Refuse an encoder some of whose weights would be left at random."""
    if missing:
        found = f"{len(missing)} missing, such as {sorted(missing)[0]}"
        remedy = "save the whole BertModel with save_pretrained(folder)"
        raise damaged(name, "all weights of a BERT encoder and its pooling layer", found, remedy)
