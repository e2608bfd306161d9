"""The laboratory's modules in the order in which a page loads them, and pictures of its set-ups."""

from tools.browser import open_browser
from tools.files import ROOT, SITE

FOLDER = ROOT / "book/_static/laboratory"
MARKUP = ROOT / "book/widgets/laboratory.html"
PAGES = "book/laboratory"  # of the site: a small page for each set-up, and its picture
PICTURE = (1200, 630)  # pixels, as chats show them
MODULES = (  # each may use what those before it define
    *(f"run/{name}" for name in ("svm", "engine", "naive", "lock", "border")),
    *(f"setup/{name}" for name in ("presets", "setups", "python", "race")),
    *(f"show/{name}" for name in ("svg", "legend", "plane", "compass", "curves")),
    *(f"show/{name}" for name in ("numbers", "words", "challenge")),
    *(f"act/{name}" for name in ("clock", "drag", "tabs", "save", "page")),
)
RACE = (  # those that draw the race of the first page
    *("run/svm", "run/engine", "setup/presets", "setup/setups", "setup/race"),
    *("show/svg", "show/legend", "show/curves", "act/clock"),
)
AT_THE_END = """address => {
  const time = document.getElementById("lab-time");
  time.value = time.max;
  time.dispatchEvent(new Event("input"));
  return Laboratory.asPicture(address);
}"""


def draw_presets(home: str, site=SITE) -> None:
    """Draw each set-up beside its small page, in a book at `home`, or at no known address."""
    width, height = PICTURE
    with open_browser() as browser:
        tab = browser.new_page(viewport={"width": width, "height": height})
        shown = browser.new_page(viewport={"width": width, "height": height})
        for page in sorted((site / PAGES).glob("*.html")):
            tab.goto((site / f"{PAGES}.html").as_uri() + f"#{page.stem}")
            tab.reload()
            tab.wait_for_function("document.getElementById('laboratory').dataset.state === 'done'")
            address = f"{home.rstrip('/')}/{PAGES}/{page.name}" if home else ""
            drawing = tab.evaluate(AT_THE_END, address)
            shown.set_content(f"<style>body {{ margin: 0 }}</style>{drawing}")
            shown.screenshot(path=page.with_suffix(".png"))
