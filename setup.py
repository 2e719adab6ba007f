"""What pyproject.toml cannot say: a wheel carries what MANIFEST.in lists, in `crate_nb/project`.

A wheel has no clone beside it, and `crate-nb copy` makes one from there. An editable install lies in
its clone and carries nothing.
"""

from pathlib import Path
from setuptools import setup
from setuptools.command.build_py import build_py


def carried() -> list[Path]:
    "The files that the lines `include` and `graft` of MANIFEST.in name."
    words = [line.split() for line in Path("MANIFEST.in").read_text().splitlines()]
    named = [Path(name) for verb, name in filter(lambda w: len(w) == 2, words)]
    files = [f for path in named for f in (path.rglob("*") if path.is_dir() else [path])]
    return [f for f in files if f.is_file() and not f.name.startswith(".")]


class WithProject(build_py):
    "Copy the modules, and beside them the files that are carried."

    def run(self):
        super().run()
        if not self.editable_mode:
            for path in carried():
                target = Path(self.build_lib, "crate_nb", "project", path)
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))


setup(cmdclass={"build_py": WithProject})
