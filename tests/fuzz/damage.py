"""Ways to damage a file's bytes: what disks, copies and hands do; of an npz, its members too.

Each takes the bytes, those of another file of the same kind, and a generator.
"""

import io
import random
import warnings
import zipfile
from collections.abc import Callable

PAGE = 4096
Damage = Callable[[bytes, bytes, random.Random], bytes]


def flipped(content: bytes, _: bytes, generator: random.Random) -> bytes:
    """One to 64 bits."""
    damaged = bytearray(content)
    for _bit in range(generator.choice([1, 1, 2, 8, 64])):
        place = generator.randrange(8 * len(content))
        damaged[place // 8] ^= 1 << place % 8
    return bytes(damaged)


def cut(content: bytes, _: bytes, generator: random.Random) -> bytes:
    return content[: generator.randrange(len(content))]


def _span(content: bytes, generator: random.Random, longest: int = 64) -> slice:
    start = generator.randrange(len(content))
    return slice(start, start + generator.randint(1, longest))


def swapped(content: bytes, _: bytes, generator: random.Random) -> bytes:
    """Two blocks of one size."""
    size = min(generator.choice([16, 512, PAGE]), len(content) // 2)
    one, other = sorted(generator.sample(range(len(content) // size), 2))
    blocks = [content[k : k + size] for k in range(0, len(content), size)]
    blocks[one], blocks[other] = blocks[other], blocks[one]
    return b"".join(blocks)


def zeroed(content: bytes, _: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(content)) // PAGE * PAGE
    page = content[start : start + PAGE]
    return content[:start] + bytes(len(page)) + content[start + PAGE :]


def appended(content: bytes, other: bytes, generator: random.Random) -> bytes:
    return content + generator.choice([b"\0", b"\n", generator.randbytes(32), other])


def inserted(content: bytes, _: bytes, generator: random.Random) -> bytes:
    place = generator.randrange(len(content))
    return content[:place] + generator.randbytes(generator.randint(1, 16)) + content[place:]


def deleted(content: bytes, _: bytes, generator: random.Random) -> bytes:
    span = _span(content, generator)
    return content[: span.start] + content[span.stop :]


def edited(content: bytes, _: bytes, generator: random.Random) -> bytes:
    span = _span(content, generator, 16)
    new = generator.randbytes(len(content[span]))
    return content[: span.start] + new + content[span.stop :]


def digits(content: bytes, _: bytes, generator: random.Random) -> bytes:
    """One digit of a text becomes another."""
    places = [k for k, byte in enumerate(content) if 48 <= byte < 58]
    damaged = bytearray(content)
    damaged[generator.choice(places)] = generator.randrange(48, 58)
    return bytes(damaged)


def spliced(content: bytes, other: bytes, generator: random.Random) -> bytes:
    """The beginning of one file and the end of another."""
    place = generator.randrange(min(len(content), len(other)))
    return content[:place] + other[place:]


WHOLE: dict[str, Damage] = {
    change.__name__: change
    for change in (
        flipped,
        cut,
        swapped,
        zeroed,
        appended,
        inserted,
        deleted,
        edited,
        digits,
        spliced,
    )
}


def _members(content: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _packed(members: list[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")  # two of one name
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def _of_members(change) -> Damage:
    """A damage of the list of members, one of which is chosen, with right checksums."""

    def damage(content: bytes, other: bytes, generator: random.Random) -> bytes:
        members = _members(content)
        return _packed(change(members, generator.randrange(len(members)), other, generator))

    return damage


def _exchanged(members, at, other, generator):
    name, data = members[at]
    return [*members[:at], (name, dict(_members(other)).get(name, data)), *members[at + 1 :]]


def _renamed(members, at, other, generator):
    name = generator.choice([members[at - 1][0], "x.npy", "attnbias_json.npy", "X", "../X.npy"])
    return [*members[:at], (name, members[at][1]), *members[at + 1 :]]


def _changed(members, at, other, generator):
    name, data = members[at]
    change = generator.choice([flipped, cut, edited, digits, deleted])
    return [*members[:at], (name, change(data, b"", generator)), *members[at + 1 :]]


MEMBERS: dict[str, Damage] = {
    "members exchanged": _of_members(_exchanged),
    "members dropped": _of_members(lambda members, at, *_: members[:at] + members[at + 1 :]),
    "members doubled": _of_members(lambda members, at, *_: [*members, members[at]]),
    "members renamed": _of_members(_renamed),
    "members reordered": _of_members(lambda members, at, *_: members[at:] + members[:at]),
    "members changed": _of_members(_changed),
}


def damages(content: bytes) -> dict[str, Damage]:
    """Those that a file of this content can suffer."""
    return WHOLE | MEMBERS if content.startswith(b"PK") else WHOLE
