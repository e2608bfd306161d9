"""Binary MNIST: the bundled file, the other sources, and the sequences made from them."""

import gzip
import sys

import numpy as np
import pytest
import torch
from stored_sets import drawn, hub, idx, write_folder

from attnbias.data import _mnist
from attnbias.data._mnist import FILES, parse_idx
from attnbias.data.digits import load_binary_mnist
from attnbias.errors import (
    ChecksumError,
    FileFormatError,
    MissingExtraError,
    MissingFileError,
    RangeError,
    TiedTokensError,
)
from attnbias.geometry.tokens import optimal_tokens, token_scores


@pytest.fixture
def files() -> dict[str, bytes]:
    """A tiny stand-in for MNIST in the same format: rings, bars and a third class."""
    blobs = []
    for count, seed in ((60, 1), (30, 2)):
        blobs += [idx(array) for array in drawn(count, seed)]
    return dict(zip(FILES, blobs, strict=True))


def test_bundled_digits_are_balanced_and_distinct():
    splits = _mnist.read_digits("bundled")
    for digits in splits.values():
        assert digits.images.shape == (400, 28, 28) and digits.images.dtype == np.uint8
        assert np.bincount(digits.labels).tolist() == [200, 200]
        assert len(set(digits.index.tolist())) == 400
    every = np.concatenate([digits.images for digits in splits.values()])
    assert len(np.unique(every.reshape(800, -1), axis=0)) == 800
    # A handwritten 1 has far less ink than a 0, and a 0 has a hole in the middle.
    labels = np.concatenate([digits.labels for digits in splits.values()])
    zeros, ones = every[labels == 0], every[labels == 1]
    assert zeros.mean() > 1.8 * ones.mean()
    assert zeros[:, 13:15, 13:15].mean() < 0.2 * ones[:, 13:15, 13:15].mean()


@pytest.mark.parametrize(("n", "T", "patch"), [(20, 6, 28), (7, 2, 14), (1, 3, 7), (400, 3, 4)])
def test_shapes_labels_and_positions(n, T, patch):
    data = load_binary_mnist(n, T, patch, seed=3)
    place = data.meta["digit_position"]
    assert data.X.shape == (n, T, patch**2) and data.X.dtype == torch.float64
    assert data.u.shape == (patch**2,)
    assert (data.lengths == T).all()
    assert int((data.y == 1).sum()) == n - n // 2
    assert place.shape == (n,) and bool(((place >= 0) & (place < T)).all())
    digits = data.X[torch.arange(n), place]
    assert torch.allclose(digits.norm(dim=1), torch.ones(n).double(), rtol=1e-12)
    assert len(set(data.meta["digit_index"].tolist())) == n


def test_digits_are_the_real_images():
    data = load_binary_mnist(12, 4, centre=False, norm=3.0)
    test = _mnist.read_digits("bundled")["test"]
    for i in range(12):
        (row,) = np.flatnonzero(test.index == int(data.meta["digit_index"][i]))
        pixels = torch.tensor(test.images[row], dtype=torch.float64).flatten()
        token = data.X[i, data.meta["digit_position"][i]]
        assert torch.allclose(token, 3.0 * pixels / pixels.norm(), atol=1e-14)
        assert data.y[i] == (1 if test.labels[row] == 1 else -1)


def test_pooling_is_the_block_average():
    fine, coarse = (load_binary_mnist(3, 2, patch, centre=False) for patch in (28, 7))
    index = torch.arange(3), fine.meta["digit_position"]
    pooled = fine.X[index].reshape(3, 28, 28).unfold(1, 4, 4).unfold(2, 4, 4).mean((3, 4))
    pooled = pooled.reshape(3, 49)
    expected = pooled / pooled.norm(dim=1, keepdim=True)
    assert torch.allclose(coarse.X[index], expected, atol=1e-14)


def test_noise_has_the_stated_norm_and_is_fresh():
    data = load_binary_mnist(200, 4, noise=2.5, norm=3.0)
    is_noise = torch.arange(4) != data.meta["digit_position"][:, None]
    noise = data.X[is_noise]
    # 600 x 784 standard normals: the mean square is within 5 standard deviations of 1.
    mean_square = float(noise.square().sum(dim=1).mean()) / (2.5 * 3.0) ** 2
    assert abs(mean_square - 1) < 5 * (2 / (600 * 784)) ** 0.5
    assert len(torch.unique(noise[:, 0])) == 600


def test_digit_is_optimal_for_the_stated_fraction():
    for settings in ({}, {"patch": 4, "n": 400}, {"noise": 6.0, "n": 100}):
        data = load_binary_mnist(**settings)
        agrees = optimal_tokens(data) == data.meta["digit_position"]
        assert torch.equal(agrees, data.meta["digit_optimal"])
        assert data.meta["digit_optimal_fraction"] == float(agrees.double().mean())
    assert data.meta["digit_optimal_fraction"] < 1  # the last setting really has others
    assert load_binary_mnist().meta["digit_optimal_fraction"] == 1


