"""Where the repository lives, for links that lead out of a page or a notebook."""

import re
import subprocess
from pathlib import Path

GITHUB_ORIGIN = re.compile(
    r"^(?:https://(?:[^@/]+@)?|git@|ssh://git@)github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$"
)
BRANCH = "main"


def ask_git(root: Path, *arguments: str) -> str:
    """What git answers, or nothing where there is no git, no repository or no answer."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def github_address(root: Path) -> str | None:
    """The address to clone from, without a name or a secret in it; None without a public GitHub."""
    match = GITHUB_ORIGIN.match(ask_git(root, "config", "--get", "remote.origin.url"))
    return f"https://github.com/{match[1]}" if match else None


def launch_ref(root: Path, version: str) -> str:
    """What a launched notebook is taken from: the release's tag on the release, else the branch."""
    tag = f"v{version}"
    return tag if tag in ask_git(root, "tag", "--points-at", "HEAD").split() else BRANCH
