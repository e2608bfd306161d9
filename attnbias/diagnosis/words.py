"""Numbers and lists as the words of a diagnosis."""

from __future__ import annotations

import math

_SHOWN = 6  # items of a list that the report spells out


def number(x: float) -> str:
    """Four significant digits; 'none' for NaN."""
    return "none" if math.isnan(x) else f"{x:.4g}"


def rounding(x: float, level: float = 1e-12) -> str:
    """A number whose digits below `level` are rounding and differ between machines."""
    return f"under {level:g}" if x <= level else number(x)


def count(log_value: float) -> str:
    """A count known by its natural logarithm: exact to 10^6, then an order of magnitude."""
    if log_value < math.log(1e6):
        return f"{math.ceil(math.exp(log_value)):,}"
    if not math.isfinite(log_value):
        return "no finite number of"
    return f"about 10^{log_value / math.log(10):.0f}"


def about(count: float) -> str:
    """A count to two significant digits; an order of magnitude from 10^6 on."""
    if count >= 1e6:
        return f"10^{math.log10(count):.0f}"
    return f"{float(f'{count:.1e}'):,.0f}"


def iterations(count: float) -> str:
    """A whole number of them."""
    return f"{count:,.0f} iteration" + "s" * (count != 1)


def some(items: list[str]) -> str:
    """The first items, and how many more there are."""
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
