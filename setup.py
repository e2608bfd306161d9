"""What pyproject.toml cannot say: the wheel carries the proofs, which stand beside the package."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithProofs(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:  # which finds them where they are
            target = Path(self.build_lib, "attnbias", "proofs")
            self.mkpath(str(target))
            for path in sorted(Path("proofs").glob("*.v")):
                self.copy_file(str(path), str(target / path.name))


setup(cmdclass={"build_py": BuildWithProofs})
