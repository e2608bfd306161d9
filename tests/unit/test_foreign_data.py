"""Data as other people keep them: frames, masks, nested tensors and files of theirs."""

import numpy as np
import pandas as pd
import pytest
import torch
from test_dataset import X, Y, same

from attnbias import NGD, AttnBiasError, Dataset, SelfAttention, make_separation_pair, train
from attnbias.cli import main
from attnbias.errors import (
    DeviceError,
    DtypeError,
    FileFormatError,
    LabelError,
    NonFiniteError,
    RangeError,
    ShapeError,
)

PAIR = make_separation_pair()
FRAME = pd.DataFrame(X[0].numpy(), columns=list("wxyz"))
WHOLE = pd.DataFrame({"a": [1, 2, 3], "b": [0, 5, 7]})
TWO = [FRAME, FRAME.iloc[:2] + 1]
BOTH = Dataset.from_sequences([each.to_numpy() for each in TWO], Y)


@pytest.mark.parametrize(
    "kind",
    [
        lambda f: f.convert_dtypes(),
        lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
        lambda f: f.astype("Float64"),
        lambda f: f.assign(x=f.x.astype("Float64")),
        lambda f: f.assign(x=f.x.astype("double[pyarrow]")),
        lambda f: f.rename(columns={"x": "y"}),
    ],
    ids=["nullable", "pyarrow", "Float64", "one nullable", "one pyarrow", "a name twice"],
)
def test_frames_of_any_dtypes_are_read(kind):
    frames = [kind(each) for each in TWO]
    for given in (frames, pd.Series(frames), tuple(frames), iter(frames)):
        assert same(Dataset.from_sequences(given, Y), BOTH)
    assert same(Dataset([kind(FRAME)] * 2, Y), Dataset([FRAME.to_numpy()] * 2, Y))
    assert same(Dataset(pd.Series([kind(FRAME)] * 2), Y), Dataset([FRAME.to_numpy()] * 2, Y))


@pytest.mark.parametrize("dtype", ["Int64", "int64", "UInt8", "int32[pyarrow]", "Float32", "bool"])
def test_whole_numbers_of_a_frame_are_numbers(dtype):
    """convert_dtypes makes them of a column without fractions; X has to be of floats."""
    frame = WHOLE.astype(dtype)
    data = Dataset.from_sequences([frame] * 2, Y)
    assert data.X[0].tolist() == frame.astype(float).to_numpy().tolist()
    assert data.X.dtype == (torch.float32 if dtype == "Float32" else torch.float64)
    kind = "boolean" if dtype == "bool" else "Int64"
    mask = pd.DataFrame([[1, 1, 1], [1, 1, 0]]).astype(kind)
    data = Dataset(X, pd.Series(Y, dtype="Int64"), mask=mask)
    assert data.lengths.tolist() == pd.Series([3, 2], dtype="Int64").tolist()


def with_entry(frame, column, value):
    frame = frame.copy()
    frame[column] = frame[column].astype(object if isinstance(value, str) else "Float64")
    frame.loc[0, column] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        (with_entry(FRAME, "x", pd.NA), DtypeError, "'x' is missing 1"),
        (
            with_entry(FRAME.convert_dtypes(dtype_backend="pyarrow"), "y", None),
            DtypeError,
            "'y' is mis",
        ),
        (FRAME.assign(w=list("abc")), DtypeError, "'w' is of dtype"),
        (FRAME.assign(w=pd.Timestamp("2020")), DtypeError, "'w' is of dtype datetime"),
        (FRAME.assign(w=pd.Categorical(list("abc"))), DtypeError, "'w' is of dtype category"),
        (
            FRAME.assign(w=[1.0, np.nan, np.inf]),
            NonFiniteError,
            "2 NaN or infinite of 12, in column w",
        ),
    ],
)
def test_what_is_no_number_in_a_frame_is_named_by_its_column(frame, error, words):
    with pytest.raises(error, match=rf"^sequences\[1\]: .*{words}"):
        Dataset.from_sequences([FRAME, frame], Y)
    table = frame.assign(by=0, label=1)
    with pytest.raises(error, match=words):
        Dataset.from_frame(table, by="by", features=list("wxyz"), label="label")


