"""What Figure 10 gives: histograms of token cosines by corpus and kind of pair, and claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .._validate import require_choice
from ..checks import CheckTable
from .cosines import Cosines, random_mean_abs
from .result import JsonResult

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class CosineResult(JsonResult):
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
    >>> result = experiments.load("fig10", "book/results")
    >>> sorted(result.cosines)
    ['NLI', 'toxic']
    """

    KIND = "token cosines"

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

    def to_dataframe(self, corpus: str) -> pandas.DataFrame:
        """One row a kind of pair, and random directions at the end.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        RangeError
            For a corpus that it does not have.
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
            for kind, each in self.cosines[require_choice("corpus", corpus, self.cosines)].items()
        }
        return pandas.DataFrame.from_dict(rows, orient="index")

    def _packed(self) -> dict:
        """The histograms as json holds them."""
        return {"cosines": _each(self.cosines, Cosines.to_json)}

    @staticmethod
    def _unpacked(stored: dict, claims: Callable) -> dict:
        """The inverse of `_packed`, substitutes as a tuple, and the claims in this dimension."""
        cosines = _each(stored["cosines"], Cosines.from_json)
        return {
            "cosines": cosines,
            "substitutes": tuple(stored["substitutes"]),
            "claims": claims(cosines, stored["dimension"]),
        }

    def __repr__(self) -> str:
        lines = [f"{self.title}: {self.verdict}"]
        lines += [f"  {words}" for words in self.substitutes]
        for corpus, kinds in self.cosines.items():
            text, sizes = kinds["text"], self.sizes[corpus]
            lines.append(
                f"  {corpus}: {sizes['texts']:,} texts, {text.pairs:,} pairs, mean cosine "
                f"{text.mean:.3f}, mean |cosine| {text.mean_abs:.3f} "
                f"(random {random_mean_abs(self.dimension):.3f}), {text.within(0.2):.0%} within 0.2"
            )
        return "\n".join(lines)


def _each(cosines: dict, change) -> dict:
    return {
        corpus: {kind: change(each) for kind, each in kinds.items()}
        for corpus, kinds in cosines.items()
    }
