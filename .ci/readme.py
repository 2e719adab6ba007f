"""README.md on standard output, from nbs/index.ipynb: markdown cells and the outputs of code cells, links relative to the root."""

import os, re
from pathlib import Path
import nbformat
from nbconvert import MarkdownExporter
from traitlets.config import Config

root = Path(__file__).resolve().parent.parent
config = Config(
    {
        "TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {"hide"}},
        "MarkdownExporter": {"preprocessors": ["nbconvert.preprocessors.TagRemovePreprocessor"]},
    }
)
text, _ = MarkdownExporter(config=config).from_notebook_node(
    nbformat.read(root / "nbs" / "index.ipynb", 4)
)


def from_root(m):
    return f"]({os.path.normpath('nbs/' + m[1])})"


print(
    "<!-- made from nbs/index.ipynb by `make readme`; edit that -->\n\n"
    + re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", from_root, text).strip()
)
