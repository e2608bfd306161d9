"""The program attnbias as the tests of the core and of the rooms call it."""

from attnbias import experiments
from attnbias.cli import build_parser, main
from attnbias.cli.run import _setting_words

FIGURES = [f"fig{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 10)]


def run(capsys, *arguments) -> tuple[int, str, str]:
    """The exit status of a command, and what it prints on both streams."""
    status = main([str(argument) for argument in arguments])
    streams = capsys.readouterr()
    return status, streams.out, streams.err


def require_explained(capsys, name: str) -> None:
    """Each setting of an experiment is an option with a line of its own."""
    words, known = _setting_words(name), experiments.parameters(name)
    lines = [words.get(key, "") for key in known if key not in ("out", "progress")]
    assert "" not in lines and len(set(lines)) == len(lines)
    status, out, _ = run(capsys, "run", name, "--help")
    assert status == 0 and "default: None" not in out and "`" not in out


def require_parsed(capsys, command) -> None:
    """The help of a command has its examples, and they are right."""
    status, out, _ = run(capsys, command.name, "--help")
    assert status == 0 and "examples:" in out
    for example in command.examples:
        words = example.split(" > ")[0].split()
        assert example in out and words[0] == command.name
        if "--help" not in words:
            assert build_parser().parse_args(words).command == command.name
