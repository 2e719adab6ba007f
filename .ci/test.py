"""Run notebooks of nbs/ as nbdev_test does, two at a time, the long ones first.

The output ends with the counts: `N passed, M failed`.

usage: python .ci/test.py [--changed | --slow | name ...]
A name is a part of a notebook's path, such as objective/rates or tests; without names, all run.
--slow: the notebooks whose cells have the directive `slow`, which nbdev_test leaves out.
--changed: the notebooks that differ from the last commit (if none does, those of that commit), and
the notebooks of the library that import a module of theirs. Guides and checks take minutes.
"""

import json, re, subprocess, sys
from pathlib import Path
from forks import two_processes  # before torch, whose threads it limits
from nbdev.test import test_nb

ROOT = Path(__file__).resolve().parent.parent


def is_test(path: Path) -> bool:
    "Whether a notebook is executed as a test: copies and notebooks with `skip_exec` are not."
    is_copy = ".ipynb_checkpoints" in path.parts
    return not is_copy and "skip_exec: true" not in path.read_text(encoding="utf-8")[:1000]


def chosen(names: list[str]) -> list[Path]:
    "The notebooks whose path holds one of the names, with the long ones of nbs/tests first."
    paths = [path for path in sorted((ROOT / "nbs").rglob("*.ipynb")) if is_test(path)]
    if names:
        paths = [p for p in paths if any(name in str(p.relative_to(ROOT)) for name in names)]
    return sorted(paths, key=lambda path: path.parent.name != "tests")


def slow() -> list[Path]:
    "The notebooks that nbdev_test leaves out, since their cells have the directive `slow`."
    return [path for path in chosen([]) if re.search(r"^#\| slow", code_of(path), re.M)]


def git(*words: str) -> set[str]:
    "The lines that a git command prints."
    out = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(out.stdout.splitlines())


def changed() -> list[Path]:
    "The notebooks that differ from the last commit, or those of the last commit if none does."
    new = git("ls-files", "--others", "--exclude-standard", "nbs")
    names = new | git("diff", "--name-only", "HEAD", "--", "nbs")
    names = names or git("diff", "--name-only", "HEAD~1", "HEAD", "--", "nbs")
    return [ROOT / name for name in sorted(names) if name.endswith(".ipynb")]


def code_of(path: Path) -> str:
    "The code of a notebook."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def concerned() -> list[Path]:
    "The changed notebooks, and those of the library that import a module of theirs."
    new = [path for path in changed() if path.exists()]
    exported = [re.search(r"^#\| default_exp ([\w.]+)", code_of(path), re.M) for path in new]
    modules = "|".join(found[1] for found in exported if found)
    imports = re.compile(rf"^\s*(from|import) crate_nb\.({modules})\b", re.M)
    library = [path for path in chosen([]) if modules and "default_exp" in path.read_text()]
    using = [path for path in library if imports.search(code_of(path))]
    return [path for path in chosen([]) if path in new or path in using]


def run(path: Path) -> tuple[Path, bool, float]:
    "The notebook, whether it passed, and its seconds."
    return path, *test_nb(path)


def run_all(paths: list[Path]) -> int:
    "Run the notebooks and print one line for each; how many failed."
    failed = 0
    with two_processes("torch", "seaborn", "scipy.stats", "nbdev.test") as pool:
        for path, passed, seconds in pool.map(run, paths):
            failed += not passed
            word = "passed" if passed else "FAILED"
            print(f"{word}  {path.relative_to(ROOT)}  {seconds:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    words = sys.argv[1:]
    groups = {("--changed",): concerned, ("--slow",): slow}
    if tuple(words) not in groups and any(word.startswith("-") for word in words):
        sys.exit(__doc__)
    paths = groups.get(tuple(words), lambda: chosen(words))()
    failed = run_all(paths)
    print(f"{len(paths) - failed} passed, {failed} failed")
    sys.exit(bool(failed or not paths))
