"""The proofs in proofs/ leave nothing out and assume nothing but the axioms of Coq's reals."""

import os
import re
import shutil
import subprocess
import tomllib

import pytest
from proved_instances import WRONG, exactly, gaussian, nearly_orthogonal, repeated, tampered
from rocq_source import without_comments

from attnbias import InfeasibleError, solve_w_svm
from attnbias.geometry.rocq import text as rocq
from attnbias.geometry.rocq.proof import prove_infeasible
from attnbias.geometry.tokens import known
from tools.chapters import ROOT

PROOFS = ROOT / "proofs"
FILES = sorted(PROOFS.glob("*.v"))
# What the standard library's real numbers are built on, and nothing else.
ALLOWED = {
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
# Ways to leave a proof out, to assume a statement, and to switch a check off.
FORBIDDEN = re.compile(
    r"\b(Admitted|admit|give_up|Abort|Axioms?|Parameters?|Conjectures?|Primitive|bypass_check"
    r"|(?:Guard|Positivity|Universe) Checking|type_in_type|Type In Type|Declare ML Module|Load"
    r"|(?:vm_|native_)?cast_no_check|exact_no_check|change_no_check|convert_concl_no_check)\b"
)
# Outside a section each of these is an axiom under another name.
LOCAL = re.compile(r"^\s*(Variables?|Hypothesis|Hypotheses|Context)\b")
needs_coqc = pytest.mark.skipif(
    shutil.which("coqc") is None, reason="coqc is not installed (Debian's package coq)"
)


def faults(text: str) -> list[str]:
    """What a file says that a proof must not say."""
    found, opened = [], []
    for number, line in enumerate(without_comments(text).splitlines(), start=1):
        found += [f"{number}: {match[0]}" for match in FORBIDDEN.finditer(line)]
        opened += re.findall(r"^\s*Section (\w+)", line)
        opened = [name for name in opened if not re.match(rf"\s*End {name}\b", line)]
        if not opened and LOCAL.match(line):
            found.append(f"{number}: {line.strip()} outside a section")
    return found


def assumptions(output: str) -> list[set[str]]:
    """The names that each `Print Assumptions` printed, in their order."""
    blocks: list[set[str]] = []
    for line in output.splitlines():
        if line.startswith("== "):
            continue
        if line in ("Axioms:", "Section Variables:", "Closed under the global context"):
            blocks.append(set())
        elif match := re.match(r"([A-Za-z_][\w.']*)(?: :|$)", line):
            blocks[-1].add(match[1])
    return blocks


def asked(text: str) -> list[str]:
    return re.findall(r"^Print Assumptions ([\w.']+)\.", without_comments(text), re.MULTILINE)


def test_every_file_is_built() -> None:
    listed = [line for line in (PROOFS / "_CoqProject").read_text().splitlines() if ".v" in line]
    assert sorted(listed) == [path.name for path in FILES]
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_is_left_out(path) -> None:
    assert faults(path.read_text()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_theorem_prints_its_assumptions(path) -> None:
    text = path.read_text()
    theorems = re.findall(r"^Theorem ([\w']+)", without_comments(text), re.MULTILINE)
    assert set(theorems) <= set(asked(text))
    assert bool(asked(text)) == (path.name != "Spec.v")  # which states, and proves nothing


@pytest.mark.parametrize(
    "broken",
    [
        "Theorem t : False. Admitted.",
        "Proof. admit. Qed.",
        "Axiom a : False.",
        "Parameter x : R.",
        "Conjecture c : False.",
        "Unset Guard Checking.",
        "Unset Universe Checking.",
        "#[bypass_check(guard)] Fixpoint f (n : nat) : nat := f n.",
        "Abort.",
        "Hypothesis h : False.",
        "Section S.\nEnd S.\nVariable x : False.",
        "Module M.\nVariable x : False.\nEnd M.",
        "Module M.\nEnd M.\nVariable x : False.",
        "Context (h : False).",
        'Definition s := "(*". Axiom a : False. (* "*) ',
    ],
)
def test_a_gap_is_refused(broken: str) -> None:
    assert faults(broken)


@pytest.mark.parametrize(
    "fine",
    [
        "(* an Axiom that is (* not *) admit *) Lemma l : True. Proof. exact I. Qed.",
        "Section S.\nHypothesis h : False.\nEnd S.",
        "Lemma admitted_not : True.",
        'Definition s := "Axiom".',
    ],
)
def test_what_is_no_gap_passes(fine: str) -> None:
    assert faults(fine) == []


def test_the_book_says_each_axiom_in_words() -> None:
    table = tomllib.loads((ROOT / "book/_ext/checked.toml").read_text(encoding="utf8"))
    assert set(table["axioms"]) == ALLOWED


def test_printed_assumptions_are_read() -> None:
    output = (
        "== A.v\nAxioms:\nClassicalDedekindReals.sig_not_dec : forall P : Prop, {~ ~ P} + {~ P}\n"
        "FunctionalExtensionality.functional_extensionality_dep\n  : forall (A : Type),\n"
        "    f = g\n"
        "Closed under the global context\nAxioms:\ncheat : False\n"
    )
    first, second, third = assumptions(output)
    assert first <= ALLOWED and len(first) == 2 and second == set()
    assert third - ALLOWED == {"cheat"}


def build(folder, *args: str, coqc: str | None = None) -> subprocess.CompletedProcess:
    path = os.environ["PATH"] if coqc is None else coqc
    return subprocess.run(
        ["bash", str(folder / "build.sh"), *args],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path},
        timeout=1800,
    )


def test_a_missing_program_is_named(tmp_path) -> None:
    """With a PATH that has no coqc the script names the package, and installs nothing."""
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    done = build(PROOFS, coqc=str(tmp_path))
    assert done.returncode == 1 and "apt-get install coq" in done.stderr


@pytest.mark.slow
@needs_coqc
def test_the_proofs_compile_and_assume_only_the_reals(tmp_path) -> None:
    for path in (*FILES, PROOFS / "_CoqProject", PROOFS / "build.sh"):
        shutil.copy(path, tmp_path)
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    printed = assumptions(done.stdout)
    copies = [tmp_path / path.name for path in FILES]
    assert len(printed) == sum(len(asked(copy.read_text())) for copy in copies)
    assert set().union(*printed) <= ALLOWED
    assert_tokens_are_proved_and_wrong_solutions_refused(tmp_path)


def assert_tokens_are_proved_and_wrong_solutions_refused(folder) -> None:
    """What `attnbias prove` writes compiles; of each wrong solution Rocq refuses the same file."""

    def compiled(text: str) -> bool:
        (folder / "These.v").write_text(text)
        call = ["coqc", "-Q", ".", "attnbias", "These.v"]
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
        assert done.returncode or set().union(*assumptions(done.stdout)) <= ALLOWED
        return done.returncode == 0

    data = gaussian()
    right = solve_w_svm(data).prove(folder / "right.v", data).path.read_text()
    assert compiled(right)
    found, end = exactly(data), right.partition("\n(** W_mm solves")[0]
    assert compiled(end)  # up to the lemma `checked`, which is what each of these must fail at
    for name in WRONG:
        wrong = tampered(found, name)
        text = end.replace(rocq.head(found.data), rocq.head(wrong.data))
        for part in ("weights", "numerators", "denominator"):
            old, new = (rocq.listed(getattr(each, part), hex) for each in (found, wrong))
            text = text.replace(f"{old}%Z", f"{new}%Z")
        assert text != end and not compiled(text), name
    low, places = rocq.twelve_digits(found)
    larger = right.replace(rocq.decimal(low, places), rocq.decimal(low + 1, places))
    larger = larger.replace(f"    {low} (Z", f"    {low + 1} (Z")
    assert larger.count(str(low + 1)) == larger.count(rocq.decimal(low + 1, places)) == 2
    assert not compiled(larger)
    near = nearly_orthogonal()
    rate = solve_w_svm(near).prove(folder / "near.v", near).path.read_text()
    assert compiled(rate)
    cost, path = re.search(r"(\d+) (\d+) = true", rate).group(2, 1)
    for number, less in ((cost, int(cost) - 2000), (path, int(path) - 500), ("1.0", "9.0")):
        wrong = re.sub(rf"\b{re.escape(number)}\b", str(less), rate)
        assert wrong != rate and not compiled(wrong), number
    twice = repeated()
    with pytest.raises(InfeasibleError) as caught:
        solve_w_svm(twice)
    rows, certificate = known(twice).rows(), caught.value.certificate
    none = prove_infeasible(rows, certificate, folder / "none.v", twice).path.read_text()
    assert compiled(none)
    assert not compiled(re.sub(r"(Definition weights [^=]*:= )\[\[\w+", r"\1[[0x7", none))


@pytest.mark.slow
@needs_coqc
@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (
            "Axiom cheat : False.\nTheorem t : 1 = 2.\nProof. destruct cheat. Qed.\n"
            "Print Assumptions t.\n",
            "assumes",
        ),
        ("Theorem t : 1 = 2.\nProof. reflexivity. Qed.\n", "fails"),
    ],
)
def test_a_broken_proof_is_found_out(tmp_path, text: str, verdict: str) -> None:
    shutil.copy(PROOFS / "build.sh", tmp_path)
    (tmp_path / "_CoqProject").write_text("-Q . attnbias\nBroken.v\n")
    (tmp_path / "Broken.v").write_text(text)
    done = build(tmp_path, "--check")
    if verdict == "fails":
        assert done.returncode != 0
    else:
        assert done.returncode == 0 and assumptions(done.stdout) == [{"cheat"}]
        assert "attnbias.Broken.cheat" in done.stderr  # coqchk names it too
