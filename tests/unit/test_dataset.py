"""The container of tokens: validated, ragged, frozen, copied, saved and loaded."""

import copy
import dataclasses
import io
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader

from attnbias import (
    NGD,
    Dataset,
    SVMSolution,
    make_bad_start,
    make_dm,
    make_example1,
    make_separation_pair,
    solve_w_svm,
    train,
)
from attnbias.errors import (
    DtypeError,
    NonFiniteError,
    PaddingWarning,
    RangeError,
    ShapeError,
)
from attnbias.geometry.tokens import gap_rows
from attnbias.model import attention_map

X = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4)
Y = [1, -1]


def test_shapes_and_defaults():
    data = Dataset(X, Y)
    assert (data.n, data.T, data.d) == (2, 3, 4)
    assert data.X.dtype == data.y.dtype == torch.float64
    assert data.y.tolist() == [1, -1]
    assert Dataset(X, np.array(Y, dtype=np.int8)).y.tolist() == [1, -1]
    learnt = torch.tensor([1.0, -1.0], requires_grad=True)
    assert not Dataset(X, learnt).y.requires_grad
    assert data.u is None
    assert data.lengths.tolist() == [3, 3]
    assert data.mask.all()
    assert torch.equal(data.queries, X[:, 0])
    assert data.name == "" and dict(data.meta) == {}


@pytest.mark.parametrize("make", [lambda x: x, torch.Tensor.numpy, torch.Tensor.tolist])
def test_tensors_arrays_and_lists(make):
    data = Dataset(make(X), make(torch.tensor([1.0, -1.0])), u=make(torch.ones(4).double()))
    assert torch.equal(data.X, X)
    assert data.u.dtype == torch.float64


def test_float32_stays():
    data = Dataset(X.float(), Y, u=torch.ones(4, dtype=torch.float64))
    assert data.X.dtype == data.y.dtype == data.u.dtype == torch.float32
    assert data.to(dtype=torch.float64).X.dtype == torch.float64


def test_ragged_padding_is_masked_and_zeroed():
    padded = X.clone()
    padded[1, 2] = math.nan
    data = Dataset(padded, Y, lengths=[3, 2])
    assert data.mask.tolist() == [[True, True, True], [True, True, False]]
    assert data.X[1, 2].tolist() == [0, 0, 0, 0]
    assert torch.equal(data.X[0], X[0])


def test_it_copies_what_it_is_given():
    y, u = torch.tensor([1.0, -1.0]).double(), torch.ones(4).double()
    given = [X.clone(), y, u, torch.tensor([3, 2])]
    data = Dataset(*given)
    before = Dataset(*(tensor.clone() for tensor in given))
    for tensor in given:
        tensor.mul_(5)
    assert same(data, before)
    array = X.numpy().copy()
    data = Dataset(array, Y)
    array[:] = 0
    assert torch.equal(data.X, X)


def test_it_is_frozen_and_takes_no_gradient():
    data = Dataset(X.clone().requires_grad_(), Y, torch.ones(4).double().requires_grad_())
    assert not data.X.requires_grad and not data.u.requires_grad
    data = Dataset(X, Y, meta={"seed": 1})
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.X = X
    with pytest.raises(TypeError):
        data.meta["seed"] = 2


def test_with_decoder_keeps_the_rest():
    data = Dataset(X, Y, lengths=[3, 2], name="some", meta={"a": 1})
    other = data.with_decoder([1.0, 0.0, 0.0, 0.0])
    assert other.u.tolist() == [1, 0, 0, 0]
    assert data.u is None
    assert torch.equal(other.X, data.X) and torch.equal(other.lengths, data.lengths)
    assert (other.name, dict(other.meta)) == ("some", {"a": 1})
    assert "'some': n=2 sequences, T=3 tokens (ragged), d=4 features, decoder given" in repr(other)


def same(one: Dataset, two: Dataset) -> bool:
    one, two = one._tensors(), two._tensors()
    return one.keys() == two.keys() and all(
        torch.equal(a, two[key]) and a.dtype == two[key].dtype for key, a in one.items()
    )


@pytest.mark.parametrize(
    "data",
    [
        make_example1(n=4, T=3, d=20, seed=1),
        Dataset(X, Y),
        Dataset(X.float(), Y, u=torch.ones(4), lengths=[3, 2], name="ragged", meta={"k": [1, 2.5]}),
    ],
    ids=["example 1", "bare", "ragged float32"],
)
def test_save_and_load(data, tmp_path):
    again = Dataset.load(data.save(tmp_path / "tokens.npz"))
    assert same(data, again)
    assert (again.u is None) == (data.u is None)
    assert again.name == data.name
    assert dict(again.meta) == dict(data.meta)


