"""What Figure 10 gives: histograms of token cosines by corpus and kind of pair, and claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .._files import FORMAT, read_text, write_text
from ..checks import CheckTable
from ..errors import FileFormatError
from .cosines import Cosines
from .directions import random_mean_abs

KIND = "token cosines"
STORED = ("name", "title", "sizes", "dimension", "common", "settings", "substitutes", "provenance")


@dataclass(frozen=True, eq=False)
class CosineResult:
    """Cosines of token embeddings on several corpora.

    Attributes
    ----------
    name, title : str
    cosines : dict of str to dict of str to Cosines
        By corpus and kind of pair, see `attnbias.experiments.fig10.KINDS`.
    sizes : dict of str to dict of str to int
        By corpus: texts, tokens, and the different pieces among these.
    dimension : int
        Of the embeddings.
    common : float
        Norm of the mean of all embeddings' directions; its square is the mean cosine of two
        word pieces of the vocabulary.
    settings : dict
        The arguments of the run.
    substitutes : tuple of str
        What stands in for the paper's data and model, in words; empty if nothing.
    claims : CheckTable
    provenance : dict

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.load("fig10")
    >>> sorted(result.cosines)
    ['NLI', 'toxic']
    """

    name: str
    title: str
    cosines: dict[str, dict[str, Cosines]]
    sizes: dict[str, dict[str, int]]
    dimension: int
    common: float
    settings: dict
    substitutes: tuple[str, ...]
    claims: CheckTable
    provenance: dict = field(default_factory=dict)

    def table(self, corpus: str):
        """One row a kind of pair, and random directions at the end.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas

        rows = {
            kind: {
                "pairs": each.pairs,
                "mean": each.mean,
                "mean |cosine|": each.mean_abs,
                "deviation": each.deviation,
                "within 0.1": each.within(0.1),
                "within 0.2": each.within(0.2),
                "99% below": each.quantile(0.99),
            }
            for kind, each in self.cosines[corpus].items()
        }
        return pandas.DataFrame.from_dict(rows, orient="index")

    def save(self, path) -> Path:
        """Write all but the claims as json, atomically; a reader judges anew.

        Raises
        ------
        MissingFileError, FileAccessError
        """
        stored = {key: getattr(self, key) for key in STORED}
        stored |= {"kind": KIND, "format": FORMAT}
        stored["cosines"] = {
            corpus: {kind: each.to_json() for kind, each in kinds.items()}
            for corpus, kinds in self.cosines.items()
        }
        return write_text(path, json.dumps(stored, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path, claims: Callable) -> CosineResult:
        """Read a file written by `save`; `claims` makes the CheckTable from cosines and dimension.

        Raises
        ------
        MissingFileError, FileFormatError
        """
        text = read_text(path)
        try:
            stored = json.loads(text)
            if stored["kind"] != KIND or stored["format"] != FORMAT:
                raise ValueError(f"kind {stored['kind']!r}, format {stored['format']!r}")
            cosines = {
                corpus: {kind: Cosines.from_json(each) for kind, each in kinds.items()}
                for corpus, kinds in stored["cosines"].items()
            }
            fields = {key: stored[key] for key in STORED}
            fields["substitutes"] = tuple(fields["substitutes"])
            return cls(cosines=cosines, claims=claims(cosines, stored["dimension"]), **fields)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(
                str(path),
                expected=f"the result of {KIND}, format {FORMAT}",
                got=f"{type(error).__name__}: {error}"[:200],
                remedy="run the experiment again and save",
            ) from None

    def __repr__(self) -> str:
        held = sum(check.holds for check in self.claims)
        lines = [f"{self.title}: {held} of {len(self.claims)} claims hold"]
        lines += [f"  {words}" for words in self.substitutes]
        for corpus, kinds in self.cosines.items():
            text, sizes = kinds["text"], self.sizes[corpus]
            lines.append(
                f"  {corpus}: {sizes['texts']:,} texts, {text.pairs:,} pairs, mean cosine "
                f"{text.mean:.3f}, mean |cosine| {text.mean_abs:.3f} "
                f"(random {random_mean_abs(self.dimension):.3f}), {text.within(0.2):.0%} within 0.2"
            )
        return "\n".join(lines)
