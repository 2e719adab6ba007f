"""Sphinx reads the notebooks of nbs/ as they are: nothing is staged, and nothing is executed.

Each is edited as it is read: what readers need not see goes, and each notebook of the library ends
with a reference, from docstrings, in the form of numpydoc or with comments beside parameters."""

import ast, base64, inspect, io, json, posixpath, re, sys, textwrap, tokenize
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
from crate_nb.core import UserError
from explore import can_draw, explore_page
from see import can_see, write_see

(parser := ConfigParser()).read(ROOT / "settings.ini")
settings = parser["DEFAULT"]
project, author, release = settings["title"], settings["author"], settings["version"]
project_copyright, GIT, BRANCH = settings["copyright"], settings["git_url"], settings["branch"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
napoleon_google_docstring = False
nb_execution_mode, nb_output_stderr = "off", "remove"
nb_code_prompt_show = nb_code_prompt_hide = "Code"
nb_render_markdown_format = "myst"  # so that links in outputs lead to pages, too
myst_enable_extensions = ["dollarmath", "amsmath", "fieldlist", "attrs_block", "attrs_inline"]
myst_dmath_double_inline = True  # $$ may stand right below a line of text
myst_heading_anchors = 4
smartquotes_action = "qD"  # ... stays, it is a shape
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False  # those of torch and pydantic say nothing of this code
autodoc_preserve_defaults = True
default_role = "py:obj"  # `name` in a docstring is code, and a link if the name is described
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
add_module_names = html_domain_indices = False
html_theme, html_title, html_css_files = "furo", project, ["custom.css"]
html_js_files = ["sidebar.js"]
html_copy_source = html_show_sourcelink = html_show_sphinx = False
# MathJax comes from a package, not from a network. Pages load one of its bundles, and no menu,
# which would offer to fetch things.
html_static_path = ["_static", find_spec("sphinx-mathjax-offline").origin[:-11] + "static"]
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}, "chtml": {"scale": 0.92}}
UNUSED = ("*svg*", "*mml*", "*full*", "a11y", "sre", "ui", "output/svg")
exclude_patterns = ["tests", "**.ipynb_checkpoints", *(f"mathjax/{name}" for name in UNUSED)]

GROUPS = ("paper/", "family/", "theory/")
RESULTS = (*GROUPS, "guides/what_we_found", "guides/map")  # read for their outputs
LIBRARY = ("core", "objective/", "models/", "measures/", "training/", "study/", "cli")
CONTENTS = {  # chapter -> pages, in a reader's order
    "Start": "guides/what_we_found guides/map guides/words guides/gallery guides/first_hour "
    "guides/running",
    "What the paper claims": "paper/fig1* paper/fig2_untrained paper/fig* paper/tab* paper/*",
    "The family": "family/family_table family/*",
    "Why transformers work": "theory/*",
    "Use it": "guides/measure* guides/regulariser guides/own_images guides/other_tools "
    "guides/beside_crate guides/official_checkpoint guides/what_attention_sees "
    "guides/compare_members "
    "guides/questions guides/exercises guides/what_can_go_wrong",
    "Extend it, run it at scale": "guides/add_a_variant guides/add_a_measure guides/records "
    "guides/slurm guides/frozen_rules",
    "The idea": "objective/rates objective/srr objective/pitfalls objective/redunet "
    "objective/simdino",
    "The models": "models/layer models/compress models/sparsify models/family models/tost models/*",
    "Complexity measures": "measures/formulas measures/measure measures/*",
    "The library": "api core training/* study/* cli",
    "Benchmarks": "bench/*",
}
FOLDED = {"tags": ["hide-input"]}
BINDER = "https://mybinder.org/v2/gh"


def in_repository(path):
    "The address of a file or folder of the repository."
    return f"{GIT}/{'tree' if (ROOT / path).is_dir() else 'blob'}/{BRANCH}/{path}"


def led_on(text, page):
    "Markdown whose links to files that are no pages lead to the repository."

    def one(m):
        path = posixpath.normpath(posixpath.join("nbs", posixpath.dirname(page), m[2]))
        is_page = re.match("nbs/(?!tests/)", path) or re.match("[a-z]+:|#", m[2])
        return m[0] if is_page or not (ROOT / path).exists() else f"{m[1]}({in_repository(path)})"

    return re.sub(r"(?<!!)(\[[^\]]*\])\(([^)\s]+)\)", one, text)


