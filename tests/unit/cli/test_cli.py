"""The command line from file to exit status."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from commands import FIGURES, require_explained, require_parsed, run

from attnbias import Check, CheckTable, experiments, make_example1, make_separation_pair
from attnbias._files import new_result
from attnbias._records import provenance
from attnbias.cli import COMMANDS, main
from attnbias.cli.base import as_json
from attnbias.cli.run import _shown
from attnbias.cli.sweep import GRID
from attnbias.diagnosis.diagnose import diagnose


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens.npz"
    make_example1(n=4, T=3, d=20).save(path)
    return path


class TestDiagnose:
    def test_prints_the_report_or_its_json(self, tokens, capsys):
        report = diagnose(make_example1(n=4, T=3, d=20))
        assert run(capsys, "diagnose", tokens) == (0, f"{report}\n", "")
        status, out, _ = run(capsys, "diagnose", tokens, "--json")
        assert status == 0 and json.loads(out) == report.to_dict()

    def test_html_is_a_page_that_needs_no_network(self, tokens, tmp_path, capsys):
        page = tmp_path / "out.html"
        status, out, _ = run(capsys, "diagnose", tokens, "--html", page)
        text = page.read_text(encoding="utf-8")
        assert status == 0 and "In short" in out
        assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
        assert "Attention SVM" in text and "http" not in text and "src=" not in text
        assert sorted(os.listdir(tmp_path)) == ["out.html", "tokens.npz"]

    def test_step_size_target_and_runs(self, tokens, capsys):
        arguments = ("--json", "--step-size", "0.25", "--target", "1e-4")
        _, out, _ = run(capsys, "diagnose", tokens, *arguments, "--steps", "50", "--starts", "1")
        forecast = json.loads(out)["ngd_forecast"]
        assert (forecast["step_size"], forecast["target"]) == (0.25, 1e-4)
        assert [made["steps"] for made in forecast["runs"]] == [50, 50]
        _, out, _ = run(capsys, "diagnose", tokens, "--json", "--steps", "0")
        assert json.loads(out)["ngd_forecast"]["runs"] == []

    def test_a_theory_that_does_not_apply_is_no_error(self, tmp_path, capsys):
        path = tmp_path / "tied.npz"
        make_separation_pair().with_decoder([0.0, 1.0]).save(path)
        status, out, _ = run(capsys, "diagnose", path)
        assert status == 0 and "no unique optimal token" in out


def saved(path, X=1.0, y=1, **others):
    np.savez(path, X=np.full((1, 2, 2), X), y=np.array([y]), **others)


SPOILT = {  # how to spoil a file of tokens, and what is said of it
    "cut": (
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        "FileFormatError",
        "cut short",
    ),
    "empty": (lambda path: path.write_bytes(b""), "FileFormatError", "empty file"),
    "pickled": (
        lambda path: path.write_bytes(pickle.dumps({"X": [1, 2]})),
        "FileFormatError",
        "another kind",
    ),
    "text": (lambda path: path.write_text("X, y, u"), "FileFormatError", "another kind"),
    "pickled array": (
        lambda path: np.savez(path, X=np.array([{"a": 1}], dtype=object), y=[1]),
        "FileFormatError",
        "plain arrays",
    ),
    "one array": (
        lambda path: np.save(path.open("wb"), np.zeros(3)),
        "FileFormatError",
        "npy file",
    ),
    "of torch": (
        lambda path: torch.save({"X": torch.zeros(2)}, path),
        "FileFormatError",
        "torch.save",
    ),
    "other arrays": (lambda path: np.savez(path, weights=np.zeros(3)), "FileFormatError", "X"),
    "NaN": (lambda path: saved(path, np.nan, u=np.zeros(2)), "NonFiniteError", "X"),
    "integers": (lambda path: saved(path, 1, u=np.zeros(2)), "DtypeError", "X"),
    "label 2": (lambda path: saved(path, y=2, u=np.zeros(2)), "LabelError", "y"),
    "no decoder": (saved, "MissingDecoderError", "u=u"),
    "gone": (lambda path: path.unlink(), "MissingFileError", "none there"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "FileAccessError", "a file"),
}


class TestBadInput:
    @pytest.mark.parametrize("case", SPOILT)
    def test_named_error_and_status_two(self, tokens, capsys, case):
        spoil, name, words = SPOILT[case]
        spoil(tokens)
        status, out, err = run(capsys, "diagnose", tokens)
        assert (status, out) == (2, "") and err.startswith(f"attnbias: {name}: ")
        assert "expected" in err and words in err and "Traceback" not in err
        assert name != "FileFormatError" or "numpy.savez" in err
        assert case == "pickled array" or "allow_pickle" not in err

    def test_bad_target_and_bad_folder_write_nothing(self, tokens, tmp_path, capsys):
        page, lost = tmp_path / "out.html", tmp_path / "no" / "out.html"
        status, _, err = run(capsys, "diagnose", tokens, "--target", "2", "--html", page)
        assert status == 2 and "RangeError: target" in err and not page.exists()
        status, _, err = run(capsys, "diagnose", tokens, "--html", lost)
        assert status == 2 and "out.html" in err

    @pytest.mark.parametrize("arguments", [(), ("dance",), ("diagnose",), ("--step-size",)])
    def test_usage(self, capsys, arguments):
        status, out, err = run(capsys, *arguments)
        assert (status, out) == (2, "") and err.startswith("usage: attnbias")


class TestHelp:
    def test_help_has_an_example_and_every_command(self, capsys):
        assert run(capsys, "--version")[1].startswith("attnbias ")
        status, out, _ = run(capsys, "--help")
        assert status == 0 and "attnbias diagnose tokens.npz" in out
        for command in COMMANDS:
            assert command.name in out and command.help in " ".join(out.split())

    @pytest.mark.slow
    def test_as_a_process_with_a_reader_that_stops(self, tokens):
        command = [sys.executable, "-m", "attnbias", "diagnose", str(tokens)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(timeout=60) == 0

    def test_the_package_itself_is_the_command(self):
        command = [sys.executable, "-m", "attnbias", "--version"]
        assert subprocess.check_output(command, text=True).startswith("attnbias ")

    @pytest.mark.parametrize("name", FIGURES)
    def test_each_option_of_an_experiment_has_a_line_of_its_own(self, capsys, name):
        require_explained(capsys, name)


LIGHT = """
import contextlib, io, sys
from attnbias.cli import main
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
    status = main(sys.argv[1:])
