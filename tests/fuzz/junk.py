"""Values that no parameter means: by kind, made anew for each call."""

import datetime
import decimal
import enum
import fractions
import functools
import types

import numpy as np
import pandas as pd
import torch

from attnbias import GD, Dataset, make_separation_pair, train


class Colour(enum.Enum):
    RED = "red"


class NegativeLength(list):
    def __len__(self):
        return -1


class Hostile:
    """An object whose every answer is an error; what comes of it is its own doing."""

    def _refuse(self, *_, **__):
        raise RuntimeError("hostile on purpose")

    __array__ = __len__ = __iter__ = __eq__ = __float__ = __index__ = __bool__ = _refuse
    __hash__ = object.__hash__


def circular() -> list:
    value = []
    value.append(value)
    return value


def deep(levels: int = 500) -> list:
    value = [1.0]
    for _ in range(levels):
        value = [value]
    return value


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)


def linear_parameter() -> torch.nn.Parameter:
    return torch.nn.Linear(2, 2).weight


@torch.inference_mode()
def inference_tensor() -> torch.Tensor:
    return torch.ones(2)


def other_data() -> Dataset:
    return Dataset(torch.eye(6).double().reshape(2, 3, 6), [1, -1], u=torch.arange(6).double())


def other_trace():
    return train(other_data(), GD(0.1), 3)


KINDS = {
    "None": lambda: None,
    "True": lambda: True,
    "zero": lambda: 0,
    "minus one": lambda: -1,
    "a half": lambda: 0.5,
    "minus a half": lambda: -0.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "minus inf": lambda: float("-inf"),
    "tiny": lambda: 5e-324,
    "1e30 int": lambda: 10**30,
    "1e308": lambda: 1e308,
    "complex": lambda: 1j,
    "empty text": lambda: "",
    "word": lambda: "x",
    "long name": lambda: "a" * 300,
    "null byte": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "escape": lambda: "\x1b[31mred",
    "markup": lambda: "<img src=x onerror=alert(1)>",
    "bytes": lambda: b"x",
    "path": lambda: __import__("pathlib").Path("nowhere") / "there",
    "empty list": lambda: [],
    "list": lambda: [1.0, 2.0],
    "ragged list": lambda: [[1], [1, 2]],
    "words": lambda: ["a", "b"],
    "list of None": lambda: [None],
    "tuple": lambda: (),
    "dict": lambda: {"a": 1},
    "empty dict": lambda: {},
    "set": lambda: {1},
    "circle": circular,
    "deep list": deep,
    "iterator": lambda: iter([1, 2]),
    "range": lambda: range(3),
    "object": object,
    "class": lambda: int,
    "function": lambda: len,
    "one argument": lambda: abs,
    "module": lambda: types,
    "ellipsis": lambda: ...,
    "slice": lambda: slice(1, 2),
    "enum": lambda: Colour.RED,
    "negative length": NegativeLength,
    "fraction": lambda: fractions.Fraction(1, 3),
    "decimal": lambda: decimal.Decimal("nan"),
    "date": lambda: datetime.date(2020, 1, 1),
    "numpy nan": lambda: np.float64("nan"),
    "numpy int": lambda: np.int64(-1),
    "empty array": lambda: np.array([]),
    "array": lambda: np.ones(2),
    "array 4d": lambda: np.zeros((2, 2, 2, 2)),
    "array of text": lambda: np.array(["a"]),
    "array of objects": lambda: np.array([object()]),
    "complex array": lambda: np.array([1 + 2j]),
    "0d array": lambda: np.array(5.0),
    "masked": lambda: np.ma.masked_array([1.0], [True]),
    "datetime": lambda: np.datetime64("NaT"),
    "timedelta": lambda: np.timedelta64(1, "s"),
    "tensor": lambda: torch.tensor(1.0),
    "tensor 3d": lambda: torch.ones(2, 2, 2),
    "empty tensor": lambda: torch.zeros(0),
    "tensors": lambda: [torch.arange(99.0)] * 9,
    "int tensor": lambda: torch.tensor([1, 2]),
    "bool tensor": lambda: torch.tensor([True]),
    "nan tensor": lambda: torch.full((2, 2), torch.nan).double(),
    "half tensor": lambda: torch.ones(2).half(),
    "needs grad": lambda: torch.ones(2, requires_grad=True),
    "sparse": lambda: torch.eye(2).to_sparse(),
    "meta": lambda: torch.ones(2, device="meta"),
    "frame": lambda: pd.DataFrame({"a": [1.0]}),
    "empty frame": lambda: pd.DataFrame(),
    "series": lambda: pd.Series([1.0, None]),
    "dtype": lambda: torch.float16,
    "data": make_separation_pair,
    "other data": other_data,
    "other trace": other_trace,
    "rule": lambda: GD(0.1),
    "hostile": Hostile,
    "5000 digits": lambda: 10**5000,
    "minus zero": lambda: -0.0,
    "1e19 int": lambda: 10**19,
    "uint64": lambda: np.uint64(2**64 - 1),
    "million": lambda: [0] * 10**6,
    "long range": lambda: range(10**7),
    "broadcast": lambda: np.broadcast_to(1.0, (10**7,)),
    "nested tensor": nested,
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "bfloat16": lambda: torch.ones(2, dtype=torch.bfloat16),
    "parameter": linear_parameter,
    "module of torch": lambda: torch.nn.Linear(2, 2),
    "inference": inference_tensor,
    "generator": lambda: (each for each in (1, 2)),
    "byte array": lambda: bytearray(b"ab"),
    "view of bytes": lambda: memoryview(b"ab"),
    "frozen set": lambda: frozenset({1}),
    "mapping": lambda: types.MappingProxyType({"a": 1}),
    "number keys": lambda: {1: 2, None: 3},
    "partial": lambda: functools.partial(GD, 0.1),
    "right to left": lambda: "a\u202egpj.exe",
    "missing": lambda: pd.NA,
    "time": lambda: pd.Timestamp("2020-01-01"),
    "categories": lambda: pd.Series(["a", "b"], dtype="category"),
    "records": lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    "other bytes": lambda: np.arange(3, dtype=">f8"),
    "backwards": lambda: np.arange(3.0)[::-1],
    "matrix": lambda: np.ma.masked_all((2, 2)),
    "long double": lambda: np.longdouble("1e4000"),
}
# On purpose, or functions that refuse what they are called with: what comes of them is their own.
HOSTILE = {"hostile", "negative length", "function", "one argument", "class"}