@pytest.mark.parametrize(
    "other",
    [
        FRAME[list("zyxw")],
        FRAME.convert_dtypes()[list("wxzy")],
        FRAME.rename(columns={"w": "v"}),
        FRAME.to_numpy(),
        pd.DataFrame(X[0].numpy()),
    ],
    ids=["turned", "nullable", "renamed", "array", "without names"],
)
@pytest.mark.parametrize("listed", [list, pd.Series, tuple])
def test_frames_whose_columns_differ_are_refused_with_the_line_that_orders_them(other, listed):
    sequences = [FRAME, other]
    if isinstance(other, np.ndarray):
        assert Dataset.from_sequences(sequences, Y).n == 2  # it has no names
        return
    for name, call in (("sequences", Dataset.from_sequences), ("X", Dataset)):
        with pytest.raises(
            ShapeError, match=rf"^{name}\[1\]: .*columns of {name}\[0\], w, x, y, z"
        ):
            call(listed(sequences), Y)
    with pytest.raises(ShapeError) as caught:
        Dataset.from_sequences(listed(sequences), Y)
    if "one order" in caught.value.remedy:
        names = {"sequences": sequences}
        exec(caught.value.remedy.partition(": ")[2], names)
        data = Dataset.from_sequences(names["sequences"], Y)
        assert torch.equal(data.X[1], X[0])
    assert ("one order" in caught.value.remedy) == ({*other.columns} == {*FRAME.columns})


@pytest.mark.parametrize(
    "given",
    [
        FRAME,
        FRAME.assign(t=[0, 0, 1]).groupby("t"),
        {"a": FRAME, "b": FRAME},
    ],
    ids=["frame", "groups", "dict"],
)
def test_what_is_no_list_of_sequences_has_true_advice(given):
    words = r"list\(sequences\.values\(\)\)" if isinstance(given, dict) else "from_frame"
    with pytest.raises(DtypeError, match=f"^sequences: expected a list of .*{words}"):
        Dataset.from_sequences(given, Y)
    if isinstance(given, dict):
        assert Dataset.from_sequences(list(given.values()), Y).n == 2


# ---- a table with a token in each row

TABLE = pd.DataFrame(
    {
        "doc": ["b", "b", "a", "b", "a"],
        "part": [1, 1, 1, 2, 1],
        "label": [1, 1, -1, 1, -1],
        "x": [0.5, 1.0, 2.0, 3.0, 4.0],
        "z": [1, 2, 3, 4, 5],
    }
)
COLUMNS = {"by": "doc", "features": ["z", "x"], "label": "label"}


@pytest.mark.parametrize(
    "kind",
    [
        lambda f: f,
        lambda f: f.convert_dtypes(),
        lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
        lambda f: f.assign(doc=f.doc.astype("category")),
        lambda f: f.set_index(pd.Index([9, 3, 3, 0, 1])),
        lambda f: f[f.columns[::-1]],
        lambda f: f.assign(label=f.label.astype(float)),
    ],
    ids=range(7),
)
def test_a_table_becomes_sequences_in_order_of_appearance(kind):
    made = Dataset.from_frame(kind(TABLE), **COLUMNS, u=[1.0, 0.0], name="mine", meta={"a": 1})
    by_hand = Dataset.from_sequences(
        [[[1.0, 0.5], [2.0, 1.0], [4.0, 3.0]], [[3.0, 2.0], [5.0, 4.0]]], [1, -1], [1.0, 0.0]
    )
    assert same(made, by_hand) and made.name == "mine" and made.meta["a"] == 1


def test_several_columns_name_a_sequence():
    table = TABLE.drop(index=3)
    made = Dataset.from_frame(table, **COLUMNS | {"by": ["doc", "part"], "features": "x"})
    assert made.X[:, :, 0].tolist() == [[0.5, 1.0], [2.0, 4.0]]
    features = TABLE.columns[3:]
    assert Dataset.from_frame(table, **COLUMNS | {"features": features}).d == 2
    twofold = pd.concat({"a": table}, axis=1)
    named = {"by": ("a", "doc"), "features": [("a", "x")], "label": ("a", "label")}
    assert torch.equal(Dataset.from_frame(twofold, **named).X, made.X)


