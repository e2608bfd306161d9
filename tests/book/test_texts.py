"""Texts of the extract of MiniLM as data sets, probes, and the two heads."""

import numpy as np
import pytest
import torch
from refusals import refuses

from attnbias import check_assumption1
from attnbias.errors import DtypeError, LabelError, NonFiniteError, RangeError, ShapeError
from attnbias.nets.data.minilm import HEADS, load_minilm_sample
from attnbias.nets.data.text import load_nli
from book.texts import RIDGE, embed, linear_probe, load_bundled_head

HALF = 0.01  # of attention, from hidden states of size 12 rounded to 11 bits
TABLE = [[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]


@pytest.fixture(scope="module")
def sample():
    return load_minilm_sample()


def joined(pieces) -> str:
    """A text from its word pieces, spaces apart from those inside words left out."""
    return "".join(piece.removeprefix("##") for piece in pieces)


def test_embedded_texts_are_rows_in_order():
    data = embed([[2, 0], [1, 1, 0]], TABLE, [1, -1], u=[1.0, 0.0])
    assert data.u.tolist() == [1, 0] and data.y.tolist() == [1, -1]
    assert data.lengths.tolist() == [2, 3]
    assert data.X[0].tolist() == [[3, 3], [1, 0], [0, 0]]
    assert data.X[1].tolist() == [[0, 2], [0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("row", "wanted"),
    [([1, 0, 1, 2, 0], [1, 0, 2]), ([2, 0, 0, 1], [2, 0, 1]), ([2, 2, 0], [2, 0])],
)
def test_repeats_can_be_dropped(row, wanted):
    data = embed([row], TABLE, [1], repeats=False)
    assert data.X[0].tolist() == [TABLE[t] for t in wanted]


def test_texts_that_make_no_data_set_are_refused():
    refuses(
        embed,
        {"texts": [[0, 1]], "vectors": TABLE, "y": [1]},
        {
            RangeError: [{"texts": []}, {"texts": [[0, 3]]}, {"texts": [[0, -1]]}],
            DtypeError: [{"texts": [[0.0, 1.0]]}, {"repeats": 1}, {"vectors": [[1, 2]]}],
            ShapeError: [{"texts": [[0]]}, {"vectors": [1.0, 2.0]}],
            LabelError: [{"y": [2]}],
        },
        "expected",
    )


def test_equal_pieces_alone_decide_assumption_1_of_orthogonal_tokens():
    """A piece that two texts share, not optimal in both, has cosine 1 to another token."""
    axes, u = torch.eye(4).double(), torch.tensor([2.0, 1.0, 0.0, -1.0])
    apart = embed([[0, 2], [1, 3]], axes, [1, 1], u)
    both_optimal = embed([[0, 2], [0, 3]], axes, [1, 1], u)
    shared = embed([[0, 2], [1, 2]], axes, [1, 1], u)
    verdicts = [check_assumption1(data).all_hold for data in (apart, both_optimal, shared)]
    assert verdicts == [True, True, False]


def test_the_probe_is_the_minimum_of_its_objective():
    rng = np.random.default_rng(0)
    table, texts = rng.normal(size=(30, 5)), [rng.integers(0, 30, 4) for _ in range(50)]
    y = np.sign(rng.normal(size=50))
    u = linear_probe(texts, table, y)
    means = torch.from_numpy(np.stack([table[text].mean(0) for text in texts]))

    def loss(u, b):
        return ((means @ u + b - torch.from_numpy(y)) ** 2).sum() + RIDGE * u @ u

    best = (torch.from_numpy(y) - means @ u).mean()
    for _ in range(20):
        moved = u + 0.01 * torch.from_numpy(rng.normal(size=5))
        assert loss(moved, best + 0.01 * rng.normal()) > loss(u, best)


def test_the_probe_reads_labels_it_has_not_seen(sample):
    texts = sample.texts["training hypotheses"]
    u = linear_probe(texts.rows, sample.vectors, np.where(texts.labels == 0, 1.0, -1.0))
    other = sample.texts["hypotheses"]
    chosen = [i for i, label in enumerate(other.labels) if label != 1]
    scores = np.array([float((sample.vectors[other.rows[i]] @ u).mean()) for i in chosen])
    positive = other.labels[chosen] == 0
    # area under the ROC curve; 133 texts put chance within 0.5 +- 0.1
    area = (scores[positive][:, None] > scores[~positive]).mean()
    assert area > 0.65


def test_bad_probes_are_refused():
    refuses(
        linear_probe,
        {"texts": [[0], [1]], "vectors": TABLE, "y": [1, -1]},
        {
            RangeError: [
                {"texts": [[0], np.zeros(0, int)]},
                {"texts": []},
                {"texts": [[0], [7]]},
            ],
            ShapeError: [{"y": [1]}],
            NonFiniteError: [{"vectors": [[1.0], [np.nan]]}],
        },
    )


@pytest.mark.parametrize(("layer", "head"), HEADS)
def test_a_bundled_head_attends_as_the_encoder_does(layer, head):
    found = load_bundled_head(layer, head)
    own = found.logits.softmax(dim=1)
    assert (own - found.attention).abs().max() < HALF
    assert torch.allclose(found.attention.sum(dim=1), torch.ones(40), atol=HALF)
    assert torch.linalg.matrix_rank(found.W) == 32
    assert (found.X[..., -1].sum(dim=1) == found.lengths).all()
    assert [len(row) for row in found.tokens] == found.lengths.tolist()
    assert {(row[0], row[-1]) for row in found.tokens} == {("[CLS]", "[SEP]")}
    premises = [*dict.fromkeys(load_nli("validation", "bundled").first)][:40]
    spelt = [joined(row[1:-1]) for row in found.tokens]
    assert spelt == ["".join(text.lower().split()) for text in premises]
    # without biases it would be another head
    with pytest.raises(RangeError, match="layer, head"):
        load_bundled_head(layer, 0)
    assert (
        found.attention
        - (found.X[..., :-1] @ found.W[:-1, :-1] @ found.X[:, 0, :-1, None])
        .squeeze(2)
        .softmax(dim=1)
    ).abs().max() > 10 * HALF
