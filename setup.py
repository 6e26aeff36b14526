"""Build of the package: setup.cfg says all of it but the commit, which an installation is told apart by."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


class BuildWithCommit(build_py):
    """Build of the modules, with the commit of the checkout that they come from."""

    def run(self) -> None:
        """Copy the modules, and write the commit beside them; a checkout that is installed in place reads its own."""
        super().run()
        if not self.editable_mode:
            commit = runpy.run_path(str(HERE / "protos" / "version.py"))["commit_of"](HERE)
            Path(self.build_lib, "protos", "commit").write_text(commit, encoding="ascii")


setup(cmdclass={"build_py": BuildWithCommit})
