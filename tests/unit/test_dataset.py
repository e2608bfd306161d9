"""The container of tokens: validated, ragged, frozen, copied, saved and loaded."""

import copy
import dataclasses
import io
import math
import pickle

import numpy as np
import pytest
import torch

from attnbias import Dataset, make_example1
from attnbias.geometry.tokens import gap_rows

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
    pairs = [(one.X, two.X), (one.y, two.y), (one.lengths, two.lengths)]
    if one.u is not None:
        pairs.append((one.u, two.u))
    return all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)


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
    np.savez(path, X=X.numpy(), y=np.array(Y), u=np.ones(4), lengths=np.array([3, 2]), other=1)
    data = Dataset.load(path)
    assert same(data, Dataset(X, Y, u=torch.ones(4).double(), lengths=[3, 2]))
    assert data.name == "mine"
    np.savez(path, X=X.numpy(), y=np.array(Y))
    assert Dataset.load(path).u is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_devices():
    data = make_example1(n=4, T=3, d=20, seed=1).to(device="cuda")
    assert data.X.is_cuda and data.mask.is_cuda and data.u.is_cuda
    assert same(data.to(device="cpu"), make_example1(n=4, T=3, d=20, seed=1))


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