def titled(text, page):
    "A first cell with a line below the title that leads to the notebook."
    path = in_repository(f"nbs/{page}.ipynb")
    colab = path.replace("https://github.com", "https://colab.research.google.com/github")
    binder = f"{BINDER}/{GIT.removeprefix('https://github.com/')}/{BRANCH}?labpath=nbs/{page}.ipynb"
    links = f"[Notebook]({path}), open it in [Colab]({colab}) or [Binder]({binder})"
    if page == "index" and can_draw():
        links += ', <a href="explore.html">explore the records</a>'
    if page == "index" and can_see():
        links += ', <a href="see.html">see what CRATE sees</a>'
    return text.replace("\n", f"\n\n{{.provenance}}\n{links}\n", 1)


def of_code(cell, page, is_setup):
    "A cell of code as its page shows it."
    tags = cell["metadata"].get("tags", [])
    is_folded = is_setup or {"parameters", "setup"} & set(tags) or page.startswith(RESULTS)
    metadata = {"tags": ["remove-input"]} if "hide" in tags else FOLDED if is_folded else {}
    for output in cell["outputs"]:
        if markdown := output.get("data", {}).get("text/markdown"):
            output["data"] = {"text/markdown": led_on("".join(markdown), page)}
    source = re.sub(r"(?m)^#\| ?\w.*\n?", "", cell["source"]).strip("\n")
    return dict(cell, source=source, metadata=metadata)


def lead_with_picture(cells, page):
    "Put the caption of a result's first picture below it, and leave out where it stands again."
    first = next((c for c in cells if "](../../figures/" in c["source"]), None)
    if first is None:
        return cells
    link = re.search(r"!\[.*?\]\((.*?\.png)\)(\n\n\*.*\*)?", first["source"])  # and its title
    picture = link[0].partition("\n")[0]
    png = (ROOT / "nbs" / page).parent.joinpath(link[1]).resolve().read_bytes()
    for cell in (c for c in cells if c["cell_type"] == "code"):
        data = [output.get("data", {}) for output in cell["outputs"]]
        same = [i for i, d in enumerate(data) if base64.b64decode(d.get("image/png", "")) == png]
        if same:
            caption = "".join(data[same[0] + 1]["text/markdown"])
            first["source"] = first["source"].replace(
                link[0], f"{picture}\n\n{{.caption-of-picture}}\n{caption}"
            )
            del cell["outputs"][same[0] : same[0] + 2]
            break
    return cells


def joined(cells):
    "Cells in which folded code without an output is one with the folded code that follows."
    out = []
    for cell in cells:
        if out and out[-1]["metadata"] == cell["metadata"] == FOLDED and not out[-1]["outputs"]:
            cell["source"] = f"{out.pop()['source']}\n\n\n{cell['source']}"
        out.append(cell)
    return out


def ending(page):
    "What ends a page: the contents of the book, for the sidebar; the reference of a module."
    if page == "index":
        for caption, pages in CONTENTS.items():
            head = f":hidden:\n:glob:\n:caption: {caption}"
            yield f"```{{toctree}}\n{head}\n\n" + pages.replace(" ", "\n") + "\n```"
    if page.startswith(LIBRARY) and page != "models/timm":  # whose module needs timm
        directive = f".. automodule:: crate_nb.{page.replace('/', '.')}"
        yield f"## Reference\n\n```{{eval-rst}}\n{directive}\n```"


def edited(cells, page):
    "The cells of a notebook as its page shows them."
    cells = [dict(cell, source="".join(cell["source"])) for cell in cells]
    hidden = re.compile(r"#\| ?(hide|default_exp)\b")
    cells = [c for c in cells if c["cell_type"] != "raw" and not hidden.match(c["source"])]
    if page.startswith(GROUPS):
        cells = lead_with_picture(cells, page)
    heads = [i for i, cell in enumerate(cells) if cell["source"].startswith("## ")]
    for i, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            yield of_code(cell, page, is_setup=i < min(heads, default=0))
        else:
            text = led_on(cell["source"], page)
            yield dict(cell, source=text if i else titled(text, page), metadata={})
    yield dict(cell_type="markdown", id="end", metadata={}, source="\n\n".join(ending(page)))


