"""Bad arguments, and the errors that name them."""

import pytest


def refuses(call, right: dict, cases: dict, words: str | None = None) -> None:
    """Each change of the right arguments is refused by its error, whose message names it."""
    for error, changes in cases.items():
        for change in changes:
            with pytest.raises(error, match=next(iter(change)) if words is None else words):
                call(**right | change)
