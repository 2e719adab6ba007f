"""Execute notebooks in place, two at a time, and keep their outputs, without progress bars.

A result saves its figures. Each other notebook is stamped with the code and the records that its
outputs come from.

usage: python .ci/refresh.py [name ...]
A name is a part of a notebook's path; without names, the library, the results, the guides and the
index run.
"""

import hashlib, json, os, subprocess, sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parent.parent
WINGS = ("core", "objective/*", "models/*", "training/*", "study/*", "cli", "api")
RESULTS = ("paper", "family", "theory")

# Run before the first cell, to note which records and trials the notebook's process reads.
# Records elsewhere, in a CRATE_NB_HOME, are the notebook's own and do not count.
WATCH = f"""
import re as _re, sys as _sys, os as _os
_folders_read = set()
def _watch(event, args):
    if event in ("open", "os.scandir", "os.listdir") and isinstance(args[0], (str, _os.PathLike)):
        found = _re.match(r"{ROOT}/data/(runs/\\w+|trials/\\w+/\\w+)", _os.path.abspath(args[0]))
        if found: _folders_read.add(found[1])
_sys.addaudithook(_watch)
"""
TELL = "print(*sorted(_folders_read))"  # run after the last cell


def joined(outputs: list) -> list:
    "Outputs in which the pieces of a stream are put together."
    out = []
    for o in outputs:
        if out and o.output_type == out[-1].output_type == "stream":
            out[-1].text += o.text
        else:
            out.append(o)
    return out


def folders_read(outputs: list) -> dict[str, list[str]]:
    "What the last cell printed and git keeps below data: `runs` and `trials` -> folders."
    printed = "".join(o.get("text", "") for o in outputs if o.get("name") == "stdout")
    found: dict[str, list[str]] = {"runs": [], "trials": []}
    for folder in printed.split():
        kind, _, name = folder.partition("/")
        if subprocess.check_output(["git", "ls-files", f"data/{folder}"], cwd=ROOT):
            found[kind].append(name)
    return found


def execute(nb: nbformat.NotebookNode, folder: Path) -> dict[str, list[str]]:
    "Execute a notebook in a folder; the records and the trials that the notebook reads."
    cells = nb.cells
    watch, tell = map(nbformat.v4.new_code_cell, (WATCH, TELL))
    nb.cells = [watch, *cells, tell]
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(nb, timeout=1800, kernel_name="python3", resources=where).execute()
    nb.cells = cells
    return folders_read(tell.outputs)


def code_hash(path: Path) -> str:
    "A hash of a notebook's code cells."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:16]


def stamp_of(path: Path, scales: list[str], trials: list[str]) -> dict:
    "What outputs follow from: a notebook's code, and digests of the records and trials it reads."
    from crate_nb.training.records import Store
    from crate_nb.training.trials import Trials

    stamp = dict(code=code_hash(path), records={s: Store(s).digest() for s in sorted(scales)})
    if trials:
        where = {name: name.split("/") for name in sorted(trials)}
        stamp["trials"] = {k: Trials(name, scale).digest() for k, (scale, name) in where.items()}
    return stamp


def is_fresh(path: Path) -> bool:
    "Whether outputs come from the present code and records; False without a stamp."
    found = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("stamp")
    return found is not None and found == stamp_of(path, found["records"], found.get("trials", ()))


def refresh(path: Path) -> Path:
    """Execute a notebook in place; a notebook that fails is left as it was.

    A result saves its figures and tables, which its test compares; the others are stamped."""
    os.environ["CRATE_NB_SAVE"] = "1"
    nb = nbformat.read(path, 4)
    read = execute(nb, path.parent)
    for c in nb.cells:
        if c.cell_type == "code":
            c.outputs = joined([o for o in c.outputs if o.get("name") != "stderr"])
        c.metadata.pop("execution", None)
    if path.parent.name not in RESULTS:
        nb.metadata["stamp"] = stamp_of(path, read["runs"], read["trials"])
    nbformat.write(nb, path)
    return path


def chosen(names: list[str]) -> list[Path]:
    "The library, results, guides and index, or those whose path holds one of the names."
    nbs = ROOT / "nbs"
    wings = [*WINGS, *(f"{group}/*" for group in RESULTS), "guides/*", "index"]
    paths = [path for wing in wings for path in sorted(nbs.glob(f"{wing}.ipynb"))]
    if names:
        paths = [p for p in paths if any(name in str(p.relative_to(ROOT)) for name in names)]
    return paths


def refresh_all(paths: list[Path]):
    "Refresh notebooks; the first that fails ends the program, as later ones use its module."
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        jobs = {path.relative_to(ROOT): pool.submit(refresh, path) for path in paths}
        for name, job in jobs.items():
            try:
                job.result()
            except CellExecutionError as e:
                pool.shutdown(cancel_futures=True)
                sys.exit(f"{e}\n{name} fails and is as it was; those above are refreshed")
            print(f"refreshed  {name}", flush=True)


if __name__ == "__main__":
    refresh_all(chosen(sys.argv[1:]))
