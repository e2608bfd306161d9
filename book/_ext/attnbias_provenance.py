"""Uses of the paper's words that are no badge: claims of the ledger, and checks that print [a]."""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx_provenance import KEY, read_words

from book.claims import SECTIONS

SOURCE = Path(__file__).with_name("provenance.toml")


def claim_keys() -> list[str]:
    """The keys of the ledger's claims on the paper whose provenance is a."""
    return [
        claim.key for claims in SECTIONS.values() for claim in claims if claim.provenance == "a"
    ]


def name_uses(app: Sphinx, config: Config) -> None:
    """A claim has its key's entry; an entry that is no key is the source that a check prints."""
    printed = [key for key in read_words(SOURCE) if not KEY.fullmatch(key)]
    config.provenance_elsewhere = dict.fromkeys(printed, ["printed checks"])
    config.provenance_elsewhere |= dict.fromkeys(claim_keys(), ["book/ledger"])


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx_provenance")
    app.connect("config-inited", name_uses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
