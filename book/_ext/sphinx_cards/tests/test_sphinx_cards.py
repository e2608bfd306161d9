"""The cards stand alone: from a wheel, with nothing of the book that they come from."""

import json
import re
from types import SimpleNamespace

import pytest
import sphinx_cards as cards
from alone import build_alone

BODY = """<section id="top">
<span id="chap-top"></span><h1>Top<a class="headerlink" href="#top">#</a></h1>
<p>First words.</p><p>More.</p>
<div class="proof theorem admonition" id="t-1"><div class="inner">A<div>B</div></div></div>
<div class="math" id="equation-e">\\[x\\]</div>
<figure class="align-default" id="fig"><img src="x.png"></figure>
<div id="other">no</div>
<dl><dt class="sig" id="lib.f">f(x)</dt>
<dd><p>Does it.</p><p>Long.</p></dd></dl>
</section>"""


def test_cards_are_cut_out_of_a_page():
    found = cards.cut(BODY)
    assert found["top"] == found["chap-top"] == "<p><strong>Top</strong></p><p>First words.</p>"
    assert found["t-1"].count("<div") == found["t-1"].count("</div") == 3
    assert found["equation-e"] == '<div class="math" id="equation-e">\\[x\\]</div>'
    assert found["fig"].endswith("</figure>")
    assert found["lib.f"] == "<p><code>f(x)</code></p><p>Does it.</p>"
    assert "other" not in found
    # what is too long for a glance has none
    long = BODY.replace("A<div>", "A" * cards.LONGEST + "<div>")
    assert set(found) - set(cards.cut(long)) == {"t-1"}


def test_cards_of_a_page_are_added_to(tmp_path):
    app = SimpleNamespace(outdir=tmp_path)
    cards.write_cards(app, "book/a", {"one": "1", "two": "</script>"})
    cards.write_cards(app, "book/a", {"one": "new"})
    text = (tmp_path / "_cards/book/a.js").read_text(encoding="utf8")
    assert text == 'sphinxCards("book/a", {"one": "new", "two": "</script>"})\n'


CONF = """extensions = ["myst_parser", "sphinx_cards"]
myst_enable_extensions = ["dollarmath"]
cards_entries = "glosary"
"""
INDEX = """# Book

A {term}`margin`, and [what follows](#guide).

```{toctree}
part/index
```

```{glossary}
margin
  The distance to the *nearest* point.
```
"""
GUIDE = """(guide)=
# Guide

First words of it.

$$x = 1$$ (eq-x)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a book, with an address of each form, and the warnings."""
    home = tmp_path_factory.mktemp("book")
    pages = {"conf.py": CONF, "index.md": INDEX, "part/index.md": GUIDE}
    return home, build_alone(cards.__file__, home, pages, "html", "dirhtml", "text")


@pytest.mark.parametrize("builder", ["html", "dirhtml"])
def test_each_page_has_its_cards_in_a_file(built, builder):
    site = built[0] / builder
    texts = {name: (site / f"_cards/{name}.js").read_text("utf8") for name in ("index", "part")}
    assert all(text.startswith(f'sphinxCards("{name}", {{') for name, text in texts.items())
    index, guide = (json.loads(text.partition(", ")[2][:-2]) for text in texts.values())
    assert index["term-margin"] == (
        "<dt>margin</dt><dd><p>The distance to the <em>nearest</em> point.</p></dd>"
    )
    assert guide["guide"] == "<p><strong>Guide</strong></p><p>First words of it.</p>"
    assert guide["equation-eq-x"].startswith("<div") and "x = 1" in guide["equation-eq-x"]
    page = (site / "index.html").read_text(encoding="utf8")
    assert "_static/cards.css" in page and (site / "_static/cards.css").is_file()
    (tag,) = re.findall("<script [^>]*_static/cards.js[^>]*>", page)
    assert 'data-touch="[data-entries]"' in tag and "defer" in tag
    assert (site / "_static/cards.js").is_file()


def test_other_formats_have_none_and_a_wrong_setting_is_named(built):
    assert not (built[0] / "text/_cards").exists()
    said = "conf.py: cards_entries: expected the name of a page of this book"
    assert said in built[1] and "got 'glosary'. Mend or drop it." in built[1]