def through_torch(data):
    torch.save(data, stream := io.BytesIO())
    stream.seek(0)
    return torch.load(stream, weights_only=False)


@pytest.mark.parametrize(
    "again",
    [lambda data: pickle.loads(pickle.dumps(data)), copy.copy, copy.deepcopy, through_torch],
)
def test_it_is_pickled_and_copied(again):
    data = dataclasses.replace(make_example1(n=4, T=3, d=20), meta={"nested": {"a": [1]}})
    other = again(data)
    assert same(other, data) and dict(other.meta) == dict(data.meta)
    with pytest.raises(TypeError):
        other.meta["a"] = 1


def test_meta_of_tensors_becomes_lists(tmp_path):
    meta = {"place": torch.tensor([1, 2]), "nested": {"a": np.float64(0.5)}, "pair": (1, "x")}
    again = Dataset.load(Dataset(X, Y, meta=meta).save(tmp_path / "tokens.npz"))
    assert dict(again.meta) == {"place": [1, 2], "nested": {"a": 0.5}, "pair": [1, "x"]}


def test_a_plain_numpy_file_is_read(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=X.numpy(), y=np.array(Y), u=np.ones(4), lengths=np.array([3, 2]))
    data = Dataset.load(path)
    assert same(data, Dataset(X, Y, u=torch.ones(4).double(), lengths=[3, 2]))
    assert data.name == "mine"
    np.savez(path, X=X.numpy(), y=np.array(Y), mask=data.mask.numpy())
    assert Dataset.load(path).lengths.tolist() == [3, 2]
    np.savez(path, X=X.numpy(), y=np.array(Y))
    assert Dataset.load(path).u is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_devices(tmp_path):
    data = make_example1(n=4, T=3, d=20, seed=1).to(device="cuda")
    assert data.X.is_cuda and data.mask.is_cuda and data.u.is_cuda
    assert same(data.to(device="cpu"), make_example1(n=4, T=3, d=20, seed=1))
    assert same(Dataset.concat(data[::-1])[[3, 2, 1, 0]], data)
    assert same(Dataset.from_sequences([*data.X], data.y, data.u), data)
    svm = SVMSolution.load(solve_w_svm(data).save(tmp_path / "svm.npz"))  # onto the CPU
    assert np.isfinite(train(data, NGD(0.1), 3, svm=svm).W_alignment_error[-1])


def test_given_optimal_tokens_stand_in_for_a_decoder_until_there_is_one(tmp_path):
    data = Dataset(X, Y, opt=[2, 0], lengths=[3, 2])
    assert data.opt.dtype == torch.long
    assert gap_rows(data).token.tolist() == [0, 1, 1]
    assert Dataset.load(data.save(tmp_path / "d.npz")).opt.tolist() == [2, 0]
    assert data.to(dtype=torch.float32).opt.tolist() == [2, 0]
    assert "optimal tokens given" in repr(data)
    data = Dataset(X, Y, opt=[1, 1]).with_decoder(torch.ones(4))
    assert data.opt is None
    assert gap_rows(data).opt.tolist() == [2, 0]


def rows(count: int, start: int = 0) -> torch.Tensor:
    return X.reshape(-1, 4)[start : start + count] + 1


LISTED = [rows(5).numpy(), rows(3, 1), pd.DataFrame(rows(2, 2).numpy()), rows(4).tolist()]


def test_sequences_of_any_lengths_and_kinds_are_padded():
    made = Dataset.from_sequences(LISTED, pd.Series([1, -1, 1, -1]), np.ones(4), name="mixed")
    padded = torch.full((4, 5, 4), 9.0).double()
    for i, (count, start) in enumerate([(5, 0), (3, 1), (2, 2), (4, 0)]):
        padded[i, :count] = rows(count, start)
    by_hand = Dataset(padded, [1, -1, 1, -1], torch.ones(4), [5, 3, 2, 4])
    assert same(made, by_hand) and made.name == "mixed"
    given = {"query": torch.ones(4, 4), "opt": [4, 2, 1, 0]}
    made = Dataset.from_sequences(iter(LISTED), [1] * 4, **given)
    assert made.query.dtype == torch.float64 and made.opt.tolist() == given["opt"]
    single = [rows(2).float(), rows(3).float().numpy()]
    assert Dataset.from_sequences(single, [1, 1]).X.dtype == torch.float32
    assert Dataset.from_sequences([*single, rows(2)], [1] * 3).X.dtype == torch.float64
    assert same(Dataset.from_sequences(X, Y), Dataset(X, Y))


