"""Execute notebooks in place, two at a time, and keep their outputs, without progress bars.

A result saves its figures. Each other notebook is stamped with the code and the records that its
outputs come from.

usage: python .ci/refresh.py [name ...]
A name is a part of a notebook's path; without names, the library, the results, the guides and the
index run.
"""

import base64, hashlib, json, os, re, subprocess, sys, traceback

os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
from pathlib import Path
from typing import Any
from forks import two_processes  # before torch, whose threads it limits
import nbformat, pandas as pd
from execnb.shell import CaptureShell
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat.v4 import new_output

ROOT = Path(__file__).resolve().parent.parent
WINGS = ("core", "objective/*", "models/*", "measures/*", "training/*", "study/*", "cli", "api")
RESULTS = ("paper", "family", "theory")
WORDS = "**In short.**"  # how the answer of a result begins
READ: set[str] = set()  # folders below data that this process has read


def watch(event: str, args: tuple):
    """Note which folders of records a notebook reads.

    Records elsewhere, in a CRATE_NB_HOME, are the notebook's own and do not count."""
    if event in ("open", "os.scandir", "os.listdir") and isinstance(args[0], (str, os.PathLike)):
        if found := re.match(rf"{ROOT}/data/runs/(\w+/\w+)", os.path.abspath(args[0])):
            READ.add(found[1])


def folders_read() -> list[str]:
    "The folders below data/runs that were read and that git keeps, such as small/images."
    listed = subprocess.check_output(["git", "ls-files", "data/runs"], cwd=ROOT, text=True)
    return sorted(READ & {"/".join(path.split("/")[2:4]) for path in listed.splitlines()})


def run_cell(source: str, shell: CaptureShell, shown: dict[str, Any]) -> list:
    "Run a cell; its outputs, without warnings. A later cell may change a display in `shown`."
    with capture_output() as caught:
        ran = InteractiveShell.run_cell(shell, source)
    ran.raise_error()
    outputs = [new_output("stream", text=caught.stdout)] if caught.stdout else []
    for o in caught.outputs:
        id = (o.transient or {}).get("display_id")
        if o.update:
            shown[id].update(data=o.data, metadata=o.metadata)
        else:
            outputs.append(new_output("display_data", data=o.data, metadata=o.metadata))
            shown[id] = outputs[-1]
    if ran.result is not None and not source.rstrip().endswith(";"):
        data, metadata = shell.display_formatter.format(ran.result)
        outputs.append(new_output("execute_result", data=data, metadata=metadata))
    return outputs


def use_palette(data: dict[str, Any]):
    "Give an output's PNG a palette, which git and a wheel keep small."
    from crate_nb.study.figures import with_palette

    if png := data.get("image/png"):
        data["image/png"] = base64.b64encode(with_palette(base64.b64decode(png))).decode()


def execute(nb: nbformat.NotebookNode, path: Path):
    """Execute a notebook in its folder, in this process; a `RuntimeError` if a cell fails.

    A result gets the parameter save=True."""
    os.chdir(path.parent)
    os.environ["COLUMNS"], pd.options.display.max_columns = "80", 20  # printed tables as in Jupyter
    sys.addaudithook(watch)
    shell, shown = CaptureShell(mpl_format="png"), dict[str, Any]()
    for number, cell in enumerate(nb.cells):
        if cell.cell_type == "code" and "#| eval: false" not in cell.source:
            try:
                cell.outputs = run_cell(cell.source, shell, shown)
                if path.parent.name in RESULTS and "parameters" in cell.metadata.get("tags", ()):
                    shell.user_ns["save"] = True
                for output in cell.outputs:
                    use_palette(output.get("data", {}))
            except Exception:
                raise RuntimeError(f"{traceback.format_exc()}in cell {number}") from None


def lead_with_words(nb: nbformat.NotebookNode):
    "Put on top what GitHub shows first: the picture, its title, and the answer in words."
    shown = [(cell, o) for cell in nb.cells for o in cell.get("outputs", ())]
    texts = [(c, o, o.get("data", {}).get("text/markdown", "")) for c, o in shown]
    cell, output, words = next(row for row in texts if row[2].startswith(WORDS))
    cell.outputs.remove(output)
    first = next(c for c in nb.cells if c.cell_type == "markdown")
    top = first.source.partition(WORDS)[0].rstrip()
    if link := re.search(r"!\[.*?\]\((.*?)\.png\)", top):
        path = ROOT / "nbs" / "paper" / f"{link[1]}.json"  # the folders of results have one depth
        title = json.loads(path.read_text(encoding="utf-8"))["title"]
        top = f"{top[: link.end()]}\n\n*{title}.*"
    first.source = f"{top}\n\n{words}"


def code_hash(path: Path) -> str:
    "A hash of a notebook's code cells."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:16]


def stamp_of(path: Path, folders: list[str]) -> dict:
    "What outputs follow from: a notebook's code, and digests of the folders of records it reads."
    from crate_nb.training.records import IMAGES, Store
    from crate_nb.training.trials import Trials

    digests = {}
    for folder in sorted(folders):
        scale, task = folder.split("/")
        digests[folder] = (Store(scale) if task == IMAGES else Trials(task, scale)).digest()
    return dict(code=code_hash(path), records=digests)


def is_fresh(path: Path) -> bool:
    "Whether outputs come from the present code and records; False without a stamp."
    found = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("stamp")
    return found is not None and found == stamp_of(path, list(found["records"]))


def refresh(path: Path) -> Path:
    """Execute a notebook in place; a notebook that fails is left as it was.

    A result saves its figures and tables, which its test compares; the others are stamped."""
    nb = nbformat.read(path, 4)
    execute(nb, path)
    if path.parent.name in RESULTS:
        lead_with_words(nb)
    else:
        nb.metadata["stamp"] = stamp_of(path, folders_read())
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
    used = "seaborn", "tabulate", "nbformat", "execnb.shell", "crate_nb.study.report"  # by many
    with two_processes(*used) as pool:
        jobs = {path.relative_to(ROOT): pool.submit(refresh, path) for path in paths}
        for name, job in jobs.items():
            try:
                job.result()
            except RuntimeError as e:
                pool.shutdown(cancel_futures=True)
                sys.exit(f"{e} of {name}, which is as it was; those above are refreshed")
            print(f"refreshed  {name}", flush=True)


if __name__ == "__main__":
    refresh_all(chosen(sys.argv[1:]))
