"""Draw the first set-up of the laboratory into its markup, the picture of a page without scripts.

Run it after a change of the drawing or of that set-up: ``python -m scripts.draw_laboratory``.
"""

from __future__ import annotations

from tools.browser import open_browser
from tools.laboratory import FOLDER, MARKUP, MODULES

DRAWN = """(() => {
  const root = document.getElementById("laboratory").cloneNode(true);
  root.querySelector("[data-lab=numbers]").replaceChildren();
  delete root.dataset.state;
  for (const each of root.querySelectorAll("g.drag"))  // nothing moves without scripts
    for (const name of each.getAttributeNames())
      if (!["class", "transform"].includes(name)) each.removeAttribute(name);
  return root.outerHTML;
})()"""


def drawn(markup: str) -> str:
    """The markup with the pictures and words of the first set-up."""
    with open_browser() as browser:
        tab = browser.new_page()
        tab.set_content(f"<!doctype html>{markup}")
        for name in MODULES:
            tab.add_script_tag(path=FOLDER / f"{name}.js")
        tab.wait_for_function("document.getElementById('laboratory').dataset.state === 'done'")
        return tab.evaluate(DRAWN) + "\n"


if __name__ == "__main__":
    MARKUP.write_text(drawn(MARKUP.read_text(encoding="utf8")), encoding="utf8")
