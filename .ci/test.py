"""Run some notebooks of nbs/ as nbdev_test does, two at a time, the long ones first, and count: `N passed, M failed` ends the output.

usage: python .ci/test.py [name ...]    names are parts of notebook paths, such as 01_rates or checks; all by default
"""

import os, sys

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # two notebooks at a time on two cores: more threads would only wait for each other
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from nbdev.test import test_nb

ROOT = Path(__file__).resolve().parent.parent


def run(path):
    return path, *test_nb(path)


if __name__ == "__main__":
    wanted = sys.argv[1:]
    paths = [
        p
        for p in sorted((ROOT / "nbs").rglob("*.ipynb"))
        if ".ipynb_checkpoints" not in p.parts and "skip_exec: true" not in p.read_text()[:1000]
    ]
    paths = [p for p in paths if not wanted or any(w in str(p.relative_to(ROOT)) for w in wanted)]
    paths.sort(key=lambda p: p.parent.name != "checks")  # the long ones first
    failed = 0
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        for path, ok, seconds in pool.map(run, paths):
            failed += not ok
            print(
                f"{'passed' if ok else 'FAILED'}  {path.relative_to(ROOT)}  {seconds:.0f} s",
                flush=True,
            )
    print(f"{len(paths) - failed} passed, {failed} failed")
    sys.exit(bool(failed or not paths))
