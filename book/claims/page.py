"""The ledger as a file of verdicts and as a page of the book."""

import json
from pathlib import Path

from tqdm import tqdm

from attnbias._records import provenance

from .answers import Answer, render_answers
from .claim import CONTRADICTED, ONLY_WHEN, Claim, Finding
from .key import used
from .places import section_of

_HEAD = "| claim (its place) | verdict (the section that runs it) | measured |\n|---|---|---|\n"
_INTRO = r"""(chap-ledger)=
# The ledger

Every claim that we found in the text of the paper, which chapter runs it, and what the runs said;
and, as a list of its own, the statements that this book adds.
`make ledger` writes this page from the checks of the library.
No verdict on it was typed, and `make test` computes them all again and fails when one changes.

```{squares}
```

* *Holds*: every check of the claim applies and holds, on every instance. A bound is checked at
  every recorded step; an order from step 100 on, by how values move from decade to decade; an end
  at the last record; and a claim on the runs as a whole by their count or their median.
* *Holds sharper*: so does a stronger statement, which stands in the chapter.
* *Holds only when ...*: the claim as worded fails in a run, and holds under a restriction that
  its own words do not contain.
* *Contradicted*: runs in the paper's own setting, or in one that its words cover, say the
  opposite, on every seed and by more than the seeds differ.
* *Undecided*: nothing here decides it, and the row says what would. A threshold of ours or a
  smaller network can leave a claim undecided; neither contradicts one.

Two more words stand where "holds" would say too much: *vacuous here*, for a bound that is true
and says nothing at the sizes run, and *true by construction*, for an identity that no run could
violate.

A verdict that cannot fail is worth nothing.
So each claim is also judged on faked runs of which it is false (an error that stops falling, say),
and must reject them; and again where only one run is faked, a window in mid-run, every third
record or one, and where values fall once and then stall.
A finite run tells an order from its neighbours only so far.
Where runs follow the rate itself, the checks tell it from rates that differ by 0.03 in the exponent
of $t$ or by 0.3 in that of $\log t$: GD's $1/(\log t)^2$, by $|W|^2(1 - \cos)$, from
$(\log t)^{-1.75}$ and $(\log t)^{-2.25}$.
Where a claim names a slower rate than the runs have, nothing between the two is told apart:
a $1 - \cos$ of order $t^{-0.8}$ would pass for $(\log t)^2/t$ over the decades run, and $t^{-0.7}$
does not.
A check whose hypotheses a run does not meet is *silent*, and a claim with a silent check is
undecided.

The badge behind a source is the provenance of the form that was checked
({ref}`sec-provenance`); an a leads to the words of the paper that carry the claim.
A verdict on b to d is one on that form.
Each verdict leads to the section whose code makes the run.
"""


def find_all(sections: dict[str, tuple[Claim, ...]], evidence, progress: bool = False) -> dict:
    """Judge every claim: {section: [entry, ...]}, entries as plain dicts for json.

    Examples
    --------
    >>> claim = Claim("a", "Two is less than three.", "Eq. 0", "chap-tokens", "c",
    ...               lambda evidence: Finding("undecided", "2 <= 3"))
    >>> found = find_all({"Numbers": (claim,)}, None)
    >>> found["Numbers"][0]["verdict"]
    'undecided'
    """
    found: dict[str, list[dict]] = {section: [] for section in sections}
    pairs = [(section, claim) for section, claims in sections.items() for claim in claims]
    for section, claim in tqdm(pairs, disable=not progress, unit="claim"):
        found[section].append(_entry(claim, claim.judge(evidence)))
    return found


def _entry(claim: Claim, finding: Finding) -> dict:
    fields = ("key", "text", "source", "chapter", "provenance")
    entry = {name: getattr(claim, name) for name in fields}
    entry["section"] = section_of(claim.chapter, claim.calls)
    entry |= {"verdict": finding.verdict, "number": finding.number, "note": finding.note}
    return entry | {"refuted_by": [refutation.words for refutation in claim.refuted_by]}


def verdicts(sections: dict[str, list[dict]]) -> dict[str, str]:
    """The verdict of each claim by its key.

    Examples
    --------
    >>> claim = Claim("a", "Two is less than three.", "Eq. 0", "chap-tokens", "c",
    ...               lambda evidence: Finding("undecided", "2 <= 3"))
    >>> found = find_all({"Numbers": (claim,)}, None)
    >>> verdicts(found)
    {'a': 'undecided'}
    """
    return {entry["key"]: entry["verdict"] for rows in sections.values() for entry in rows}


