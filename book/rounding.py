"""Numbers as a sentence has them: true after "at most" or "at least", and in powers of ten.

Examples
--------
>>> round_up(4.2), round_up(0.031, 2), round_down(1.685, 1), round_down(0.3, 1)
(5, 0.04, 1.6, 0.3)
>>> scaled(4.42e-6), power_of_ten(12)
('4.4·10⁻⁶', '10¹²')
"""

import math

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def round_up(value, digits: int = 0):
    """The smallest number of so many decimals that is not below the value."""
    return _to(math.ceil, value, digits)


def round_down(value, digits: int = 0):
    """The largest number of so many decimals that is not above the value."""
    return _to(math.floor, value, digits)


def _to(whole, value, digits: int):
    scaled = whole(round(float(value) * 10**digits, 9))  # 0.3 * 10 is 3 and a rounding error
    return scaled / 10**digits if digits else scaled


def power_of_ten(exponent: int) -> str:
    return "10" + str(exponent).translate(RAISED)


def scaled(value, digits: int = 1) -> str:
    """The value as a number of so many decimals times a power of ten."""
    number, exponent = f"{value:.{digits}e}".split("e")
    return f"{number}·{power_of_ten(int(exponent))}"