@pytest.mark.parametrize(
    ("error", "words", "change"),
    [
        (RangeError, "'id', of columns doc, part", {"by": "id"}),
        (RangeError, "'w', of columns", {"features": ["x", "w"]}),
        (RangeError, "'y', of columns", {"label": "y"}),
        (RangeError, "no name, of columns", {"features": []}),
        (RangeError, "'x', of columns", {"frame": TABLE.rename(columns={"z": "x"})}),
        (RangeError, r"reset_index", {"frame": TABLE.set_index("doc")}),
        (DtypeError, "^frame: .*DataFrame", {"frame": TABLE.x}),
        (DtypeError, "^frame: .*DataFrame", {"frame": {"doc": [1]}}),
        (DtypeError, "^frame: .*at least one row", {"frame": TABLE[:0]}),
        (
            RangeError,
            r"frame\['doc'\]: .*1 missing.*dropna",
            {"frame": TABLE.assign(doc=["b", None, *"aba"])},
        ),
        (
            RangeError,
            r"frame\['label'\]: .*1 missing",
            {"frame": TABLE.assign(label=[1, None, -1, 1, -1])},
        ),
        (
            LabelError,
            r"frame\['label'\]: .*rows of doc = 'a'; got -1 and 1",
            {"frame": TABLE.assign(label=[1, 1, -1, 1, 1])},
        ),
        (LabelError, "others, first 3", {"frame": TABLE.assign(label=[3, 3, -1, 3, -1])}),
        (ShapeError, "frame, doc = 'b' and part = 2: .*at least 2 tokens", {"by": ["doc", "part"]}),
        (DtypeError, "'doc' is of dtype", {"features": ["x", "doc"]}),
        (RangeError, "a Tensor", {"by": torch.ones(2)}),
        (RangeError, "None, of columns", {"label": None}),
        (RangeError, "lists or arrays", {"frame": TABLE.assign(doc=[[1]] * 5)}),
    ],
)
def test_a_table_that_says_something_else_is_refused_by_name(error, words, change):
    with pytest.raises(error, match=words):
        Dataset.from_frame(**{"frame": TABLE, **COLUMNS} | change)


# ---- labels


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        torch.tensor,
        pd.Series,
        lambda y: pd.Series(y).convert_dtypes(),
        tuple,
    ],
    ids=["list", "array", "tensor", "series", "nullable", "tuple"],
)
@pytest.mark.parametrize(
    "two", [(0, 1), (False, True), (0.0, 1.0), (1, 2), ("neg", "pos"), ("false", "true")]
)
def test_the_line_that_maps_two_classes_is_given_and_right(make, two):
    if make is torch.tensor and isinstance(two[0], str):
        return
    y = make([two[1], two[0]])
    with pytest.raises((LabelError, DtypeError), match="^y: .*Map them: y = ") as caught:
        Dataset(X, y)
    names = {"y": y}
    exec(caught.value.remedy.removeprefix("map them: "), names)
    assert Dataset(X, names["y"]).y.tolist() == [1, -1]
    if isinstance(y, pd.Series):
        frame = pd.concat([FRAME.assign(i=i, label=y[i]) for i in (0, 1)])
        with pytest.raises((LabelError, DtypeError), match=r"^frame\['label'\]: ") as caught:
            Dataset.from_frame(frame, by="i", features=list("wxyz"), label="label")
        names = {"frame": frame}
        exec(caught.value.remedy.removeprefix("map them: "), names)
        made = Dataset.from_frame(names["frame"], by="i", features=list("wxyz"), label="label")
        assert made.y.tolist() == [1, -1]


def test_other_labels_have_no_such_line():
    for y in (["a", "b", "c"], [0, 2, 1], [1.0, np.nan, 1.0], [None, "a", "b"]):
        with pytest.raises(AttnBiasError) as caught:
            Dataset(torch.cat([X, X[:1]]), y)
        assert "label ==" not in str(caught.value)
    with pytest.raises(LabelError, match=r"label == 1"):  # one class of zeros and ones
        Dataset(X, [0, 0])


# ---- masks and lengths of another convention

TOKENS = X + 100.0  # none of them is zero


