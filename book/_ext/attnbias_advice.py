"""``{advice}``: the four lines of `book.advice` for someone who trains networks, in a box."""

from generated import Generated, read_first
from sphinx.application import Sphinx

from book import advice

STATE = "attnbias_advice"
WHERE = (
    "{ref}`sec-figure1-claims` and {ref}`sec-vision-curves` have every seed, "
    "{ref}`sec-optimizer-start` has the rest."
)


class Advice(Generated):
    """``{advice}``."""

    kept, source = STATE, advice.RESULTS / "fig6.json"

    def lines(self, said: list[str]) -> list[str]:
        *questions, runs = said
        listed = [f"* {line}" for line in questions]
        head = ["````{admonition} If you train networks: four lines", ":class: tip", ""]
        return [*head, *listed, "", runs, WHERE, "````"]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("advice", Advice)
    read_first(app, STATE, advice.lines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
