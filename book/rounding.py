"""Numbers of a sentence that says "at most" or "at least", rounded so that it stays true.

Examples
--------
>>> round_up(4.2), round_up(0.031, 2), round_down(1.685, 1), round_down(0.3, 1)
(5, 0.04, 1.6, 0.3)
"""

import math


def round_up(value, digits: int = 0):
    """The smallest number of so many decimals that is not below the value."""
    return _to(math.ceil, value, digits)


def round_down(value, digits: int = 0):
    """The largest number of so many decimals that is not above the value."""
    return _to(math.floor, value, digits)


def _to(whole, value, digits: int):
    scaled = whole(round(float(value) * 10**digits, 9))  # 0.3 * 10 is 3 and a rounding error
    return scaled / 10**digits if digits else scaled