def render(sections: dict[str, list[dict]], made: dict) -> str:
    """The page's Markdown from the entries and the provenance of their runs.

    Examples
    --------
    >>> claim = Claim("a", "Two is less than three.", "Eq. 0", "chap-tokens", "c",
    ...               lambda evidence: Finding("undecided", "2 <= 3"))
    >>> found = find_all({"Numbers": (claim,)}, None)
    >>> "1 claims: *undecided* 1" in render(found, {})
    True
    """
    papers = {title: rows for title, rows in sections.items() if not _ours(rows)}
    ours = {title: rows for title, rows in sections.items() if _ours(rows)}
    parts = [_INTRO, _key([entry for rows in sections.values() for entry in rows])]
    for heading, part in (("The paper's claims", papers), ("What this book adds", ours)):
        if part:
            parts.append(
                f"## {heading}\n\n" + _summary([e for rows in part.values() for e in rows])
            )
        for title, rows in part.items():
            parts.append(f"### {title}\n\n" + _HEAD + "".join(_row(entry) for entry in rows))
    parts.append(_made(made))
    return "\n".join(parts)


def _key(rows: list[dict]) -> str:
    lines = "".join(f"| {phrase} | {meaning} |\n" for phrase, meaning in used(rows).items())
    return "## What the rows measure\n\n| words of a row | meaning |\n|---|---|\n" + lines


def _ours(rows: list[dict]) -> bool:
    return bool(rows) and all(entry["source"] == "ours" for entry in rows)


def _summary(entries: list[dict]) -> str:
    counts: dict[str, int] = {}
    for entry in entries:
        counts[_kind(entry["verdict"])] = counts.get(_kind(entry["verdict"]), 0) + 1
    lines = ", ".join(f"*{kind}* {count}" for kind, count in counts.items())
    text = f"{len(entries)} claims: {lines}.\n"
    for kind, title in (
        (CONTRADICTED, "What our runs contradict"),
        (ONLY_WHEN, "What needs a restriction"),
    ):
        chosen = [entry for entry in entries if _kind(entry["verdict"]) == kind]
        if chosen:
            text += f"\n**{title}.**\n\n" + "".join(_item(entry) for entry in chosen)
    return text


def _kind(verdict: str) -> str:
    return ONLY_WHEN if verdict.startswith(ONLY_WHEN) else verdict


def _item(entry: dict) -> str:
    setting = f" Setting: {entry['note']}." if entry["note"] else ""
    return (
        f"* {entry['text']} ({entry['source']}): **{entry['verdict']}** "
        f"({entry['number']}).{setting} See {{ref}}`{entry['section']}`.\n"
    )


def _row(entry: dict) -> str:
    measured = entry["number"]
    measured += ("; " if measured and entry["note"] else "") + entry["note"]
    letter = entry["provenance"]
    badge = f"a:{entry['key']}" if letter == "a" else letter
    cells = (
        f"{entry['text']} ([{entry['source']}]{{#claim-{entry['key']}}} {{prov}}`{badge}`)",
        f"**{entry['verdict']}** ({{ref}}`{entry['section']}`)",
        measured,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _made(made: dict) -> str:
    return (
        "## How the page was made\n\n"
        "`make ledger`: "
        + "; ".join(f"{key} {value}" for key, value in made.items())
        + ".\nThe entries as data: `book/results/ledger.json`.\n"
    )


def write(
    folder: Path, sections: dict[str, list[dict]], made: dict, answers: tuple[Answer, ...] = ()
) -> None:
    """Write results/ledger.json, ledger.md and answers.md under the book's folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder, {}, {})
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['answers.md', 'ledger.md', 'results']
    """
    results = Path(folder) / "results"
    results.mkdir(exist_ok=True)
    text = json.dumps({"made": made, "sections": sections}, indent=1, ensure_ascii=False)
    (results / "ledger.json").write_text(text + "\n")
    (Path(folder) / "ledger.md").write_text(render(sections, made))
    (Path(folder) / "answers.md").write_text(render_answers(answers, sections))


def made_now() -> dict:
    """Provenance of a ledger made now, as short strings.

    Examples
    --------
    >>> sorted(made_now())
    ['command', 'commit', 'date', 'device', 'versions']
    """
    found = provenance("cpu") | {"command": "python -m book.claims --write book"}
    return {key: _words(value) for key, value in found.items()}


def _words(value) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return str(value)
