"""The command line from file to exit status."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnbias import experiments, make_example1, make_separation_pair
from attnbias.cli import COMMANDS, build_parser, main
from attnbias.commands.base import print_json
from attnbias.geometry.diagnose import diagnose


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens.npz"
    make_example1(n=4, T=3, d=20).save(path)
    return path


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    streams = capsys.readouterr()
    return status, streams.out, streams.err


class TestDiagnose:
    def test_prints_the_report(self, tokens, capsys):
        status, out, err = run(capsys, "diagnose", tokens)
        assert (status, err) == (0, "")
        assert out == f"{diagnose(make_example1(n=4, T=3, d=20))}\n"

    def test_json(self, tokens, capsys):
        status, out, _ = run(capsys, "diagnose", tokens, "--json")
        assert status == 0
        assert json.loads(out) == diagnose(make_example1(n=4, T=3, d=20)).to_dict()

    def test_html_is_a_page_that_needs_no_network(self, tokens, tmp_path, capsys):
        page = tmp_path / "out.html"
        status, out, _ = run(capsys, "diagnose", tokens, "--html", page)
        text = page.read_text(encoding="utf-8")
        assert status == 0 and "In short" in out
        assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
        assert "Attention SVM" in text and "http" not in text and "src=" not in text
        assert sorted(os.listdir(tmp_path)) == ["out.html", "tokens.npz"]

    def test_plain_savez(self, tmp_path, capsys):
        X = np.array([[[1.0, 0.0], [0.0, 0.0]]])
        np.savez(tmp_path / "mine.npz", X=X, y=np.array([1]), u=np.array([1.0, 0.0]))
        status, out, _ = run(capsys, "diagnose", tmp_path / "mine.npz")
        assert status == 0 and out.startswith("Diagnosis of mine\n")

    def test_step_size_and_target(self, tokens, capsys):
        arguments = ("--json", "--step-size", "0.25", "--target", "1e-4")
        _, out, _ = run(capsys, "diagnose", tokens, *arguments)
        forecast = json.loads(out)["ngd_forecast"]
        assert (forecast["step_size"], forecast["target"]) == (0.25, 1e-4)

    def test_a_theory_that_does_not_apply_is_no_error(self, tmp_path, capsys):
        path = tmp_path / "tied.npz"
        make_separation_pair().with_decoder([0.0, 1.0]).save(path)
        status, out, _ = run(capsys, "diagnose", path)
        assert status == 0 and "no unique optimal token" in out


def damaged(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def pickled(path):
    path.write_bytes(pickle.dumps({"X": [1, 2]}))


def pickled_array(path):
    np.savez(path, X=np.array([{"a": 1}], dtype=object), y=np.array([1]))


def of_another_kind(path):
    np.savez(path, weights=np.zeros(3))


def with_nan(path):
    np.savez(path, X=np.full((1, 2, 2), np.nan), y=np.array([1]), u=np.zeros(2))


def of_integers(path):
    np.savez(path, X=np.ones((1, 2, 2), dtype=int), y=np.array([1]), u=np.zeros(2))


def with_label_two(path):
    np.savez(path, X=np.ones((1, 2, 2)), y=np.array([2]), u=np.zeros(2))


def without_decoder(path):
    np.savez(path, X=np.ones((1, 2, 2)), y=np.array([1]))


def empty(path):
    path.write_bytes(b"")


class TestBadInput:
    @pytest.mark.parametrize(
        ("spoil", "name"),
        [
            (damaged, "FileFormatError"),
            (empty, "FileFormatError"),
            (pickled, "FileFormatError"),
            (pickled_array, "FileFormatError"),
            (of_another_kind, "FileFormatError"),
            (with_nan, "NonFiniteError"),
            (of_integers, "DtypeError"),
            (with_label_two, "LabelError"),
            (without_decoder, "MissingDecoderError"),
        ],
    )
    def test_named_error_and_status_two(self, tokens, capsys, spoil, name):
        spoil(tokens)
        status, out, err = run(capsys, "diagnose", tokens)
        assert (status, out) == (2, "")
        assert err.startswith(f"attnbias: {name}: ")
        assert "expected" in err and "Traceback" not in err

    def test_missing_file_and_folder(self, tmp_path, capsys):
        for path, name in (
            (tmp_path / "none.npz", "MissingFileError"),
            (tmp_path, "FileAccessError"),
        ):
            status, _, err = run(capsys, "diagnose", path)
            assert status == 2 and name in err

    def test_bad_target_writes_nothing(self, tokens, tmp_path, capsys):
        page = tmp_path / "out.html"
        status, _, err = run(capsys, "diagnose", tokens, "--target", "2", "--html", page)
        assert status == 2 and "RangeError: target" in err
        assert not page.exists()

    def test_page_in_a_folder_that_is_not_there(self, tokens, tmp_path, capsys):
        status, _, err = run(capsys, "diagnose", tokens, "--html", tmp_path / "no" / "out.html")
        assert status == 2 and "out.html" in err

    @pytest.mark.parametrize("arguments", [(), ("dance",), ("diagnose",), ("--step-size",)])
    def test_usage(self, capsys, arguments):
        status, out, err = run(capsys, *arguments)
        assert (status, out) == (2, "") and err.startswith("usage: attnbias")


class TestHelp:
    def test_version(self, capsys):
        status, out, _ = run(capsys, "--version")
        assert status == 0 and out.startswith("attnbias ")

    def test_help_has_examples_and_every_command(self, capsys):
        status, out, _ = run(capsys, "--help")
        assert status == 0 and "examples:" in out
        for command in COMMANDS:
            assert command.name in out and command.help in " ".join(out.split())

    def test_as_a_process_with_a_reader_that_stops(self, tokens):
        command = [sys.executable, "-m", "attnbias.cli", "diagnose", str(tokens)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(timeout=60) == 0


class TestJson:
    def test_list(self, capsys):
        status, out, err = run(capsys, "list", "--json")
        assert (status, err) == (0, "")
        assert json.loads(out) == {name: experiments.describe(name) for name in experiments.list()}

    def test_run(self, capsys, tmp_path):
        status, out, err = run(capsys, "run", "fig8", "--out", tmp_path, "--json")
        found = json.loads(out)
        assert (status, err) == (0, "") and (tmp_path / "fig8.npz").exists()
        assert {claim["verdict"] for claim in found["claims"]} <= {"holds", "fails"}
        assert found["provenance"]["versions"]

    def test_fetch_list(self, capsys, tmp_path):
        status, out, _ = run(capsys, "fetch", "--list", "mnist", "--json", "--cache", tmp_path)
        assert status == 0 and json.loads(out)["mnist"]["cached"] == "-"

    def test_numbers_that_json_has_no_word_for(self, capsys):
        print_json({"a": [np.float64(np.inf), np.int64(3)], "b": float("nan")})
        assert json.loads(capsys.readouterr().out) == {"a": [None, 3], "b": None}


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

    @pytest.mark.parametrize(
        "name", ["fig1", "fig4", "fig6", "fig7", "fig10", "heads", "exponents", "ranks"]
    )
    def test_of_the_recorded_runs(self, capsys, tmp_path, name):
        book = Path(__file__).parent.parent / "book" / "results"
        out = tmp_path / "picture.svg"
        status, said, _ = run(capsys, "figure", name, "--results", book, "--out", out, "--json")
        assert status == 0 and out.stat().st_size > 10_000
        assert json.loads(said)["provenance"]

    def test_without_a_result(self, capsys, tmp_path):
        status, _, err = run(capsys, "figure", "fig2", "--results", tmp_path)
        assert status == 2 and "MissingFileError" in err and "fig2.npz" in err

    def test_bad_names_come_before_any_work(self, capsys, results, tmp_path):
        for out in (tmp_path / "picture.bmp", tmp_path / "no" / "picture.svg"):
            assert run(capsys, "figure", "fig2", "--results", results, "--out", out)[0] == 2
        status, _, err = run(capsys, "figure", "fig99")
        assert status == 2 and "fig10" in err


class TestCompletion:
    @pytest.fixture(scope="class")
    @classmethod
    def script(cls, tmp_path_factory):
        path = tmp_path_factory.mktemp("shell") / "attnbias"
        command = [sys.executable, "-m", "attnbias.cli", "completion", "bash"]
        path.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
        return path

    @pytest.mark.parametrize(
        "words, expected",
        [
            (["attnbias", "fi"], {"figure"}),
            (["attnbias", "run", "fig1"], {"fig1", "fig10"}),
            (["attnbias", "diagnose", "--j"], {"--json"}),
        ],
    )
    def test_bash_completes(self, script, words, expected):
        if shutil.which("bash") is None:
            pytest.skip("no bash here")
        lines = [
            f"source {script}",
            f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}",
            "$(complete -p attnbias | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
            f" attnbias {words[-1]} {words[-2]}",
            'echo "${COMPREPLY[@]}"',
        ]
        found = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True)
        assert set(found.stdout.split()) == expected

    def test_another_shell(self, capsys):
        status, _, err = run(capsys, "completion", "elvish")
        assert status == 2 and "bash" in err


def test_an_interruption_is_no_traceback(capsys, tokens, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("attnbias.cli.diagnose", stop)
    status, out, err = run(capsys, "diagnose", tokens)
    assert (status, out) == (130, "") and "stopped" in err and "Traceback" not in err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_examples_of_a_command_parse(command, capsys):
    status, out, _ = run(capsys, command.name, "--help")
    assert status == 0 and "examples:" in out
    for example in command.examples:
        words = example.split(" > ")[0].split()
        assert example in out and words[0] == command.name
        if "--help" not in words:
            assert build_parser().parse_args(words).command == command.name