def test_classifier_solves_the_ridge_equations_on_training_digits_alone():
    data = load_binary_mnist(ridge=0.05, classifier_scale=2.0, norm=4.0)
    train = _mnist.read_digits("bundled")["train"]
    tokens = torch.tensor(train.images, dtype=torch.float64).flatten(1) / 255
    tokens -= tokens.mean(0)
    tokens /= tokens.norm(dim=1, keepdim=True)
    y = 2 * torch.tensor(train.labels).double() - 1
    u = 4.0 * data.u
    assert abs(float((y * (tokens @ u)).mean()) - 2.0) < 1e-12
    # u is c times the minimiser v, so the gradient of the fit vanishes at u / c for one c.
    smooth, target = tokens.T @ (tokens @ u) / 400 + 0.05 * u, tokens.T @ y / 400
    c = float(smooth @ target / target.square().sum())
    assert c > 0 and float((smooth - c * target).norm()) < 1e-12 * float(smooth.norm())


def test_classifier_accuracy_is_measured_on_the_other_split():
    data = load_binary_mnist(400, 2, position="first")
    scores = data.y * (data.X[:, 0] @ data.u)
    accuracy = float((scores > 0).double().mean())  # n = 400 uses every test digit
    assert data.meta["classifier_test_accuracy"] == accuracy
    assert data.meta["classifier_test_digits"] == 400
    assert accuracy >= 0.99


def test_spread_and_gap_are_those_of_the_scores():
    data = load_binary_mnist(30, 5, noise=2.0)
    scores, place = token_scores(data), data.meta["digit_position"]
    others = scores[torch.arange(5) != place[:, None]].reshape(30, 4)
    spread = float(others.var(dim=1, correction=0).mean().sqrt())
    gap = float((scores[torch.arange(30), place] - others.mean(1)).mean())
    assert data.meta["score_spread"] == pytest.approx(spread, rel=1e-12)
    assert data.meta["score_gap"] == pytest.approx(gap, rel=1e-12)
    # Noise has norm 2 in 784 dimensions, so its scores spread by 2 |u| / 28, less the mean.
    assert spread == pytest.approx(2 * float(data.u.norm()) / 28 * (3 / 4) ** 0.5, rel=0.3)


def test_projected_noise_satisfies_assumption_2_exactly():
    plain, projected = (load_binary_mnist(40, 6, project_noise=flag) for flag in (False, True))
    scores = token_scores(projected)
    others = scores[torch.arange(6) != projected.meta["digit_position"][:, None]].reshape(40, 5)
    assert bool((others == others[:, :1]).all())
    assert float(others.abs().max()) < 1e-15
    assert plain.meta["score_spread"] > 0.01 and projected.meta["score_spread"] < 1e-15
    # Only the part along u was removed.
    change = (plain.X - projected.X).reshape(-1, 784)
    along = (change @ projected.u)[:, None] * projected.u / projected.u.square().sum()
    assert float((change - along).abs().max()) < 1e-14


def test_misclassified_digit_is_kept_and_named():
    data = load_binary_mnist(400, 3, patch=4, project_noise=True)
    assert 0.9 < data.meta["digit_optimal_fraction"] < 1 and data.n == 400
    with pytest.raises(TiedTokensError):
        optimal_tokens(data)


def test_scale_and_norm_change_scores_as_stated():
    plain, scaled = load_binary_mnist(), load_binary_mnist(norm=10.0, classifier_scale=3.0)
    assert torch.allclose(scaled.X, 10 * plain.X, rtol=1e-12)
    assert torch.allclose(token_scores(scaled), 3 * token_scores(plain), atol=1e-12)


@pytest.mark.parametrize("kind", ["folder", "gzipped", "dotted"])
def test_local_copies_read_alike(tmp_path, files, kind):
    if kind == "gzipped":
        files = {f"{name}.gz": gzip.compress(blob) for name, blob in files.items()}
    if kind == "dotted":
        files = {name.replace("-idx", ".idx"): blob for name, blob in files.items()}
    source = write_folder(tmp_path / kind, files)
    splits = _mnist.read_digits(source, verify=False)
    for name, (count, seed) in {"train": (60, 1), "test": (30, 2)}.items():
        images, labels = drawn(count, seed)
        assert (splits[name].index == np.flatnonzero(labels < 2)).all()
        assert (splits[name].images == images[labels < 2]).all()
        assert (splits[name].labels == labels[labels < 2]).all()
    data = load_binary_mnist(8, 3, source=str(source), verify=False)
    assert data.meta["source"] == source.name
    assert data.meta["digit_optimal_fraction"] == 1


def test_copies_that_are_not_mnist_are_refused(tmp_path, files):
    folder = write_folder(tmp_path / "mnist", files)
    for source in (folder, tmp_path):
        with pytest.raises(ChecksumError, match="20 digits|40 digits"):
            load_binary_mnist(source=source)
    assert load_binary_mnist(8, source=tmp_path, verify=False).n == 8