print(status, "usage: attnbias" in out.getvalue() or "0." in out.getvalue())
print([name for name in ("torch", "numpy", "pandas", "numba") if name in sys.modules])
"""


@pytest.mark.parametrize(
    "words, status",
    [
        ("--help", 0),
        ("--version", 0),
        ("", 2),
        ("dance", 2),
        ("list --unknown", 2),
        *((f"{name} --help", 0) for name in ("diagnose", "list", "figure", "sweep")),
    ],
)
def test_help_version_and_usage_answer_without_torch(words, status):
    """So they take a tenth of a second, where torch's import alone takes two."""
    command = [sys.executable, "-c", LIGHT, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{status} True", "[]"]


class TestJson:
    def test_list_and_run(self, capsys, tmp_path):
        titles = json.loads(run(capsys, "list", "--json")[1])
        assert titles == {name: experiments.describe(name) for name in experiments.list()}
        status, out, err = run(capsys, "run", "fig8", "--out", tmp_path, "--json")
        found = json.loads(out)
        assert (status, err) == (0, "") and (tmp_path / "fig8.npz").exists()
        assert {claim["verdict"] for claim in found["claims"]} <= {"holds", "fails"}
        assert found["provenance"]["versions"]

    def test_numbers_that_json_has_no_word_for(self, capsys):
        found = json.loads(as_json({"a": [np.float64(np.inf), np.int64(3)], "b": float("nan")}))
        assert found == {"a": [None, 3], "b": None}


def test_claims_are_wrapped_to_a_terminal_and_a_table_in_a_pipe(monkeypatch):
    claims = CheckTable([Check("a statement of many words " * 5, 1.0, 2.0, source="Lemma 1")])
    assert _shown(claims) == repr(claims)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    lines = _shown(claims).splitlines()
    assert max(map(len, lines)) <= 60 and " ".join(map(str.strip, lines)) == str(claims[0])
    monkeypatch.setenv("COLUMNS", "400")
    assert _shown(claims) == repr(claims)


class TestFigure:
    @pytest.fixture(scope="class")
    @classmethod
    def results(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("results")
        assert main(["run", "fig2", "--seeds", "1", "--steps", "1000", "--out", str(folder)]) == 0
        return folder

    @pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
    def test_of_a_run(self, capsys, results, tmp_path, suffix):
        out = tmp_path / f"picture{suffix}"
        status, said, err = run(capsys, "figure", "fig2", "--results", results, "--out", out)
        assert (status, said, err) == (0, f"{out}\n", "")
        head = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix]
        assert out.read_bytes().startswith(head)

    def test_without_a_result_it_names_the_run(self, capsys, tmp_path):
        status, _, err = run(capsys, "figure", "fig2", "--results", tmp_path)
        assert status == 2 and "MissingFileError" in err and "fig2.npz" in err
        assert f"attnbias run fig2 --out {tmp_path}" in err

    def test_names_that_cannot_be_written_or_read(self, capsys, results, tmp_path, monkeypatch):
        for out in (tmp_path / "picture.bmp", tmp_path / "no" / "picture.svg"):
            assert run(capsys, "figure", "fig2", "--results", results, "--out", out)[0] == 2
        status, _, err = run(capsys, "figure", "fig99")
        assert status == 2 and "fig10" in err
        monkeypatch.chdir(tmp_path)  # a long path would be cut in the message
        (tmp_path / "taken.svg").mkdir()
        status, _, err = run(capsys, "figure", "fig2", "--results", results, "--out", "taken.svg")
        assert status == 2 and "FileAccessError" in err and "taken.svg" in err
        assert os.listdir(tmp_path) == ["taken.svg"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_examples_of_a_command_parse(command, capsys):
    require_parsed(capsys, command)


class TestStumbles:
    """What a newcomer fell over; each is kept from coming back."""

    def test_names_and_titles_stand_in_columns(self, capsys):
        rows = run(capsys, "list")[1].splitlines()
        assert [row.split("  ")[0] for row in rows] == experiments.list()
        titles = {row.index(experiments.describe(row.split()[0])) for row in rows}
        assert len(titles) == 1

    @pytest.mark.parametrize("words", ["list extra", "run fig2 --sed 1", "diagnose a.npz --htm x"])
    def test_an_unknown_option_is_met_by_the_commands_own_usage(self, capsys, words):
        status, _, err = run(capsys, *words.split(), "--unknown")
        command = "run fig2" if words.startswith("run") else words.split()[0]
        assert status == 2 and err.startswith(f"usage: attnbias {command} ") and "--unknown" in err

    def test_a_folder_without_rights_is_named_before_the_run(self, capsys, tmp_path, monkeypatch):
        def refuse(**_):
            raise PermissionError("no rights")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        monkeypatch.setattr("attnbias.experiments.run", lambda *_, **__: pytest.fail("it ran"))
        status, _, err = run(capsys, "run", "fig2", "--out", tmp_path)
        assert status == 2 and "FileAccessError" in err and "no rights" in err
        for name in ("fig2.npz", "fig6.json", "fig10.json"):  # where one is, none is tried
            (tmp_path / name).touch()
            status, _, err = run(capsys, "run", name.partition(".")[0], "--out", tmp_path)
            assert status == 2 and "one that is there" in err

    def test_one_process_at_a_time_makes_a_result(self, tmp_path, capsys, monkeypatch):
        def meanwhile(*_, **__):
            monkeypatch.setattr("attnbias.experiments.run", lambda *_, **__: pytest.fail("it ran"))
            for words in (("run", "fig2"), ("merge", "fig6", tmp_path)):
                name = new_result(tmp_path, "fig6.json") if "merge" in words else nullcontext()
                with name:
                    status, _, err = run(capsys, *words, "--out", tmp_path)
                assert status == 2 and "another process works at" in err
            raise KeyboardInterrupt

        monkeypatch.setattr("attnbias.experiments.run", meanwhile)
        assert run(capsys, "run", "fig2", "--out", tmp_path)[0] == 130
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize(
        ("words", "name"),
        [
            ("--step-sizes 0.1", "step_sizes"),
            ("--step-sizes [1]", "step_sizes"),
            ("--optimizers 1", "optimizers"),
            ("--optimizers [[1]]", "optimizers"),
            ("--seeds " + "[" * 5000, "seeds"),
        ],
        ids=range(5),
    )
    def test_settings_of_a_wrong_kind_are_named(self, capsys, tmp_path, words, name):
        chosen = ("--source", "bundled", "--size", "small", "--out", tmp_path, "--steps", 1)
        status, _, err = run(capsys, "run", "fig6", *chosen, *words.split())
        assert status == 2 and f"Error: {name}" in err and "Traceback" not in err

    def test_a_cut_file_of_an_unfinished_run_is_named(self, capsys, tmp_path):
        words = "--source bundled --size small --steps 1 --seeds 1 --eval-examples 4 --batch-size 2"
        lists = ("--optimizers", '["SGD"]', "--step-sizes", '{"SGD": 0.1}')
        job = hashlib.sha256(b"SGD-0.1-0").hexdigest()[:12]
        (tmp_path / "fig6.part").mkdir()
        (tmp_path / "fig6.part" / f"{job}.json").write_text('{"kind": "training')
        status, _, err = run(capsys, "run", "fig6", *words.split(), *lists, "--out", tmp_path)
        assert status == 2 and "FileFormatError" in err and f"{job}.json" in err

    @pytest.mark.parametrize(
        ("words", "kept"),
        [
            ("run fig4 --token hf_x --steps 5", "attnbias run fig4 --token '***' --steps 5"),
            ("--hf-token=a --seeds 2", "attnbias '--hf-token=***' --seeds 2"),
            ("HF_TOKEN=a hub.password=b", "attnbias 'HF_TOKEN=***' 'hub.password=***'"),
            (
                "--api-key -a --apikey b --key c",
                "attnbias --api-key '***' --apikey '***' --key '***'",
            ),
            ("--dask tcp://me:pw@host:1", "attnbias --dask 'tcp://***@host:1'"),
            ("hf_abcdefghijklmnopqrstuv", "attnbias '***'"),
            ("--token --seeds 3", None),
            ("--tokens 5 --tokenizer bert --author me --out=keys/key.npz", None),
            (
                "run /home/me/grid.toml --out=/tmp/runs/rec --source C:\\data\\x",
                "attnbias run grid.toml --out=rec --source x",
            ),
            ("--dask tcp://host:1 --out a/b --at / --address=http://a/b/c", None),
        ],
        ids=range(10),
    )
    @pytest.mark.parametrize("program", ["bin/attnbias", "lib/attnbias/__main__.py"])
    def test_secrets_of_a_command_line_are_not_kept(self, monkeypatch, program, words, kept):
        """`python -m attnbias` is attnbias."""
        monkeypatch.setattr("sys.argv", [f"/usr/{program}", *words.split()])
        assert provenance()["command"] == (kept or f"attnbias {words}")

    def test_the_grid_in_the_help_of_sweep_can_be_run(self, capsys, tmp_path):
        path = tmp_path / "grid.toml"
        path.write_text(GRID.split("\n\n", 1)[1], encoding="utf-8")
        status, out, _ = run(capsys, "sweep", path, "--dry-run")
        assert status == 0 and out.startswith("96 runs on 48 data sets")

    @pytest.mark.parametrize(
        ("command", "goes_on"), [("diagnose tokens.npz", False), ("run fig2", True)]
    )
    def test_only_what_goes_on_says_so(self, capsys, tmp_path, monkeypatch, command, goes_on):
        def stop(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("attnbias.data.Dataset.load", stop)
        monkeypatch.setattr("attnbias.experiments.run", stop)
        status, _, err = run(capsys, *command.split())
        assert status == 130 and ("goes on" in err) is goes_on and "Traceback" not in err
