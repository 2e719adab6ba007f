"""Run notebooks of nbs/ as nbdev_test does, two at a time, the long ones first.

The output ends with the counts: `N passed, M failed`.

usage: python .ci/test.py [name ...]
A name is a part of a notebook's path, such as 01_rates or checks; without names, all run.
"""

import os, sys

# Two notebooks run at a time on two cores; more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from nbdev.test import test_nb

ROOT = Path(__file__).resolve().parent.parent


def is_test(path: Path) -> bool:
    "Whether a notebook is executed as a test: copies and notebooks with `skip_exec` are not."
    is_copy = ".ipynb_checkpoints" in path.parts
    return not is_copy and "skip_exec: true" not in path.read_text()[:1000]


def chosen(names: list[str]) -> list[Path]:
    "The notebooks whose path holds one of the names, with the long ones of nbs/checks first."
    paths = [path for path in sorted((ROOT / "nbs").rglob("*.ipynb")) if is_test(path)]
    if names:
        paths = [p for p in paths if any(name in str(p.relative_to(ROOT)) for name in names)]
    return sorted(paths, key=lambda path: path.parent.name != "checks")


def run(path: Path) -> tuple[Path, bool, float]:
    "The notebook, whether it passed, and its seconds."
    return path, *test_nb(path)


def run_all(paths: list[Path]) -> int:
    "Run the notebooks and print one line for each; how many failed."
    failed = 0
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        for path, passed, seconds in pool.map(run, paths):
            failed += not passed
            word = "passed" if passed else "FAILED"
            print(f"{word}  {path.relative_to(ROOT)}  {seconds:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    paths = chosen(sys.argv[1:])
    failed = run_all(paths)
    print(f"{len(paths) - failed} passed, {failed} failed")
    sys.exit(bool(failed or not paths))
