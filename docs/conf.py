"""Sphinx reads this; the pages are made by stage.py from the notebooks, and nothing is executed."""

from configparser import ConfigParser
from pathlib import Path

settings = ConfigParser()
settings.read(Path(__file__).resolve().parent.parent / "settings.ini")
settings = settings["DEFAULT"]
project, author, release = settings["title"], settings["author"], settings["version"]
project_copyright = settings["copyright"]

extensions = ["myst_nb", "sphinx.ext.mathjax", "sphinx-mathjax-offline"]
nb_execution_mode = "off"
nb_code_prompt_show = nb_code_prompt_hide = "Code"
nb_render_markdown_format = "myst"  # so that links in outputs lead to pages, too
myst_enable_extensions = ["dollarmath", "amsmath", "fieldlist", "attrs_block", "attrs_inline"]
myst_dmath_double_inline = True  # $$ may stand right below a line of text
smartquotes_action = "qD"  # ... stays, it is a shape
myst_heading_anchors = 4
suppress_warnings = ["mystnb.unknown_mime_type"]
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
add_module_names = False
html_domain_indices = False

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_extra_path = ["../build/extra"]  # what stage.py makes that is no page of Sphinx
html_css_files = ["custom.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
mathjax3_config = {
    "options": {"enableMenu": False},
    "chtml": {"scale": 0.92},
}  # the menu would offer to fetch things