def padded(left: bool, noise: float, counts=(2, 3)) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences of so many tokens of 5, and the mask that is True at them."""
    values = torch.full((2, 5, 4), noise, dtype=torch.float64)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    for i, count in enumerate(counts):
        place = slice(5 - count, 5) if left else slice(0, count)
        values[i, place], mask[i, place] = TOKENS[i, :count], True
    return values, mask


@pytest.mark.parametrize(
    "kind",
    [
        lambda m: m,
        lambda m: m.long(),
        lambda m: m.numpy(),
        lambda m: m.numpy().astype("i1"),
    ],
    ids=["bool", "int", "array", "int8 array"],
)
@pytest.mark.parametrize("left", [False, True])
def test_a_mask_of_padding_over_zeros_is_refused_with_what_mends_it(kind, left):
    """On the left both conventions are turned, so that the mask has no holes."""
    values, mask = padded(left, 0.0)
    right = Dataset.from_sequences([x[m] for x, m in zip(values, mask, strict=True)], Y)
    with pytest.raises(RangeError, match="^mask: .*in 2, first in 0.*True at padding") as caught:
        Dataset(values, Y, mask=kind(~mask))
    line = caught.value.remedy.partition("take ")[2].partition(";")[0]
    given = {"Dataset": Dataset, "X": values, "mask": kind(~mask), "y": Y, "u": None}
    assert same(eval(line, given), right)


def test_one_turned_sequence_of_many_is_found():
    values, mask = padded(False, 0.0)
    values[1] = values[1].flip(0)
    mask[1] = torch.tensor([True, True, False, False, False])
    with pytest.raises(RangeError, match="^mask: .*in 1, first in 1"):
        Dataset(values, Y, mask=mask)


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("kind", [lambda m: m, lambda m: m.long(), lambda m: m.numpy().astype(int)])
def test_what_a_mask_with_holes_is_told_is_true(kind, noise):
    """x[m] with 0 and 1 in place of booleans would take the first two rows, again and again."""
    values, mask = padded(True, noise)
    right = Dataset.from_sequences([x[m] for x, m in zip(values, mask, strict=True)], Y)
    with pytest.raises(RangeError, match="closes the gaps") as caught:
        Dataset(values, Y, mask=kind(mask))
    line = caught.value.remedy.partition(" closes")[0]
    given = {"Dataset": Dataset, "X": values, "mask": kind(mask), "y": Y, "u": None}
    assert same(eval(line, given), right)


@pytest.mark.parametrize("counts", [(2, 3), (4, 2), (3, 5)])
def test_lengths_of_sequences_padded_on_the_left_are_refused(counts):
    values, mask = padded(True, 0.0, counts) if max(counts) < 4 else (None, None)
    if values is None:
        values = torch.zeros(2, 5, 4, dtype=torch.float64)
        for i, count in enumerate(counts):
            values[i, 5 - count :] = torch.arange(1.0, 1 + 4 * count).reshape(count, 4)
    with pytest.raises(RangeError, match="^lengths: .*on the left") as caught:
        Dataset(values, Y, lengths=list(counts))
    line = caught.value.remedy.partition("take ")[2].partition(";")[0]
    given = {"Dataset": Dataset, "X": values, "lengths": list(counts), "y": Y, "u": None}
    made = eval(line, given)
    assert made.lengths.tolist() == list(counts)
    assert all(torch.equal(x[:k], v[-k:]) for x, v, k in zip(made.X, values, counts, strict=True))


def test_zeros_and_noise_where_they_belong_are_taken():
    values, mask = padded(False, 7.0)  # hidden states are not zero at padding
    data = Dataset(values, Y, mask=mask)
    assert data.lengths.tolist() == [2, 3] and not data.X[0, 2:].any()
    values[:, 1] = 0.0  # one of the tokens
    assert Dataset(values, Y, mask=mask).lengths.tolist() == [2, 3]
    assert Dataset(torch.zeros(2, 5, 4).double(), Y, lengths=[2, 5]).T == 5


@pytest.mark.parametrize(
    ("mask", "line"),
    [
        ([[0.0, 0.0, -np.inf], [0.0, 0.0, 0.0]], "mask == 0"),
        ([[0.0, 0.0, -3.4e38], [0.0, 0.0, 0.0]], "mask == 0"),
        ([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]], "mask == 1"),
    ],
)
def test_a_float_mask_has_the_line_of_its_convention(mask, line):
    mask = np.array(mask)
    with pytest.raises(DtypeError, match=f"^mask: .*{line}"):
        Dataset(X, Y, mask=mask)
    assert Dataset(X, Y, mask=eval(line, {"mask": mask})).lengths.tolist() == [2, 3]


# ---- files


@pytest.mark.parametrize(
    "extra",
    [
        {"attention_mask": np.ones((2, 3), int)},
        {"length": [3, 2]},
        {"labels": Y},
        {"U": np.ones(4)},
        {"sample_weight": np.ones(2), "ids": np.arange(2)},
    ],
    ids=str,
)
def test_an_array_that_nothing_reads_is_refused_by_name(extra, tmp_path, capsys):
    path = tmp_path / "mine.npz"
    np.savez(path, X=X.numpy(), y=np.array(Y), u=np.ones(4), **extra)
    for key in extra:
        with pytest.raises(FileFormatError, match=rf"also .*\b{key}\b.*mask.*lengths"):
            Dataset.load(path)
    assert main(["diagnose", str(path)]) == 2
    assert next(iter(extra)) in capsys.readouterr().err
    np.savez(path, X=X.numpy(), **extra)
    with pytest.raises(FileFormatError, match=r"only .*X.*labels -1 and \+1"):
        Dataset.load(path)


def test_nor_does_a_file_of_queries_and_keys_have_others(tmp_path, capsys):
    q = np.random.default_rng(0).normal(size=(4, 3, 2))
    np.savez(tmp_path / "a.npz", q=q, k=q, attention_mask=np.ones((4, 3)))
    assert main(["heads", "--npz", str(tmp_path / "a.npz"), "--out", str(tmp_path / "out")]) == 2
    assert "attention_mask" in capsys.readouterr().err


def test_object_arrays_are_shown_the_way_to_a_file(tmp_path):
    ragged = np.empty(2, dtype=object)
    ragged[:] = [X[0].numpy(), X[1, :2].numpy()]
    np.savez(tmp_path / "a.npz", X=ragged, y=Y)
    with pytest.raises(FileFormatError, match=r"from_sequences\(sequences, y, u\)\.save\(path\)"):
        Dataset.load(tmp_path / "a.npz")
    made = Dataset.load(Dataset.from_sequences(ragged, Y).save(tmp_path / "b.npz"))
    assert made.lengths.tolist() == [3, 2]


# ---- nested tensors


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(
    "make",
    [
        lambda n: n,
        lambda n: n.transpose(1, 2).transpose(1, 2),
        lambda n: n.chunk(2, -1)[0],
        lambda n: torch.nested.nested_tensor([*n.unbind()], requires_grad=True),
    ],
    ids=["plain", "turned twice", "half of the features", "with a gradient"],
)
def test_strided_nested_tensors_are_lists_of_their_parts(make):
    nested = make(torch.nested.nested_tensor([X[0], X[1, :2]]))
    parts = [part.detach() for part in nested.unbind()]
    made = Dataset.from_sequences(nested, Y[: len(parts)])
    assert same(made, Dataset.from_sequences(parts, Y[: len(parts)]))


# ---- advice


def test_advice_is_of_what_came(monkeypatch):
    trace = train(PAIR, NGD(0.1), 3)
    for call, error, words in (
        (lambda: SelfAttention(2, W=trace), DtypeError, r"Pass its W: W=trace\.W\."),
        (lambda: Dataset(PAIR, [1]), DtypeError, r"Pass its X: X=dataset\.X\."),
        (lambda: PAIR.to(torch.float32), DeviceError, r"Name it: dtype=torch\.float32\."),
        (lambda: PAIR.to("float32"), DeviceError, "a dtype goes by its name"),
        (lambda: PAIR.to(np.float64), DeviceError, "a dtype goes by its name"),
        (lambda: Dataset(X, pd.Series(["a", "b"], dtype="str")), DtypeError, "it is of dtype"),
        (lambda: Dataset([[[1.0], [2.0]], [[1.0]]], Y), DtypeError, "one length; .*from_sequences"),
        (lambda: Dataset(np.array([X[0], X[0, :2]], dtype=object), Y), DtypeError, "one length"),
        (lambda: Dataset(X, Y, u=["a"] * 4), DtypeError, "Pass numbers"),
        (
            lambda: Dataset.from_sequences([[[1.0, 2.0], [3.0]]], [1]),
            DtypeError,
            "its rows one len",
        ),
    ):
        with pytest.raises(error, match=words):
            call()
    assert PAIR.to(dtype=torch.float32).X.dtype == torch.float32


def test_another_message_is_cut_between_words(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError(
            "Found no NVIDIA driver on your system. Please install one from "
            "http://www.nvidia.com/Download/index.aspx\nmore"
        )

    monkeypatch.setattr(torch, "empty", fails)
    with pytest.raises(DeviceError, match=r"\(Found no NVIDIA driver on your system\)\. Ask"):
        PAIR.to("cuda")
    address = "http://www.example.org/" + "a" * 100
    monkeypatch.setattr(torch, "empty", lambda *_, **__: float(f"{'word ' * 20}{address}"))
    with pytest.raises(DeviceError, match=r"\('?could not.*word \.\.\.\)\. Ask"):
        PAIR.to("cuda")


@pytest.mark.parametrize(
    ("remedy", "sentence"),
    [
        ("load_tokenizer gives one", "load_tokenizer gives one."),
        ("pass a dict", "Pass a dict."),
        ("data.to(device) moves it", "data.to(device) moves it."),
        ("y = 2 * y - 1", "y = 2 * y - 1."),
        ("half-written files", "Half-written files."),
        ("don't, or wait!", "Don't, or wait!"),
        ("lr=0.1 is usual", "lr=0.1 is usual."),
        ("stop", "Stop."),
        ("of one, two", "Of one, two."),
        ("`fit` takes it", "`fit` takes it."),
        ("dict(a=1)", "dict(a=1)."),
        ("", "."),
    ],
)
def test_a_name_in_code_keeps_its_letters(remedy, sentence):
    error = AttnBiasError("a", expected="b", got="c", remedy=remedy)
    assert str(error) == f"a: expected b; got c. {sentence}"
