"""README.md on standard output, from nbs/index.ipynb: markdown cells and the outputs of code cells, links relative to the root."""
from pathlib import Path
import nbformat
from nbconvert import MarkdownExporter
from traitlets.config import Config

root = Path(__file__).resolve().parent.parent
config = Config({"TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {"hide"}}, "MarkdownExporter": {"preprocessors": ["nbconvert.preprocessors.TagRemovePreprocessor"]}})
text, _ = MarkdownExporter(config=config).from_notebook_node(nbformat.read(root/"nbs"/"index.ipynb", 4))
print("<!-- made from nbs/index.ipynb by `make readme`; edit that -->\n\n" + text.replace("](../", "](").strip())
