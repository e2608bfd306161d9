"""Attack the library and say what came of it; `make fuzz` runs all of it, which takes hours.

    python -m tests.fuzz                                        all three parts
    python -m tests.fuzz --parts arguments attnbias.plots       names that contain a word
    python -m tests.fuzz --kinds 8 --flips 100 --kills 5        a seeded part

`arguments` puts each kind of junk in the place of each argument of each documented name (the rest
is what the name's own examples pass), `flips` damages each kind of file in each of the ways of
damage.py, by turns, `kills` ends writers at random moments. "taken" and "same" are as good as
"refused": what may not be is a raw error (objects that are hostile on purpose are counted apart), a
hang, a change without a word, and a loss. The exit status is 1 if there is any.
"""

import argparse
import random
import sys
from collections import Counter

from .arguments import attack
from .calls import documented, record
from .flips import FORMATS, flip
from .kills import WRITERS, kill

BAD = {"raw", "hang", "CHANGED", "LOST"}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="words of the names, files or writers to attack")
    parser.add_argument(
        "--parts",
        nargs="+",
        default=["arguments", "flips", "kills"],
        choices=["arguments", "flips", "kills"],
    )
    parser.add_argument("--kinds", type=int, help="kinds of junk an argument (default: all)")
    parser.add_argument("--flips", type=int, default=1000, help="damages a kind of file")
    parser.add_argument("--kills", type=int, default=100, help="kills a writer")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    generator, total, notes = random.Random(given.seed), Counter(), []

    def chosen(name: str) -> bool:
        return not given.names or any(word in name for word in given.names)

    def tell(name: str, found: tuple[Counter, list[str]]) -> None:
        print(f"{name:60}", *(f"{what} {count}" for what, count in found[0].items()), flush=True)
        total.update(found[0])
        notes.extend(found[1])

    if "arguments" in given.parts:
        names = {name: value for name, value in documented().items() if chosen(name)}
        calls = record(names)
        for name, call in calls.items():
            tell(name, attack(call, generator, given.kinds))
        print("no example calls:", *sorted(names.keys() - calls.keys()))
    if "flips" in given.parts:
        for form in FORMATS:
            if chosen(form.name):
                tell(f"flips: {form.name}", flip(form, given.flips, generator))
    if "kills" in given.parts:
        for name in WRITERS:
            if chosen(name):
                tell(f"kills: {name}", kill(name, given.kills, generator))
    print(*notes, sep="\n")
    print("in all:", *(f"{what} {count}" for what, count in total.items()))
    return int(any(total[what] for what in BAD))


if __name__ == "__main__":
    sys.exit(main())
