"""A workflow is pinned, has few rights, and publishes nothing from a mere clone."""

import pytest

from tools import workflows
from tools.workflows import FOLDER, SWITCH, faults

PAGES, RELEASE = ((FOLDER / f"{name}.yml").read_text("utf8") for name in ("pages", "release"))


def test_the_workflows_are_sound(capsys):
    assert workflows.main() == 0
    assert "3 workflows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("@11d5960a326750d5838078e36cf38b85af677262", "@v4", "uses: actions/checkout@v4"),
        ("@11d5960a326750d5838078e36cf38b85af677262", "@11d5960", "uses: actions/checkout@11d5960"),
        ("  # v4.4.0", "", "uses: actions/checkout@11d5960a326750d5838078e36cf38b85af677262 has"),
        ("permissions:\n  contents: read\n", "", "permissions: at the top"),
        ("contents: read", "contents: write", "permissions: at the top"),
        ("id-token: write", "id-token: none", None),
        (f"  build:\n    if: {SWITCH}\n", "  build:\n", "build: publishes"),
        (SWITCH, "vars.PUBLISH != ''", "build: publishes"),
        (f"    if: {SWITCH}\n    needs", "    needs", "publishes where"),
    ],
)
@pytest.mark.parametrize("text", [PAGES, RELEASE], ids=["pages", "release"])
def test_a_fault_is_named(text, old, new, named):
    assert faults(text) == [] and old in text
    found = faults(text.replace(old, new))
    assert any(named in each for each in found) if named else found == []


def test_a_workflow_that_publishes_nothing_needs_no_switch():
    text = "permissions: {}\njobs: {a: {steps: []}, b: {permissions: RIGHTS, steps: []}}"
    assert faults(text.replace("RIGHTS", "{contents: read}")) == []
    for rights in ("write-all", "{pages: write}"):
        assert len(faults(text.replace("RIGHTS", rights))) == 2


def test_only_the_job_that_publishes_may_and_it_runs_no_code_of_ours():
    for text, name in ((PAGES, "deploy"), (RELEASE, "publish")):
        jobs = workflows.yaml.safe_load(text)["jobs"]
        assert [job for job in jobs if workflows.writes(jobs[job].get("permissions"))] == [name]
        assert all("run" not in step for step in jobs[name]["steps"])
