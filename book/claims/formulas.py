"""Mathematics that stands in a line as code, such as "|W_t| <= 2 eta t", as formulas of the book.

Claims, quantities and settings are written as a terminal shows them. `set_formulas` finds in such a
line what reads as an expression in symbols, and leaves words and plain numbers alone.
"""

import re
from typing import NamedTuple

_NAMES = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "kappa", "mu", "nu", "xi"),
    *("sigma", "tau", "phi", "chi", "psi", "Delta", "Theta", "Lambda", "Xi", "Omega", "Phi", "Psi"),
    *("log", "exp", "sqrt", "max", "min", "sum"),
)
_TEX = {name: rf"\{name}" for name in _NAMES}
_TEX |= {"phi": r"\varphi", "cosine": r"\cos", "grad": r"\nabla", "sbar": r"\bar s", "nT": "nT"}
_TEX |= {"<=": r"\le", ">=": r"\ge", "*": r"\cdot"}
_FUNCTIONS = {"log", "exp", "sqrt", "max", "min", "sum", "cosine"}
#: An article or a numeral unless other parts of a formula stand beside it.
_WEAK = {"a", "A", "I"}
_NORMED = ("W", "P", "K", "Q", "u", "p", "v", "o", r"\nabla")  # of vectors: what has a norm
_SIGNS = {"<=", ">=", ":=", "=", "<", ">", "+", "-", "/", "*"}
_MINUS = re.compile(r"(?<![^ (])-(?=\.?\d)|(?<=\d )-(?= )")  # before a number, between terms
_CLOSING = {"(": ")", "[": "])", "{": "}", "|": "|"}
#: What mixes words with symbols: by its code, its TeX.
_MIXED = {
    "|<mean, nu>|": r"|\langle\mu_\pm,\nu\rangle|",
    "|norm^2 / (sigma^2 d) - 1|": r"|\|x\|^2/(\sigma^2d)-1|",
    "y_i <X_i' phi_i, unit sum_k y_k x_{k,opt}>": r"y_i\langle X_i'\varphi_i,w/\|w\|\rangle,"
    r"w=\sum_ky_kx_{k,opt}",
    "<W_t, unit W_mm>": r"\langle W_t,W_{mm}/\|W_{mm}\|\rangle",
    "|W_0 outside span z|^2 / (2 (|W_0| + S_t)^2)": r"\|W_0\text{ outside the span of }z\|^2/"
    r"(2(\|W_0\|+S_t)^2)",
    "O(1 / path length^2)": r"O(1/\text{path length}^2)",
    "O(1 / path length)": r"O(1/\text{path length})",
    "-log(1 - optimal softmax score)": r"-\log(1-\varphi_{opt})",
    "|log step size - log cap|": r"|\log(\text{step size}/\text{cap})|",
}
_TOKEN = re.compile(
    r"""
    (?P<number> \d{1,3}(?:,\d{3})+ | \d*\.?\d+(?:e[+-]?\d+)? ) (?![\w%])
  | (?P<coefficient> \d+ ) (?=[A-Za-z]+\b)
  | (?P<primed> (?:eta|[A-Za-z]) (?:_\w+)? '(?!s\b) )
  | (?P<name> [A-Za-z]+ (?:_(?:\{[^}]*\}|\w+|\*))? \*? ) (?!\w|-[A-Za-z])
  | (?P<word> '?[\w.][\w'.-]* )
  | (?P<sign> <= | >= | := | \S )
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class Piece(NamedTuple):
    """TeX of the tokens up to `end`; `letters` and `signs` say whether it has any."""

    tex: str
    end: int
    letters: bool = False
    signs: bool = False


def set_formulas(line: str) -> str:
    """The line as Markdown, with its formulas in dollars.

    Examples
    --------
    >>> print(set_formulas("|W_t| from t_0 on, a bound of order t^(1/3) / log t"))
    $\\|W_t\\|$ from $t_0$ on, a bound of order $t^{1/3}/\\log t$
    """
    for code, tex in _MIXED.items():
        before, found, after = line.partition(code)
        if found:
            return f"{set_formulas(before)}${tex}${set_formulas(after)}"
    parser, parts, at, done = _Parser(line), [], 0, 0
    while at < len(parser.tokens):
        found, first = parser.listing(at) or parser.relation(at), parser.tokens[at]
        if found is None or not _is_formula(found):
            at += 1
            continue
        parts += [line[done : first.start], f"${found.tex}$"]
        at, done = found.end, parser.tokens[found.end - 1].end
    parts.append(line[done:])
    parts[::2] = (_MINUS.sub("\N{MINUS SIGN}", words) for words in parts[::2])
    text = "".join(parts).replace(" <= ", " ≤ ").replace(" >= ", " ≥ ")
    return re.sub(r"(?<![\w.])\.(?=\d)", "0.", text)


def _is_formula(piece: Piece) -> bool:
    bare = piece.tex in _WEAK or piece.tex in (r"\cos", r"\log", r"\exp")
    return piece.letters and not bare or "^" in piece.tex


def show_number(text: str) -> str:
    """A number in TeX: a power of ten as such, .5 with its zero.

    Examples
    --------
    >>> print(show_number("4.2e-06"), show_number("1e+06"), show_number(".5"))
    4.2\\cdot10^{-6} 10^{6} 0.5
    """
    mantissa, _, power = text.partition("e")
    mantissa = ("0" if mantissa.startswith(".") else "") + mantissa.replace(",", "{,}")
    if not power:
        return mantissa
    return ("" if mantissa == "1" else mantissa + r"\cdot") + f"10^{{{int(power)}}}"


class _Parser:
    """Expressions by descent; each method gives the longest piece from a token on, or none."""

    def __init__(self, line: str) -> None:
        self.depth = 0
        found = _TOKEN.finditer(line)
        self.tokens = [Token(str(m.lastgroup), m[0], m.start(), m.end()) for m in found]

    def text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def glued(self, at: int) -> bool:
        """Whether a token stands at the one before it, without a space."""
        return 0 < at < len(self.tokens) and self.tokens[at - 1].end == self.tokens[at].start

    def listing(self, at: int) -> Piece | None:
        """As many numbers as names: n, T, d = 10, 6, 200."""
        names, end = [], at
        while self.kind(end) == "name" and self.text(end + 1) == ",":
            names.append(_name(self.text(end)))
            end += 2
        names.append(_name(self.text(end)))
        numbers = [self.text(k) for k in range(end + 2, end + 2 + 2 * len(names), 2)]
        if len(names) == 1 or not all(names) or self.text(end + 1) != "=":
            return None
        if not all(each.isdecimal() for each in numbers):
            return None
        tex = f"{', '.join(names)}={', '.join(numbers)}"
        return Piece(tex, end + 1 + 2 * len(names), True, True)

    def relation(self, at: int) -> Piece | None:
        """Terms with signs between them, as far as there are terms."""
        whole = self.product(at)
        while whole is not None and self.text(whole.end) in _SIGNS:
            sign = self.text(whole.end)
            right = self.product(whole.end + 1)
            hyphen = sign == "-" and self.glued(whole.end) != self.glued(whole.end + 1)
            if right is None or hyphen:
                break
            shown = _TEX.get(sign, sign)
            space = " " if shown.startswith("\\") else ""
            tex = f"{whole.tex}{shown}{space}{right.tex}"
            whole = Piece(tex, right.end, whole.letters or right.letters, True)
        return whole

    def product(self, at: int) -> Piece | None:
        """Factors side by side; a number after a letter is no factor."""
        minus = self.text(at) == "-" and self.glued(at + 1)
        whole = self.power(at + minus)
        while whole is not None:
            right = self.power(whole.end)
            article = {self.text(whole.end), self.text(at)} & _WEAK and not self.depth
            if right is None or article or self.kind(whole.end) == "number":
                break
            space = r"\," if right.tex.startswith("\\log") else " "
            whole = Piece(whole.tex + space + right.tex, right.end, True, True)
        return whole and whole._replace(tex="-" * minus + whole.tex)

    def kind(self, at: int) -> str:
        return self.tokens[at].kind if at < len(self.tokens) else ""

    def power(self, at: int) -> Piece | None:
        base = self.function(at) if self.text(at) in _FUNCTIONS else self.atom(at)
        if base is None or self.text(base.end) != "^":
            return base
        above = self.exponent(base.end + 1)
        if above is None:
            return base
        return Piece(base.tex + _raised(above.tex), above.end, True, True)

    def exponent(self, at: int) -> Piece | None:
        """Without its brackets, unless it is a pair."""
        minus = self.text(at) == "-"
        found = self.atom(at + minus)
        if found is None:
            return None
        inner = found.tex if "," in found.tex else found.tex.strip("(){}")
        return found._replace(tex="-" * minus + inner)

    def function(self, at: int) -> Piece | None:
        """A function, its power and its argument."""
        name = _TEX[self.text(at)]
        above = self.exponent(at + 2) if self.text(at + 1) == "^" else None
        end = at + 1 if above is None else above.end
        name += "" if above is None else _raised(above.tex)
        argument = self.power(end)
        if argument is None or self.text(at) == "cosine" and self.text(end) != "(":
            return Piece(name, end, self.text(at) == "cosine") if name != r"\sqrt" else None
        inner = argument.tex
        if name == r"\sqrt":
            inner = f"{{{inner.removeprefix('(').removesuffix(')')}}}"
        space = " " if inner[0].isalnum() else ""
        return Piece(name + space + inner, argument.end, True, True)

    def atom(self, at: int) -> Piece | None:
        kind, text = self.kind(at), self.text(at)
        if kind in ("number", "coefficient"):
            before = self.text(at - 1) if at else ""
            counts = len(before) > 1 and before[0].isupper() and self.depth == 0
            return None if counts else Piece(show_number(text), at + 1)
        if kind in ("name", "primed"):
            tex = _name(text)
            return Piece(tex, at + 1, True) if tex else None
        before = self.tokens[at - 1].text if self.glued(at) else "("
        if text == "|" and before[-1] not in "([|-/":
            return None
        return self.group(at) if text in _CLOSING else None

    def group(self, at: int) -> Piece | None:
        """What stands between brackets or bars, with commas."""
        opening, parts, end = self.text(at), [], at
        self.depth += 1
        while end == at or self.text(end) == ",":
            part = self.relation(end + 1)
            if part is None:
                break
            parts.append(part)
            end = part.end
        self.depth -= 1
        closing = self.text(end)
        if end == at or not closing or closing not in _CLOSING[opening]:
            return None
        inner = ", ".join(part.tex for part in parts)
        if opening == "|":
            opening = closing = r"\|" if inner.startswith(_NORMED) else "|"
        return Piece(f"{opening}{inner}{closing}", end + 1, any(p.letters for p in parts), True)


def _raised(tex: str) -> str:
    return f"^{tex}" if len(tex) == 1 else f"^{{{tex}}}"


def _name(text: str) -> str:
    """TeX of a symbol with its index; "" of a word."""
    name, _, index = text.partition("_")
    prime = "'" * name.endswith("'")
    star = "^*" * name.rstrip("'").endswith("*")
    name = name.rstrip("'*")
    if len(name) > 1 and name not in _TEX:
        return ""
    prime += "'" * index.endswith("'")
    index = index.rstrip("'").strip("{}").replace("<=", r"\le ")
    index = "t_0" if index == "t0" else index
    below = (f"_{{{index}}}" if len(index) > 1 else f"_{index}") if index else ""
    return _TEX.get(name, name) + below + star + prime