@pytest.mark.parametrize(
    ("error", "words", "wrong"),
    [
        (ShapeError, r"\(T_i, d\).* = \(2, 4\); got shape \(2, 3\)", [[1.0, 2, 3]] * 2),
        (ShapeError, r"\(T_i, d\); got shape \(4,\)", np.ones(4)),
        (ShapeError, "at least 2 tokens; got 1.*drop", rows(1)),
        (DtypeError, r"int64.*sequences\[4\]\.astype\(float\)", np.ones((2, 4), int)),
        (DtypeError, "DataFrame.*dtype object", pd.DataFrame({"a": ["x", "y"]})),
        (NonFiniteError, "1 NaN", torch.where(rows(2) == 1, torch.nan, rows(2))),
    ],
)
def test_a_wrong_sequence_is_named_by_its_place(error, words, wrong):
    with pytest.raises(error, match=rf"^sequences\[4\]: .*{words}"):
        Dataset.from_sequences([*LISTED, wrong], [1] * 5)


@pytest.mark.parametrize("junk", [[], 3, "ab", {"a": X[0]}, None], ids=repr)
def test_no_list_of_sequences_is_refused(junk):
    with pytest.raises(DtypeError, match="^sequences: .*at least one"):
        Dataset.from_sequences(junk, [1])


def test_a_mask_stands_for_lengths_and_one_with_holes_says_what_closes_them():
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    for kind in (mask, mask.bool(), mask.bool().numpy(), mask.tolist()):
        assert same(Dataset(X, Y, mask=kind), Dataset(X, Y, lengths=[3, 2]))
    holes = torch.tensor([[0, 1, 1], [1, 1, 1]]).bool()
    with pytest.raises(RangeError, match=r"^mask: .*in 1, first in 0.*from_sequences\(\[x\[m\]"):
        Dataset(X, Y, mask=holes)
    closed = Dataset.from_sequences([x[m] for x, m in zip(X, holes, strict=True)], Y)
    assert torch.equal(closed.X[0, :2], X[0, 1:]) and closed.lengths.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("error", "words", "given"),
    [
        (RangeError, "mask: .*not both", {"mask": [[True] * 3] * 2, "lengths": [3, 3]}),
        (DtypeError, "mask: .*float64", {"mask": torch.ones(2, 3).double()}),
        (DtypeError, "mask: .*0 and 1; got int64", {"mask": [[2] * 3] * 2}),
        (ShapeError, "mask: .*as the tokens", {"mask": [True, True]}),
        (ShapeError, "lengths: .*from 2 to", {"mask": [[True] * 3, [True, False, False]]}),
        (DtypeError, r"lengths: .*got bool.*mask=", {"lengths": [[True] * 3] * 2}),
        (ShapeError, r"lengths: .*mask\.sum\(dim=1\).*mask=", {"lengths": [[1] * 3] * 2}),
    ],
)
def test_masks_and_lengths_that_are_refused(error, words, given):
    with pytest.raises(error, match=words):
        Dataset(X, Y, **given)
    with pytest.raises(DtypeError, match="mask.sum"):  # where there is no mask=
        attention_map(X, torch.eye(4).double(), torch.ones(2, 3).bool())


FULL = Dataset(
    torch.arange(60).reshape(5, 3, 4).double(),
    [1, -1, 1, 1, -1],
    lengths=[3, 2, 3, 2, 3],
    opt=[2, 1, 0, 1, 0],
    query=-torch.arange(20).reshape(5, 4).double(),
    name="full",
    key=torch.arange(60, 120).reshape(5, 3, 4).double(),
    meta={"maker": "make_dm", "d": 4},
)


@pytest.mark.parametrize(
    "index",
    [
        slice(2),
        slice(None, None, -2),
        [3, 1],
        [-1, -1],
        (FULL.y > 0),
        (FULL.y > 0).numpy(),
        pd.Series([4, 0]),
        range(1, 3),
        torch.tensor([2]),
        slice(1, 2),
        ...,
    ],
    ids=repr,
)
def test_a_part_is_indexed_as_its_tensors_are(index):
    own = np.arange(5)[index.numpy() if isinstance(index, torch.Tensor) else index]
    part, tensors = FULL[index], FULL._tensors()
    assert {*part._tensors()} == {*tensors}
    for key, whole in tensors.items():
        assert np.array_equal(getattr(part, key).numpy(), whole.numpy()[own])
    assert part.name == "full" and dict(part.meta) == {"part_of": "make_dm", "d": 4}
    assert len(part) == part.n and FULL.meta["maker"] == "make_dm"


