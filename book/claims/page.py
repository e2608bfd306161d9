"""The ledger as a file of verdicts and as a page of the book."""

import json
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from attnbias._records import provenance

from .answers import Answer, render_answers
from .claim import ONLY_WHEN, Claim, Finding
from .key import QUANTITIES, anchor, used
from .places import section_of
from .rows import row

_INTRO = r"""(chap-ledger)=
# The ledger

The claims that we found in the paper's text, and what this book adds.
No verdict was typed: the tests judge all claims anew by the library's checks.

```{squares}
```

* *Holds*: every check of the claim holds, on every instance.
* *Holds sharper*: so does a stronger statement of the section.
* *Holds only when ...*: it fails in a run, and holds under a restriction that it does not state.
* *Contradicted*: runs that its words cover say the opposite on every seed, by more than the seeds
  differ.
* *Undecided*: nothing here decides it. A threshold of ours, a smaller network, or a check whose
  hypotheses a run does not meet contradicts nothing.
* *True by construction*: no run could violate it.

## How to read a row

A row has the two sides, rounded, of the check with the least room, or of the one that fails.
Its badge is the provenance of the form that was checked ({ref}`sec-provenance`).
*Refutations* are faked runs of which the claim is false, also where only one run, a window or a
record is faked: the same checks reject it.
They tell a rate that runs follow from others by 0.03 in the exponent of $t$, by 0.3 in that of
$\log t$; where a claim names a slower rate, nothing between the two is told apart.

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
            listed = "".join(map(row, rows))
            parts.append(f"### {title}\n\n:::{{container}} rows\n{listed}:::\n")
    parts.append(_made(made))
    return "\n".join(parts)


def _key(rows: list[dict]) -> str:
    lines = [f"{formula}\n: {meaning}." for formula, meaning in QUANTITIES.items()]
    for setting in used(rows):
        lines.append(f'<span id="{anchor(setting)}">{setting.name}</span>\n: {setting.meaning}.')
    return ":::{container} named\n" + "\n\n".join(lines) + "\n:::\n"


def _ours(rows: list[dict]) -> bool:
    return bool(rows) and all(entry["source"] == "ours" for entry in rows)


def _summary(entries: list[dict]) -> str:
    counts = Counter(_kind(entry["verdict"]) for entry in entries)
    lines = ", ".join(f"*{kind}* {count}" for kind, count in counts.items())
    return f"{len(entries)} claims: {lines}.\n"


def _kind(verdict: str) -> str:
    return ONLY_WHEN if verdict.startswith(ONLY_WHEN) else verdict


def _made(made: dict) -> str:
    told = "; ".join(f"{key} {value}" for key, value in made.items() if key != "command")
    return f"## Made\n\n`make ledger`: {told}.\n"


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
    write_pages(folder, answers)


def write_pages(folder: Path, answers: tuple[Answer, ...] = ()) -> None:
    """Write ledger.md and answers.md from results/ledger.json, and judge nothing."""
    stored = json.loads((Path(folder) / "results" / "ledger.json").read_text(encoding="utf8"))
    (Path(folder) / "ledger.md").write_text(render(stored["sections"], stored["made"]))
    (Path(folder) / "answers.md").write_text(render_answers(answers, stored["sections"]))


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
