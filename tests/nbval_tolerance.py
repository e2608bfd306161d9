"""A pytest plugin that lets nbval accept one unit in the last printed digit.

The same sum can end in another digit on another processor or thread count. nbval compares text
exactly; here a number printed with decimals or an exponent may differ by one unit of its last
printed digit, and by no more. Whole numbers, words and everything else must be equal. Pictures are
not compared: the numbers behind each are printed and compared instead.
"""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\w)")
IMAGES = ("image/png", "image/jpeg", "image/svg+xml")
GLUED = "application/papermill.record/"


def last_unit(number: str) -> Decimal:
    """One unit in the last digit of a printed number; zero for a whole number."""
    if number.lstrip("+-").isdigit():
        return Decimal(0)
    return Decimal(1).scaleb(Decimal(number).as_tuple().exponent)


def numbers_agree(reference: str, found: str) -> bool:
    """Whether two printed numbers differ by at most one unit of the finer one's last digit."""
    if reference == found:
        return True
    unit = min(last_unit(reference), last_unit(found))
    return abs(Decimal(reference) - Decimal(found)) <= unit


def texts_agree(reference: str, found: str) -> bool:
    """Whether two outputs have the same words in the same order, and numbers that agree.

    Runs of blanks count as one: a column gets wider when 9.99 turns into 10.00.
    """
    if reference == found:
        return True
    words = [re.sub(r"[ \t]+", " ", NUMBER.sub("\0", text)) for text in (reference, found)]
    if words[0] != words[1]:
        return False
    pairs = zip(NUMBER.findall(reference), NUMBER.findall(found), strict=True)
    return all(numbers_agree(*pair) for pair in pairs)


class PrintedText(str):
    """Text that equals another when the two agree; this is what nbval's `!=` then asks."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and texts_agree(str(self), str(other))

    def __ne__(self, other: object) -> bool:
        return not self == other


def pytest_configure(config: pytest.Config) -> None:
    """Hand nbval's comparison texts that know the tolerance."""
    if not config.getoption("nbval", default=False):
        return
    from nbval.plugin import IPyNbCell

    exact = IPyNbCell.sanitize

    def sanitize(cell, output):
        text = exact(cell, output)
        return PrintedText(text) if isinstance(text, str) else text

    IPyNbCell.sanitize = sanitize


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave pictures out of nbval's comparison, shown or glued."""
    for item in items:
        if hasattr(item.parent, "skip_compare"):
            pictures = (*IMAGES, *(GLUED + image for image in IMAGES))
            item.parent.skip_compare = (*item.parent.skip_compare, *pictures)
