"""Print README.md: the markdown cells of nbs/index.ipynb and the outputs of its code cells.

Links, which in the notebook start from nbs/, start from the root of the repository.
"""

import os, re, sys
from pathlib import Path
import nbformat
from nbconvert import MarkdownExporter
from traitlets.config import Config

INDEX = Path(__file__).resolve().parent.parent / "nbs" / "index.ipynb"
HEAD = "<!-- made from nbs/index.ipynb by `make readme`; edit that -->"
RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def as_markdown(path: Path) -> str:
    "A notebook as markdown, without the code of cells that are tagged `hide`."
    config = Config()
    config.TagRemovePreprocessor.enabled = True
    config.TagRemovePreprocessor.remove_input_tags = {"hide"}
    config.MarkdownExporter.preprocessors = ["nbconvert.preprocessors.TagRemovePreprocessor"]
    notebook = nbformat.read(path, 4)
    notebook.metadata.language_info = {"name": "python"}  # for colours; a clean notebook has none
    text, _ = MarkdownExporter(config=config).from_notebook_node(notebook)
    return text


def from_root(link: re.Match) -> str:
    "A link from nbs/ as a link from the root."
    return f"]({os.path.normpath('nbs/' + link[1])})"


if __name__ == "__main__":
    text = RELATIVE_LINK.sub(from_root, as_markdown(INDEX))
    print(f"{HEAD}\n\n{text.strip()}")
    if found := re.search(r"<!-- being revised: (.*?) -->", text):
        print(f"sentences that no longer fit their answers: {found[1]}", file=sys.stderr)
