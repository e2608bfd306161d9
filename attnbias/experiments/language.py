"""What Figures 1 and 4 share: a pretrained BERT fine-tuned on sentences."""

from __future__ import annotations

from .._validate import require_choice, require_int
from ..checks import CheckTable
from ..nets.data.examples import TextExamples
from ..nets.data.text import TextSet
from ..nets.text import load_classifier, load_tokenizer
from .network_claims import check_faster, check_much_faster
from .networks import Recipe

MODELS = ("huggingface", "packages", "tiny")
STANDS_IN = {
    "packages": "all-MiniLM-L6-v2, a BERT of 6 layers and width 384, in place of bert-base-uncased",
    "tiny": "a BERT of 2 layers and width 64 from a random start in place of bert-base-uncased",
}
PAPER_EPOCHS = 10
GRIDS = {
    "SGD": (0.03, 0.1, 0.3, 1.0),
    "SNGD": (0.03, 0.1, 0.3, 1.0),
    "SPS": (0.03, 0.1, 0.3, 1.0),
    "Adam": (1e-5, 3e-5, 1e-4, 3e-4),
}


def language_recipe(
    name: str, title: str, load, corpora: dict[str, str], source, model: str | None,
    max_length: int, batch_size: int, claims,
) -> Recipe:  # fmt: skip
    """The recipe of a BERT on the sentences that `load(split, source)` gives.

    corpora says by source what stands in for the paper's corpus, with {count} for its size.
    """
    if model is None:
        model = source if source in MODELS else "tiny"
    require_choice("model", model, MODELS)
    batch_size = require_int("batch_size", batch_size, low=1)
    sets: dict[str, TextSet] = {split: load(split, source=source) for split in ("train", "test")}
    tokenizer = load_tokenizer(model)
    train, test = (TextExamples(texts, tokenizer, max_length) for texts in sets.values())
    stand_ins = (corpora.get(source, "").format(count=len(train)), STANDS_IN.get(model))
    classes = len(sets["train"].classes)
    return Recipe(
        name,
        title,
        lambda seed: load_classifier(classes, model, seed=seed),
        train,
        test,
        batch_size,
        PAPER_EPOCHS,
        GRIDS,
        claims,
        {"source": str(source), "model": model, "max_length": max_length},
        tuple(words for words in stand_ins if words),
    )


def faster_than_sgd(logs, text: str) -> CheckTable:
    """What the text says on the language data sets: SNGD and SPS train much faster than SGD."""
    pairs = [(label, check) for check in (check_faster, check_much_faster)
             for label in ("SNGD", "SPS")]  # fmt: skip
    words = {check_faster: "faster", check_much_faster: "significantly faster"}
    return CheckTable(
        check(f"{label} trains {words[check]} than SGD", logs, label, "SGD", text)
        for label, check in pairs
    )
