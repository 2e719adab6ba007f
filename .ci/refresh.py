"""Execute notebooks in place, two at a time, keep their outputs (without progress bars), and stamp them with the code and the records that the outputs come from.

usage: python .ci/refresh.py [name ...]    names are parts of notebook paths; all of the library, the guides and the index by default
"""

import os, sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parent.parent

# Run before the first cell: which scales' records does the notebook's process look at? Records that it keeps elsewhere (CRATE_NB_HOME) are its own.
WATCH = f"""
import re as _re, sys as _sys, os as _os
_scales_read = set()
def _watch(event, args):
    if event in ("open", "os.scandir", "os.listdir") and isinstance(args[0], (str, _os.PathLike)):
        found = _re.match(r"{ROOT}/data/runs/(\\w+)(/|$)", _os.path.abspath(args[0]))
        if found: _scales_read.add(found[1])
_sys.addaudithook(_watch)
"""


def joined(outputs: list) -> list:
    "Outputs with the pieces in which a stream happened to arrive put together."
    out = []
    for o in outputs:
        if out and o.output_type == out[-1].output_type == "stream":
            out[-1].text += o.text
        else:
            out.append(o)
    return out


def refresh(path: Path) -> Path:
    from crate_nb.figures import stamp

    nb = nbformat.read(path, 4)
    cells = nb.cells
    nb.cells = [
        nbformat.v4.new_code_cell(WATCH),
        *cells,
        nbformat.v4.new_code_cell("print(*sorted(_scales_read))"),
    ]
    NotebookClient(
        nb, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    read = "".join(
        o.get("text", "") for o in nb.cells[-1].outputs if o.get("name") == "stdout"
    ).split()
    nb.cells = cells
    for c in cells:
        if c.cell_type == "code":
            c.outputs = joined([o for o in c.outputs if o.get("name") != "stderr"])
        c.metadata.pop("execution", None)
    nbformat.write(nb, path)
    stamp(path, [s for s in read if (ROOT / "data" / "runs" / s).is_dir()])
    return path


if __name__ == "__main__":
    nbs = ROOT / "nbs"
    paths = [
        p
        for p in [
            *sorted(nbs.glob("[0-9]*.ipynb")),
            *sorted(nbs.glob("guides/*.ipynb")),
            nbs / "index.ipynb",
        ]
        if not sys.argv[1:] or any(w in str(p.relative_to(ROOT)) for w in sys.argv[1:])
    ]
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        for path, done in [(p, pool.submit(refresh, p)) for p in paths]:
            try:
                done.result()
            except (
                CellExecutionError
            ) as e:  # the first notebook that fails ends it: those after it build on its module
                pool.shutdown(cancel_futures=True)
                sys.exit(
                    f"{e}\n{path.relative_to(ROOT)} fails and is as it was; those above are refreshed"
                )
            print(f"refreshed  {path.relative_to(ROOT)}", flush=True)
