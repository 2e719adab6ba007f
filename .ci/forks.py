"""Two processes at a time, each for one notebook, for the scripts that execute notebooks."""

import multiprocessing, os

# Two notebooks run at a time on two cores; more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
from concurrent.futures import ProcessPoolExecutor


def two_processes(*modules: str) -> ProcessPoolExecutor:
    "A pool that forks a process for each notebook from one that has imported the modules."
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload([*modules])
    return ProcessPoolExecutor(2, mp_context=forks, max_tasks_per_child=1)
