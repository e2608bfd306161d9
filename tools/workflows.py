"""Look through the workflows: actions pinned, few rights, and nothing published by a mere clone.

python -m tools.workflows
"""

import re
import sys

import yaml

from tools.files import ROOT

FOLDER = ROOT / ".github/workflows"
# A tag can be moved to other code and a commit cannot; the version behind it is for people.
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
USED = re.compile(r"^\s*(?:- )?uses:\s*(.*?)\s*$", re.MULTILINE)
SWITCH = "vars.PUBLISH == 'true'"  # a variable that a repository's owner sets, and a fork lacks


def writes(rights) -> bool:
    """Whether these `permissions:` let a job change or publish anything."""
    return rights == "write-all" or (isinstance(rights, dict) and "write" in rights.values())


def faults(text: str) -> list[str]:
    """What is wrong with one workflow, a line each."""
    workflow = yaml.safe_load(text)
    jobs = workflow["jobs"]
    found = [
        f"uses: {each} has no full commit and `# vX.Y.Z`"
        for each in USED.findall(text)
        if not PINNED.fullmatch(each)
    ]
    if workflow.get("permissions") not in ({}, {"contents": "read"}):
        found.append("permissions: at the top are not `contents: read` or none")
    if any(writes(job.get("permissions")) for job in jobs.values()):
        found += [
            f"{name}: publishes where {SWITCH} is not asked"
            for name, job in jobs.items()
            if job.get("if") != SWITCH
        ]
    return found


def main() -> int:
    """Print what is wrong with each workflow; the exit status says whether anything is."""
    paths = sorted(FOLDER.glob("*.yml"))
    found = [f"{each.name}: {what}" for each in paths for what in faults(each.read_text("utf8"))]
    print("\n".join(found) or f"{len(paths)} workflows: pinned, few rights, inert in a clone")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
