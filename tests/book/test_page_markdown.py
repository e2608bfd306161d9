"""Pages as Markdown: each piece of a page's HTML by the text that stands for it."""

import attnbias_markdown
import pytest
from attnbias_markdown import SHORT, index, markdown

MATH = '<span class="math notranslate nohighlight">\\(W_{mm}\\)</span>'
PROOF = """<div class="proof theorem admonition" id="rate"><p class="admonition-title">
<span class="caption-number">Theorem 1 </span> (Rate)</p><section class="theorem-content">
<p>For all <a class="symbol" href="n.html#w" data-entries="w">MATH</a>:</p>
<div class="math notranslate nohighlight" id="equation-a">
<span class="eqno">(1.1)<a class="headerlink" href="#equation-a">#</a></span>\\[a &lt; b\\]</div>
</section></div>""".replace("MATH", MATH)
CELL = """<div class="cell"><details class="hide"><summary><p class="collapsed">Show</p></summary>
<div class="highlight-ipython3"><div class="highlight"><pre><span></span><span class="n">x</span>
<span class="k">if</span> y</pre></div></div></details><div class="cell_output"><div class="output
stream highlight-myst-ansi"><div class="highlight"><pre><span></span>OUT
</pre></div></div></div></div>"""
BET = """<fieldset class="predict"><legend><span class="title">Your bet</span> How far?</legend>
<label><input type="radio"><span>by 2</span></label><div><p>The run gives <strong>3</strong>.</p>
</div></fieldset><form><label>Step size</label></form>"""
TABLE = """<table><thead><tr><td></td><th>a|b</th></tr></thead><tbody><tr><th>1</th>
<td>0.5</td></tr></tbody></table>"""
LIST = "<ol><li><p>One</p><ul><li><p>two</p></li></ul></li><li><p>three</p></li></ol>"
FIGURE = """<figure><img alt="Curves" src="../_images/a.svg"/><figcaption><p><span>Fig. 1 </span>
<span>Runs.</span></p></figcaption></figure>"""
LINKS = '<p>See <a href="../x.html#y">X</a>, <a href="#z">here</a>.</p>'
HAND = "(Here the page has a picture to move by hand.)"
BADGE = """<p>As <a class="prov prov-a" href="p.html"><span aria-hidden="true">a</span>
<span class="visually-hidden">provenance</span></a> says <em>so</em>.</p>"""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"<p>To {MATH},\n<code>a b</code></p>", "To $W_{mm}$, `a b`"),
        (
            PROOF,
            "> **Theorem 1 (Rate)**\n>\n> For all $W_{mm}$:\n>\n> $$\n> a < b\n> $$ (1.1)",
        ),
        (CELL, "```python\nx\nif y\n```\n\n```text\nOUT\n```"),
        (BET, "**Your bet How far?**\n\n* by 2\n\nThe run gives **3**."),
        (TABLE, "|  | a\\|b |\n|---|---|\n| 1 | 0.5 |"),
        (LIST, "1. One\n\n   * two\n2. three"),
        (FIGURE, "![Curves](../_images/a.svg)\n\nFig. 1 Runs."),
        (BADGE, "As [a] says *so*."),
        (LINKS, "See [X](../x.html.md), here."),
        ("<!-- no --><figure class='slider'><p>0</p></figure>", HAND),
    ],
    ids=["line", "box", "cell", "bet", "table", "list", "figure", "badge", "links", "slider"],
)
def test_a_piece_of_a_page_is_told_in_markdown(body, text):
    told = markdown(f"<h1>A page<a class='headerlink' href='#'>#</a></h1>{body}", "page.html")
    title, legend, rest = told.split("\n\n", 2)
    assert title == "# A page" and "<page.html>" in legend
    assert rest == f"{text}\n"


def test_links_of_a_published_page_have_its_address():
    body = '<h1>A</h1><p><a href="../x.html#y">X</a> <a href="https://a.b/c.html">c</a></p>'
    told = markdown(body, "https://example.org/book/paper/page.html")
    assert "[X](https://example.org/book/x.html.md) [c](https://a.b/c.html)" in told


def test_a_long_output_is_cut_and_long_code_is_not():
    lines = "\n".join(f"line {k}" for k in range(SHORT + 5))
    told = markdown(f"<h1>A</h1>{CELL.replace('OUT', lines)}", "a.html")
    assert f"line {SHORT - 1}\n... 5 more lines\n```" in told and f"line {SHORT}\n" not in told
    code = f'<h1>A</h1><div class="highlight-python"><pre>{lines}</pre></div>'
    assert f"line {SHORT + 4}\n```" in markdown(code, "a.html")


def test_the_index_has_every_page_with_its_first_sentences(tmp_path, monkeypatch):
    monkeypatch.setattr(attnbias_markdown, "toc_parts", lambda toc: [("", ["a"]), ("P", ["b/c"])])
    for name in ("a", "b/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = markdown(
            f"<h1>{name}</h1><ul><li>no</li></ul><p>It <a href='i'>is</a>\n{name}.</p>", "x.html"
        )
        (tmp_path / f"{name}.html.md").write_text(text, encoding="utf8")
    head, page = index(tmp_path, "https://e.org/").split("\n\n## P\n\n")
    assert head.endswith("> It is a.\n\n- [a](https://e.org/a.html.md)")
    assert page == "- [b/c](https://e.org/b/c.html.md): It is b/c.\n"
    (tmp_path / "b/c.html.md").unlink()
    with pytest.raises(FileNotFoundError):
        index(tmp_path, "")