def read_notebook(app, page, source):
    "Edit the text of a notebook."
    nb = json.loads(source[0])
    nb["cells"] = joined(edited(nb["cells"], page))
    nb["metadata"]["language_info"] = dict(name="python", pygments_lexer="ipython3")
    source[0] = json.dumps(nb)


def of_function(node, comments):
    "The parameters and the result of a function, each with the comment that ends its line."
    a = node.args
    every = [*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg]
    for line, comment in comments.items():
        names = [arg.arg for arg in every if arg and arg.lineno <= line]
        if names and line < node.body[0].lineno:
            is_result = node.returns and line >= node.returns.end_lineno
            yield ("returns" if is_result else f"param {names[-1]}"), comment


def of_body(node, comments):
    "The parameters or fields of a class, or the constants of a module, each with its comment."
    for method in node.body:
        if getattr(method, "name", "") == "__init__":
            return list(of_function(method, comments))
    is_class, found = isinstance(node, ast.ClassDef), []
    for n in node.body:
        if isinstance(n, ast.AnnAssign) or isinstance(n, ast.Assign) and not is_class:
            name = ast.unparse(n.target if isinstance(n, ast.AnnAssign) else n.targets[0])
            text = comments.get(n.end_lineno) or comments.get(n.lineno, "")
            found.append((f"param {name}" if is_class else name, text))
    return [pair for pair in found if not re.search(r"\b_", pair[0])]


def as_rst(text):
    "A docstring or a comment, in which nothing but code style is markup."

    def one(m):
        ticks = "`" if re.fullmatch(r"[\w.]+", m[1] or "") else "``"
        return rf"\ {ticks}{m[1]}{ticks}\ " if m[1] else f"\\{m[0]}"

    return re.sub(r"`([^`]+)`|[\\*_|<>]", one, text)


def escaped(lines):
    "The lines of a docstring, in which examples stay as they are."
    is_example = False
    for line in lines:
        is_example = line.lstrip().startswith(">>>") or is_example and bool(line.strip())
        yield line if is_example else as_rst(line)


def comments_in(code):
    "Line -> the comment that describes it: at its end, or right above it."
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    found = [(t.start[0], t.line, t.string) for t in tokens if t.type == tokenize.COMMENT]
    return {i + line.lstrip().startswith("#"): text.lstrip("# ") for i, line, text in found}


def describe(app, what, name, thing, options, lines):
    "Add to a docstring what comments in the source say of parameters, fields and constants."
    has_section = "Parameters" in lines
    lines[:] = [] if what == "module" else escaped(lines)  # a page has its own introduction
    if not has_section and what in ("module", "class", "exception", "function", "method"):
        code = textwrap.dedent(inspect.getsource(thing))
        node = ast.parse(code) if what == "module" else ast.parse(code).body[0]
        read = of_function if isinstance(node, ast.FunctionDef) else of_body
        found = [(k, text) for k, text in read(node, comments_in(code)) if text]
        lines += ["", *(f":{key}: {as_rst(text)}" for key, text in found), ""]


def is_foreign(app, what, name, thing, skipped, options):
    "Leave out what torch, pydantic or scikit-learn put into a class."
    return (
        None if (getattr(thing, "__module__", None) or "crate_nb").startswith("crate_nb") else True
    )


def write_pages(app, error):
    "Write the pages Explore and See into the book; without its libraries, say what is missing."
    try:
        (Path(app.outdir) / "explore.html").write_text(explore_page("small"))
    except UserError as e:
        print(f"the book lacks the page Explore: {e}")
    if can_see():
        write_see(Path(app.outdir))
    else:
        print("the book lacks the page See: it needs npm and pip install 'crate_nb[onnx]'")


def setup(app):
    app.connect("source-read", read_notebook)
    app.connect("autodoc-process-docstring", describe, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", is_foreign)
    app.connect("build-finished", write_pages)
