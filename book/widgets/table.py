"""A table in which a reader finds a row and sorts by a column."""

import html

import pandas as pd

from attnbias.errors import RangeError

# Once a page: a word filters the rows, a name of a column sorts them, twice the other way.
SCRIPT = """
<script>
for (const box of document.querySelectorAll(".sortable")) {
  const body = box.querySelector("tbody"), rows = [...body.rows];
  const value = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent;
  const order = (a, b) => (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
  box.querySelector("input").addEventListener("input", (event) => {
    const word = event.target.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(word);
  });
  box.querySelectorAll("th button").forEach((button, at) =>
    button.addEventListener("click", () => {
      const head = button.parentElement, up = head.ariaSort !== "ascending";
      for (const other of box.querySelectorAll("thead th")) other.ariaSort = null;
      head.ariaSort = up ? "ascending" : "descending";
      rows.sort((a, b) => (up ? 1 : -1) * order(value(a, at), value(b, at)));
      body.append(...rows);
    }));
}
</script>
"""
STYLE = """
<style>
.sortable { max-height: 32rem; overflow: auto; }
.sortable table { font-size: 0.85em; font-variant-numeric: tabular-nums; margin: 0; }
.sortable thead th { position: sticky; top: 0; background: inherit; }
.sortable th button { all: unset; cursor: pointer; font-weight: bold; }
.sortable th button:focus-visible { outline: 2px solid currentColor; }
.sortable th[aria-sort="ascending"] button::after { content: " ▲"; }
.sortable th[aria-sort="descending"] button::after { content: " ▼"; }
.sortable input { margin-bottom: 0.5rem; font-size: 1rem; max-width: 100%; }
@media print { .sortable { max-height: none; } .sortable input { display: none; } }
</style>
"""


def sortable_table(frame: pd.DataFrame, *, label: str) -> str:
    """A table that a word filters and a click on a column's name sorts.

    Parameters
    ----------
    frame : pandas.DataFrame
        Its index is the first column. Numbers are shown with two digits, None as a dash.
    label : str
        What the field for the word is for.

    Returns
    -------
    str
        For `IPython.display.HTML`; without scripts it is a plain table.

    Raises
    ------
    RangeError
        For a table without rows.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"max": [0.98, None]}, ["lion", "sgd"])
    >>> "lion</th><td" in sortable_table(rows, label="Find an optimizer")
    True
    """
    if frame.empty:
        remedy = "give it rows to find"
        raise RangeError("frame", expected="a table with rows", got="none", remedy=remedy)
    label = html.escape(label)
    names = [frame.index.name or "name", *map(str, frame.columns)]
    head = "".join(f"<th><button>{html.escape(name)}</button></th>" for name in names)
    body = "".join(map(_row, frame.itertuples()))
    field = f'<input type="search" placeholder="{label}" aria-label="{label}">'
    # the theme gives tables of this class its colours, by day and by night
    table = f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    inside = f'tabindex="0" role="region" aria-label="{label}"'
    return f'<div {inside} class="sortable">{field}{table}</div>{STYLE}{SCRIPT}'


def _row(row) -> str:
    name, *values = row
    return f'<tr><th scope="row">{html.escape(str(name))}</th>{"".join(map(_cell, values))}</tr>'


def _cell(value) -> str:
    if value is None or value != value:
        return '<td data-value="-9">–</td>'
    if isinstance(value, float):
        return f'<td data-value="{value:.6f}">{round(value, 2) + 0.0:.2f}</td>'  # no -0.00
    return f"<td>{html.escape(str(value))}</td>"