def test_content_checksum_sees_pixels_and_labels_but_not_order():
    digits = _mnist.read_digits("bundled")["test"]
    order = np.random.default_rng(0).permutation(400)
    shuffled = _mnist.Digits(digits.images[order], digits.labels[order], digits.index[order])
    assert _mnist.content_sha256(shuffled) == _mnist.content_sha256(digits)
    images = digits.images.copy()
    images[7, 3, 3] += 1
    changed = _mnist.Digits(images, digits.labels, digits.index)
    relabelled = _mnist.Digits(digits.images, 1 - digits.labels, digits.index)
    sums = {_mnist.content_sha256(each) for each in (digits, changed, relabelled)}
    assert len(sums) == 3


@pytest.mark.parametrize("name", FILES)
def test_each_missing_or_damaged_file_is_named(tmp_path, files, name):
    folder = write_folder(tmp_path / "digits", files)
    (folder / name).write_bytes(files[name][:-1])
    with pytest.raises(FileFormatError, match=name):
        load_binary_mnist(source=folder, verify=False)
    (folder / name).unlink()
    with pytest.raises(MissingFileError, match=f"no {name}"):
        load_binary_mnist(source=folder, verify=False)
    (folder / f"{name}.gz").write_bytes(gzip.compress(files[name])[:-12])
    with pytest.raises(FileFormatError, match=f"{name}.gz"):
        load_binary_mnist(source=folder, verify=False)


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path, files, monkeypatch):
    monkeypatch.setattr("attnbias._records._LEAST_LIMIT", 1000)
    files = {f"{name}.gz": gzip.compress(blob) for name, blob in files.items()}
    folder = write_folder(tmp_path / "mnist", files)
    (folder / f"{FILES[0]}.gz").write_bytes(gzip.compress(bytes(10**6)))
    with pytest.raises(FileFormatError, match="when unpacked"):
        load_binary_mnist(source=folder, verify=False)


def test_idx_files_that_contradict_their_header():
    head = b"\0\0\x08\x01\0\0"  # two bytes more say how many bytes follow
    blobs = [b"", head, head + b"\0\x02a", head + b"\0\x02abc", b"\0\0\x0d\x01\0\0\0\x01a"]
    for blob, rank in [
        *((blob, 1) for blob in blobs),
        (head + b"\0\x02ab", 3),
        (b"\0\0\x08\x03" + b"\xff" * 12, 3),
    ]:
        with pytest.raises(FileFormatError, match="IDX"):
            parse_idx("some file", blob, rank)


FAULTS = {
    "size": lambda images, labels: (images[:, :27], labels),
    "counts": lambda images, labels: (images, labels[:-1]),
    "blank": lambda images, labels: (images * (labels > 0)[:, None, None], labels),
    "one class": lambda images, labels: (images, np.where(labels == 1, 5, labels)),
    "all alike": lambda images, labels: (images * 0 + 200, labels),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_idx_files_with_other_content(tmp_path, files, fault):
    images, labels = (np.ascontiguousarray(array, "u1") for array in FAULTS[fault](*drawn(30, 2)))
    files |= {FILES[2]: idx(images), FILES[3]: idx(labels)}
    if fault == "all alike":
        files |= {FILES[0]: files[FILES[2]], FILES[1]: files[FILES[3]]}
    with pytest.raises(FileFormatError):
        load_binary_mnist(6, source=write_folder(tmp_path / "own", files), verify=False)


@pytest.mark.parametrize(("zeros", "ones", "most"), [(3, 9, 7), (9, 3, 6), (4, 4, 8)])
def test_no_digit_is_used_twice(tmp_path, files, zeros, ones, most):
    images, labels = drawn(30, 2)
    wanted = np.concatenate(
        [np.flatnonzero(labels == 0)[:zeros], np.flatnonzero(labels == 1)[:ones]]
    )
    files |= {FILES[2]: idx(images[wanted]), FILES[3]: idx(labels[wanted])}
    source = write_folder(tmp_path / "few", files)
    data = load_binary_mnist(most, source=source, verify=False)
    assert len(set(data.meta["digit_index"].tolist())) == most
    assert int((data.y == 1).sum()) == most - most // 2
    with pytest.raises(RangeError, match=f"at most {most} sequences"):
        load_binary_mnist(most + 1, source=source, verify=False)


def test_huggingface_rows_are_read_and_checked(monkeypatch):
    tables = {("ylecun/mnist", "train"): drawn(60, 1), ("ylecun/mnist", "test"): drawn(30, 2)}
    columns = {
        key: {"image": [*images], "label": labels.tolist()}
        for key, (images, labels) in tables.items()
    }
    hub(monkeypatch, columns)
    with pytest.raises(ChecksumError, match="huggingface"):
        load_binary_mnist(source="huggingface")
    assert load_binary_mnist(6, source="huggingface", verify=False).n == 6
    hub(monkeypatch, {})
    with pytest.raises(MissingFileError, match="KeyError"):
        load_binary_mnist(source="huggingface")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"attnbias\[nets\]"):
        load_binary_mnist(source="huggingface")