def test_one_place_is_a_data_set_of_one_sequence_and_a_loop_gives_them_all():
    assert same(FULL[3], FULL[3:4]) and same(FULL[np.int64(-2)], FULL[3])
    assert [each.n for each in FULL] == [1] * 5 == [len(each) for each in list(FULL)]
    assert same(Dataset.concat(FULL), FULL) and bool(FULL)
    assert np.asarray(FULL).dtype == object and np.asarray(FULL)[()] is FULL
    batches = [*DataLoader(FULL, batch_size=2, collate_fn=Dataset.concat)]
    assert [len(batch) for batch in batches] == [2, 2, 1] and same(Dataset.concat(batches), FULL)


@pytest.mark.parametrize(
    "index",
    [
        9,
        -6,
        [0, 5],
        None,
        (1, 2),
        "a",
        0.5,
        [],
        slice(9, None),
        [False] * 5,
        [True],
        True,
        {1},
        FULL,
        np.ones(2),
    ],
    ids=str,
)
def test_an_index_that_means_no_sequence_is_refused(index):
    with pytest.raises(RangeError, match="^index: expected .*sequence"):
        FULL[index]


def test_data_sets_are_joined_and_the_shorter_sequences_padded():
    data, pair = Dataset(X, Y, torch.ones(4), meta={"seed": 1}), rows(4).reshape(2, 2, 4)
    short = Dataset(pair, [1, 1], torch.ones(4), name="short", lengths=[2, 2])
    both = Dataset.concat([short, data, short])
    listed = [*pair, *X, *pair]
    assert same(both, Dataset.from_sequences(listed, [1, 1, 1, -1, 1, 1], torch.ones(4)))
    assert both.name == "short" and both.meta["parts"] == [{}, {"seed": 1}, {}]
    asked = dataclasses.replace(data, query=-torch.ones(2, 4), key=X + 1)
    both = Dataset.concat([asked, short])
    assert torch.equal(both.queries, torch.cat([asked.queries, short.queries]))
    assert torch.equal(both.keys[2:, :2], short.keys) and torch.equal(both.keys[:2], X + 1)


@pytest.mark.parametrize(
    ("error", "words", "other"),
    [
        (ShapeError, "d as in", Dataset(X[..., :3], Y)),
        (DtypeError, "dtype as in .*float64; got float32", Dataset(X.float(), Y)),
        (RangeError, "u as in .*none; got given", Dataset(X, Y, torch.ones(4))),
        (RangeError, "opt as in .*none; got given", Dataset(X, Y, opt=[0, 0])),
        (DtypeError, "a Dataset; got Tensor", X),
    ],
)
def test_data_sets_that_differ_are_not_joined(error, words, other):
    with pytest.raises(error, match=rf"^parts\[1\]: .*{words}"):
        Dataset.concat([Dataset(X, Y), other])
    with pytest.raises(RangeError, match="the decoder u of"):
        Dataset.concat([Dataset(X, Y, torch.ones(4)), Dataset(X, Y, torch.zeros(4))])
    for junk in ([], 3, [None]):
        with pytest.raises(DtypeError, match="parts"):
            Dataset.concat(junk)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ([0, 0], None),
        ([1, 1], None),
        ([0, 1], "1 rows at the ends of 1 of 2"),
        ([2, 2], "4 rows at the ends of 2"),
        ([1, 6], "5 rows at the ends of 2"),
    ],
)
def test_zero_rows_that_look_like_padding_are_told(ends, words, tmp_path):
    """One in each may be a token, and the first two are: others pad to a common length."""
    tokens = X.reshape(2, 6, 2) + 1
    for x, count in zip(tokens, ends, strict=True):
        x[6 - count :] = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Dataset(tokens, Y)
    assert [each.filename for each in caught] == [__file__] * bool(words)
    assert not words or words in str(caught[0].message)
    assert all(each.category is PaddingWarning for each in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Dataset(tokens[:, -2:], Y).T == 2
        data = Dataset(tokens, Y, torch.ones(2), lengths=[6, 6], name="meant")
        for other in (
            data[:1],
            data.to(dtype=torch.float32),
            data.with_decoder(None),
            dataclasses.replace(data, name="b"),
            Dataset.concat([data, data]),
            Dataset.load(data.save(tmp_path / "a.npz")),
            copy.deepcopy(data),
        ):
            assert other.T == 6


def test_makers_and_masks_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = [make_separation_pair(), make_bad_start()[0], make_dm(n=3, d=60)]
        assert all(len(data) for data in made)
        tokens = torch.stack([rows(3), torch.cat([rows(2), torch.zeros(1, 4)])])
        assert Dataset(tokens, Y, mask=tokens.any(dim=2)).lengths.tolist() == [3, 2]
