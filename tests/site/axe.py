"""axe, the checker of accessibility, on a page that is open in a `browser.Page`.

Measuring contrast is slow, and a thousand words of one colour on one ground need one answer: so
each page hands axe the first word of each look, and a look seen before is not measured again.
"""

from typing import NamedTuple

from browser import DRAWN, Page

from scripts.fetch_packages import fetch

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Formulas are alike and have thousands of elements: all but a few give way to a letter.
OPENED = """
const formulas = Array.from(document.querySelectorAll("mjx-container"));
formulas.slice(%d).forEach(each => { each.replaceWith("x"); });
document.querySelectorAll("details").forEach(each => { each.open = true; });
document.querySelectorAll(".toggle-hidden").forEach(each => each.classList.remove("toggle-hidden"));
document.head.insertAdjacentHTML("beforeend", "<style>* { transition: none !important;" +
  "animation: none !important; content-visibility: visible !important }</style>");
"""
# Marks the first word of each look that `known` lacks, and returns the new looks.
LOOKS = """(function (known) {
  const fresh = [], words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const grounds = new Map([[null, ""]]), done = new Set();
  function ground(element) {
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), colour = style.backgroundColor;
      let seen = style.backgroundImage === "none" ? "" : " picture";
      if (!/, 0\\)$/.test(colour)) seen += " " + colour;
      grounds.set(element, seen + (/^rgb\\(/.test(colour) ? "" : ground(element.parentElement)));
    }
    return grounds.get(element);
  }
  document.querySelectorAll("[data-look]").forEach(each => each.removeAttribute("data-look"));
  while (words.nextNode()) {
    const word = words.currentNode, element = word.parentElement;
    if (done.has(element) || !word.data.trim() || element.closest("script, style, svg")) continue;
    done.add(element);
    if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    const style = getComputedStyle(element);
    const look = [style.color, style.fontSize, style.fontWeight, ground(element)].join(" ");
    if (known.has(look)) continue;
    known.add(look); fresh.push(look); element.setAttribute("data-look", "");
  }
  return fresh;
})(new Set(%s))"""
RUN = """axe.run(%s, {runOnly: %s, rules: %s, resultTypes: ["violations"]}).then(found =>
  found.violations.map(rule => [rule.id, rule.impact, rule.nodes.map(node =>
    node.html.slice(0, 160) + " | " + node.any.concat(node.all, node.none)[0].message)]))"""


class Fault(NamedTuple):
    """One rule that a page breaks, and where."""

    rule: str
    impact: str
    places: list[str]


def axe_source() -> str:
    """Its script, from npm's registry once, then from the folder where it is kept."""
    return (fetch("axe") / "axe.min.js").read_text(encoding="utf-8")


def prepare(page: Page, source: str, formulas: int = 3) -> None:
    """Open what opens on a click, and load axe.

    What the laboratory says of its last run is pale, no longer true, while it computes another.
    """
    page.wait_for("!document.querySelector('.lab[data-state=running]')")
    page.evaluate(source + "; 0")
    page.evaluate(OPENED % formulas + DRAWN)


def structure(page: Page) -> list[Fault]:
    """All rules but contrast. Words in code lose their colours for good: run `contrast` first."""
    page.evaluate(
        "document.querySelectorAll('pre').forEach(each => { each.textContent = each.textContent; })"
    )
    return _run(page, "document", "tag", RULES, "{'color-contrast': {enabled: false}}")


def contrast(page: Page, known: set[str], theme: str) -> list[Fault]:
    """Contrast of each look that is not in `known`, which it joins."""
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    fresh = page.evaluate(LOOKS % sorted(known))
    known.update(fresh)
    if not fresh:
        return []
    return _run(page, "{include: [['[data-look]']]}", "rule", ["color-contrast"], "{}")


def _run(page: Page, where: str, kind: str, rules: list[str], switched: str) -> list[Fault]:
    chosen = f"{{type: '{kind}', values: {rules}}}"
    return [Fault(*each) for each in page.evaluate(RUN % (where, chosen, switched))]
