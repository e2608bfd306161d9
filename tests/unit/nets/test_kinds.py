"""The kinds of model whose heads are recorded right, each as it was when it was last looked at."""

import warnings

import pytest
from kinds import RIGHT, apart, tiny

from attnbias.errors import AttnBiasError
from attnbias.nets import record_heads

pytest.importorskip("transformers")
FLOAT32 = 2e-5  # eager's own rounding: some kinds multiply their logits by 1 in place of 1/sqrt(m)


def wrong(kinds) -> dict[str, str]:
    """The kinds that are not recorded as they were, and what became of them."""
    found = {}
    for kind, spaces in kinds.items():
        try:
            model, inputs = tiny(kind)
            heads = [*record_heads(model, inputs)]
            off = apart(model, inputs, heads)
        except (AttnBiasError, ModuleNotFoundError, KeyError) as error:
            found[kind] = str(error)
            continue
        now = " and ".join(sorted({head.space for head in heads}))
        if now != spaces or off > FLOAT32:
            found[kind] = f"{now}, off by {off:.1g}"
    return found


KINDS = {kind: spaces for spaces, names in RIGHT.items() for kind in names.split()}


def test_some_kinds_of_each_sort():
    some = {names.split()[0]: spaces for spaces, names in RIGHT.items()}
    assert wrong(some) == {}
    assert [*wrong({"bert": "keys", "t5": "keys"})] == ["bert", "t5"]


@pytest.mark.slow
def test_every_kind_that_was_right_is():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of configurations
        assert wrong(KINDS) == {}
