"""Make the pages of the book in build/docs from notebooks, records and figures.

Sphinx then makes the site of them.

usage: python docs/stage.py
"""

import json, os, re, shutil, sys
from configparser import ConfigParser
from pathlib import Path

import pandas as pd
from PIL import Image
import reference
from reference import MODULES, ROOT, sentence
from crate_nb.study.claims import CLAIMS
from crate_nb.study.explore import explore_page, shown_scales
from crate_nb.study.figures import GROUPS, NOTEBOOKS, RESULTS, claims_of, is_fresh
from crate_nb.study.report import MARKS, tally
import results
from results import LABEL, SCALE

OUT = ROOT / "build" / "docs"
EXTRA = ROOT / "build" / "extra"  # copied into the site as it is
settings = ConfigParser()
settings.read(ROOT / "settings.ini")
settings = settings["DEFAULT"]
BLOB = f"blob/{settings['branch']}"
SOURCE = f"{settings['git_url']}/{BLOB}"
GITHUB, ON_COLAB = "https://github.com", "https://colab.research.google.com/github"
COLAB = f"{settings['git_url'].replace(GITHUB, ON_COLAB)}/{BLOB}"

# Which notebook is which page: path in the repository -> page of the book
GUIDES = [
    "what_we_found",
    "first_hour",
    "add_a_variant",
    "add_a_measure",
    "own_images",
    "official_checkpoint",
    "use_a_trained_model",
    "regulariser",
    "measure_your_transformer",
    "what_attention_sees",
    "compare_members",
    "slurm",
    "rented_gpu",
    "records",
    "frozen_rules",
    "what_can_go_wrong",
]
EXECUTED = {
    p.name: p
    for s in reversed(results.SCALES)
    for p in (results.FIGURES[s] / "notebooks").glob("*.ipynb")
}
PAGES = {
    "nbs/index.ipynb": "index",
    "README.md": "index",
    "data/README.md": "reference/data_files",
    f"figures/{SCALE}/report.html": "paper/index",
    f"figures/{SCALE}/explore.html": "explore/index",
    f"figures/{SCALE}/{results.REPORT}": "paper/report",
}
PAGES |= {f"nbs/{p.name}": f"library/{p.stem}" for p in MODULES.values()}
PAGES |= {f"nbs/guides/{g}.ipynb": f"guides/{g}" for g in GUIDES}
PAGES |= {f"nbs/{n}.ipynb": n for n in NOTEBOOKS.values()}

MADE = {
    "reference/data_files",
    "paper/report",
    "explore/index",
    *(f"{group}/index" for group in GROUPS),
}  # pages that are no notebooks


def relative(target: str, page: str) -> str:
    "A path as a link of a page."
    return os.path.relpath(target, Path(page).parent)


def from_root(link: str, source: str) -> str:
    "A link of a file, which is relative to the file, as a path from the repository's root."
    return os.path.normpath(Path(source).parent / link)


# ---------------------------------------------------------------- markdown


def resolve(link: str, source: str, page: str) -> str:
    "A link of a notebook as a link of its page: to another page, or to the repository."
    if re.match(r"[a-z]+:|#", link):
        return link
    path, _, anchor = link.partition("#")
    path = from_root(path, source)
    if path in PAGES:
        ending = ".md" if PAGES[path] in MADE else ".ipynb"
        return relative(PAGES[path] + ending, page) + (f"#{anchor}" if anchor else "")
    if not (ROOT / path).exists():
        sys.exit(f"{source}: the link to {link} leads nowhere")
    folder = SOURCE.replace("/blob/", "/tree/")
    return f"{SOURCE if (ROOT / path).is_file() else folder}/{path}"


def picture(link: str, source: str, page: str) -> str:
    "A picture, copied beside the pages."
    path = from_root(link, source)
    (OUT / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / path, OUT / path)
    return relative(path, page)


def width_of(link: str, source: str) -> str:
    "The width at which a picture of figures/ (200 dots an inch) has the size it was drawn for."
    with Image.open(ROOT / from_root(link, source)) as image:
        return f"{{width={image.width // 2}px}}"


def names_of(found: dict[str, list[reference.Entry]]) -> dict[str, str]:
    """What text may call an exported name -> the object that the reference describes.
    A short name that two modules export is left out."""
    names = [
        (module, entry.name)
        for module, entries in found.items()
        for exported in entries
        for entry in (exported, *exported.members)
    ]
    short = [name for _, name in names]
    out = {n: f"crate_nb.{m}.{n}" for m, n in names if short.count(n) == 1}
    for module, name in names:
        full = f"crate_nb.{module}.{name}"
        out |= {f"{module}.{name}": full, full: full}
    return out


NAMES = names_of(reference.entries())
FENCE = r"(?ms)(^```.*?^```$)"
PICTURE = r"!\[([^\]]*)\]\(([^)\s]+)\)"
LINK = r"(?<!\!)\[([^\]]+)\]\(([^)\s]+)\)"
CODE = r"(?<![\[`\w{}])`([\w.]+)(\(\))?`(?![\]`])"


def prose(text: str, source: str, page: str) -> str:
    """Markdown of a notebook as markdown of its page.
    Links are led on, pictures copied, and exported names linked to the reference."""

    def shown(m):
        return f"![{m[1]}]({picture(m[2], source, page)}){width_of(m[2], source)}"

    def led_on(m):
        return f"[{m[1]}]({resolve(m[2], source, page)})"

    def with_names(line):
        if line.startswith("#"):
            return line
        return re.sub(CODE, lambda m: linked(m, page), line)

    def converted(part):
        part = re.sub(LINK, led_on, re.sub(PICTURE, shown, part))
        return "\n".join(map(with_names, part.split("\n")))

    parts = re.split(FENCE, text)  # text and fenced code in turn
    parts[::2] = map(converted, parts[::2])
    return "".join(parts)


def linked(m: re.Match, page: str) -> str:
    """A name in code style, as a link to its entry if it has one.
    A plain word (`margin`) may also be a field or an option: it becomes a link only on its own
    module's pages, or where it is called."""
    target = NAMES.get(m[1])
    if target is None or len(m[1]) <= 3:
        return m[0]
    module = re.search(r"^(?:library/\d\d_|reference/)(\w+)$", page)
    is_at_home = module and target == f"crate_nb.{module[1]}.{m[1]}"
    if re.fullmatch("[a-z]+", m[1]) and not m[2] and not is_at_home:
        return m[0]
    return f"{{py:obj}}`{m[1]}{m[2] or ''} <{target}>`"


def escaped(text: str, page: str = "", own: tuple[str, ...] = ()) -> str:
    """A docstring or comment as markdown: nothing of it means markup but its code style.
    A name in code style leads to its entry, unless it is one of the function's own."""

    def one(m):
        if m[1] and m[1] not in own:
            return linked(m, page)
        return m[0] if m[0].startswith("`") else f"\\{m[0]}"

    return re.sub(r"`([\w.]+)(\(\))?`|`[^`]+`|[\\*_<>\[\]$|{}~#]", one, text)


def maths(text: str) -> str:
    "A caption as markdown: R^c as a formula, and formulas as they are."
    parts = re.split(r"(\$[^$]+\$)", text)  # text and formulas in turn
    parts[::2] = [re.sub(r"R\^c\b", "$R^c$", escaped(part)) for part in parts[::2]]
    return "".join(parts)


# ---------------------------------------------------------------- notebooks

DIRECTIVE = re.compile(r"^#\| ?\w.*\n?", re.M)


def is_hidden(cell: dict) -> bool:
    "Whether a page leaves a cell out."
    text, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
    is_directive = re.search(r"^#\| ?(hide|default_exp)\b", text, re.M)
    return cell["cell_type"] == "raw" or bool(is_directive) or "setup" in tags


def cleaned_outputs(cell: dict, source: str, page: str) -> list[dict]:
    "A cell's outputs without stderr, and markdown among them with the page's links."
    outputs = [o for o in cell["outputs"] if o.get("name") != "stderr"]
    for o in outputs:
        if text := o.get("data", {}).get("text/markdown"):
            o["data"] = {"text/markdown": prose("".join(text), source, page)}
    return outputs


FOLDED = {"guides/what_we_found"}  # pages that are read for their outputs: their code is folded


def with_folded_code(cell: dict) -> dict:
    "A cell whose code is shown on a click; as it is if it has none, or none that is shown."
    if cell["cell_type"] != "code" or cell["metadata"].get("tags"):
        return cell
    return dict(cell, metadata=dict(tags=["hide-input"]))


def folded(cells: list[dict], page: str) -> list[dict]:
    """The cells of a page, with the code folded that a reader passes by: imports and parameters,
    which stand above the first heading but the title, and all code of a page in `FOLDED`."""
    is_example = page == "index" or page.startswith("guides/")  # its code is what it shows
    if is_example and page not in FOLDED:
        return cells
    heads = [i for i, c in enumerate(cells) if i and "".join(c["source"]).startswith("## ")]
    end = len(cells) if page in FOLDED else min(heads, default=0)
    return [*map(with_folded_code, cells[:end]), *cells[end:]]


def cleaned(cell: dict, source: str, page: str) -> dict | None:
    "A cell as the page shows it; None for one that it does not show."
    if is_hidden(cell):
        return None
    cell.pop("attachments", None)
    text, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
    if cell["cell_type"] == "markdown":
        return dict(cell, source=prose(text, source, page), metadata={})
    text = DIRECTIVE.sub("", text).strip("\n")
    if not text:
        return None
    metadata = dict(tags=["remove-input"]) if "hide" in tags else {}
    outputs = cleaned_outputs(cell, source, page)
    return dict(cell, source=text, outputs=outputs, metadata=metadata)


def page_of(source: str, executed: Path | None = None, head: str = "", short: str = ""):
    """Stage a notebook; `executed` is the copy whose outputs are shown.
    `head` stands below the title, and `short` below the notebook's first sentence."""
    page, nb = PAGES[source], json.loads((executed or ROOT / source).read_text())
    if any(c.get("outputs") for c in nb["cells"]) and not is_fresh(ROOT / source, executed):
        sys.exit(
            f"{executed or source}: its outputs are not from its present code and records; "
            "make test says what refreshes it"
        )
    cells = [c for c in (cleaned(c, source, page) for c in nb["cells"]) if c]
    title, _, rest = cells[0]["source"].partition("\n")
    if short:
        said, _, rest = rest.lstrip().partition("\n\n")
        rest = f"{said}\n\n{short}\n\n{rest}"
    cells[0]["source"] = f"{title}\n\n{head}{rest}"
    cells = folded(cells, page)
    metadata = dict(
        kernelspec=nb["metadata"]["kernelspec"],
        language_info=dict(name="python", pygments_lexer="ipython3"),
    )
    write_notebook(page, dict(cells=cells, metadata=metadata, nbformat=4, nbformat_minor=5))


def write(path: str, text: str):
    "Write a file of the book."
    (OUT / path).parent.mkdir(parents=True, exist_ok=True)
    (OUT / path).write_text(text)


def write_notebook(page: str, nb: dict):
    "Write a page that is a notebook."
    write(f"{page}.ipynb", json.dumps(nb, indent=1, ensure_ascii=False))


def line_of(source: str, numbers: str) -> str:
    "The line under a title: where its numbers come from, where the notebook is, how to run it."
    links = f"[{source}]({SOURCE}/{source}), [open in Colab]({COLAB}/{source})"
    return f"{{.provenance}}\n{numbers} Notebook: {links}.\n\n"


# ---------------------------------------------------------------- the paper


def shown(name: str, page: str) -> str:
    "A saved figure or table with its title and caption; nothing if it is not saved."
    about = results.saved(name)
    if about is None:
        return ""
    title = maths(about["title"])
    if about["kind"] == "table":
        frame = pd.DataFrame(about["rows"], columns=about["columns"])
        what = results.table(frame)
    else:
        path = str((about["folder"] / f"{about['name']}.png").relative_to(ROOT))
        link, width = picture(path, "README.md", page), width_of(path, "README.md")
        what = f"![{title}]({link}){width}\n"
    return f"### {title}\n\n{what}\n{{.figure-text}}\n{maths(about['caption'])}\n"


def marked(claim: str) -> str:
    "A claim's verdict with its mark."
    verdict = results.verdicts().verdict[claim]
    return f"**{MARKS[verdict]} {verdict}**"


def claim_line(claim: str) -> str:
    "What a claim says, and how it came out."
    c = CLAIMS[claim]
    quote, says = maths(c.quote), maths(c.says)
    return f"- {marked(claim)}: `{claim}` ({c.source}): “{quote}”. Tested: {says}."


def verdict_table(claims: tuple[str, ...]) -> str:
    "The verdicts on some claims, with what they follow from."
    found = results.verdicts().loc[list(claims)]
    rows = [
        {
            "claim": f"`{v.Index}`",
            "verdict": marked(v.Index),
            "measured, with its interval": maths(v.measured),
            "n": v.n or "",
            "paper": v.paper,
            "elsewhere": v.elsewhere,
            "to settle it": v.settle,
        }
        for v in found.itertuples()
    ]
    frame = pd.DataFrame(rows)
    return results.table(frame.loc[:, (frame != "").any()], escape="")  # no empty columns


RESULT_PAGE = """# {title}

{{.provenance}}
{provenance}

## The verdict

{claims}

{verdict}
## What we measured

{figures}
## What the paper prints

{paper}

<details class="bookkeeping"><summary>Question, command, cost and notebook</summary>

{how}

**The cost.** {cost}

**The command.**

```bash
# at scale quick, from nothing
crate-nb reproduce --only {key}
# what this page shows; recorded runs are not trained again
crate-nb reproduce --only {key} --scale {scale} --dataset {label}
# the paper's setting, on one GPU
crate-nb reproduce --only {key} --scale paper
```

The whole notebook, with its code: [{notebook}]({link}).

</details>
"""

NO_CLAIM = "The table makes no claim: it lists the models that the other tables are about."
NOT_SHOWN = f"Nothing is shown at scale `{SCALE}` yet, because its runs are not recorded.\n"
HOW_TO_READ = (
    "\nWhat is measured is the check that decides the verdict, with its 95 % interval. "
    f"[Claims](../library/{MODULES['claims'].stem}.ipynb) says what the verdicts mean.\n"
)


def result_page(name: str, key: str):
    "The page of a figure or table, which belongs to the result `key`."
    page, path = RESULTS[key].pages[name], f"paper/{name}"
    notebook = RESULTS[key].notebook
    figures = "\n".join(filter(None, (shown(n, path) for n in page.shown)))
    is_run = any(results.verdicts().measured[list(page.claims)])
    verdict = verdict_table(page.claims) + HOW_TO_READ if is_run else ""
    text = RESULT_PAGE.format(
        title=page.title,
        key=key,
        scale=SCALE,
        label=LABEL,
        notebook=notebook,
        link=relative(f"{notebook}.ipynb", path),
        provenance=results.provenance(key),
        claims="\n".join(map(claim_line, page.claims)) or NO_CLAIM,
        paper=results.printed_text(page),
        figures=figures or NOT_SHOWN,
        verdict=verdict,
        cost=results.cost(key),
        how=prose(results.intro(key), f"nbs/{notebook}.ipynb", path),
    )
    write(f"{path}.md", text)


def in_short(key: str) -> str:
    """What the page of a result says first that has no other page: its verdicts, its first
    figure and its first table; nothing if it has no figure."""
    page, claims = RESULTS[key].notebook, RESULTS[key].claims
    saved = [(results.saved(name), name) for name in results.saved_by(key)]
    first = {about["kind"]: name for about, name in reversed(saved) if about}
    if RESULTS[key].pages or "figure" not in first:
        return ""
    verdict = "\n".join(f"- {saw(claim)}" for claim in claims)
    verdict += f"\n{HOW_TO_READ}" if claims else ""
    figures = "\n".join(shown(first[kind], page) for kind in ("figure", "table") if kind in first)
    return f"## In short\n\n{verdict}\n{figures}\n## The notebook"


def notebook_page(key: str):
    "The page of the notebook behind a result."
    source = f"nbs/{RESULTS[key].notebook}.ipynb"
    executed = EXECUTED.get(Path(source).name)
    numbers = f"Not run at scale `{SCALE}` yet, so it shows no numbers."
    if executed:
        numbers = results.provenance(key)
    page_of(source, executed, line_of(source, numbers), in_short(key) if executed else "")


def report_page():
    "The page of the reproducibility report, with R^c as a formula outside code."

    def formula(m):
        return m[0] if m[0].startswith("`") else "$R^c$"

    text = (results.FIGURES[SCALE] / results.REPORT).read_text()
    text = re.sub(r"`[^`]*`|R\^c", formula, text)
    write("paper/report.md", prose(text, f"figures/{SCALE}/{results.REPORT}", "paper/report"))


PAPER_INDEX = """# The paper

{{.provenance}}
Verdicts from the records of scale `{scale}`, data set `{label}`; Figures 1 and 5 need no data.

*An In-depth Investigation of Sparse Rate Reduction in Transformer-like Models* (Hu, Zou and Xu, \
NeurIPS 2024), figure by figure and table by table: the claim, what the paper prints, what we \
measured, the verdict, the command, its cost, and how. {counts} The marks mean: {marks}.

| page | claims |
|:---|:---|
{rows}

[The reproducibility report](report.md) says the same in the form of the ML Reproducibility \
Challenge: scope, methodology, compute, results, what differs and what the paper leaves open, each \
number with the records that it comes from.

{pages}
{notebooks}"""
FAMILY_INDEX = """# The family

{{.provenance}}
Verdicts from the records and the trials of scale `{scale}`, data set `{label}`.

CRATE has relatives: ViT, which it is measured against; ToST and CRATE-alpha, which came after it; \
masked autoencoders; and ReduNet, which came before. They are all here, under one set of \
measurements. {counts} The marks mean: {marks}.

| page | claims |
|:---|:---|
{rows}

{pages}
{notebooks}"""
THEORY_INDEX = """# Theory of transformers

{{.provenance}}
Verdicts from the trials of scale `{scale}`, which are committed in `data/trials/{scale}`.

A survey of transformer theory (H. Wong, Y. Wang, C. Mok and Y. Zhang, *Understanding the Theory \
Behind Transformers: An Overview of Current Research*) names ten results, from how attention \
learns to what it can compute. Each notebook below states one of them, builds it, and shows what \
happens where an assumption is dropped. A construction is checked on every case that is named; \
an experiment states its budget and its seeds. {counts} The marks mean: {marks}.

{overview}

## What was asked, and what was seen

{rows}

{pages}"""
SURVEY = {  # section of the survey -> its name
    "2": "Optimization",
    "3.1": "Universal approximation",
    "3.2": "Turing completeness",
    "3.3": "Mechanistic interpretability",
    "4.1": "Vision",
    "4.2": "Graphs",
    "4.3": "In-context learning",
    "5": "White-box transformers",
}
ALL_MARKS = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())


def verdicts_of(claims: tuple[str, ...]) -> list[str]:
    "The verdicts of some claims."
    return list(results.verdicts().verdict[list(claims)])


def marks_of(claims: tuple[str, ...]) -> str:
    "Claims, each with the mark of its verdict."
    return ", ".join(f"{claim} {MARKS[v]}" for claim, v in zip(claims, verdicts_of(claims)))


def counts_of(group: str) -> str:
    "How many claims a group has, and how they came out."
    claims = claims_of(group)
    return f"{len(claims)} claims: {tally(results.verdicts().verdict[claims])}."


def group_index(text: str, group: str, **parts: str):
    "The first page of a group of results."
    counts = counts_of(group)
    page = f"{group}/index.md"
    write(page, text.format(scale=SCALE, label=LABEL, counts=counts, marks=ALL_MARKS, **parts))


def page_rows(owners: dict[str, str], folder: str) -> str:
    "A row for each page of figures and tables: its link and its verdicts."
    rows = []
    for name, key in owners.items():
        page = RESULTS[key].pages[name]
        link = relative(f"paper/{name}.md", f"{folder}/index")
        rows.append(f"| [{page.title}]({link}) | {marks_of(page.claims) or '–'} |")
    return "\n".join(rows)


def saw(claim: str) -> str:
    "The check that decides on a claim, as the overview says it."
    found = results.verdicts().loc[claim]
    measured = f": *{maths(found.measured)}*" if found.measured else ""
    return f"{MARKS[found.verdict]} {maths(found.claim)}{measured}"


def survey_rows() -> str:
    "A line for each result, in the survey's order: its section, what was built, how it came out."
    rows = []
    for key in GROUPS["theory"]:
        result = RESULTS[key]
        built, section = re.fullmatch(r"(.*) \(survey, section ([\d.]+)\)", result.title).groups()
        link = relative(result.notebook + ".ipynb", "theory/index")
        row = {"survey": f"{section} {SURVEY[section]}", "built here": f"[{built}]({link})"}
        rows.append(row | {"verdicts": "".join(MARKS[v] for v in verdicts_of(result.claims))})
    return results.table(pd.DataFrame(rows).sort_values("survey", kind="stable"), escape="")


def theory_rows() -> str:
    "A row for each result of the survey: what was asked, and what was seen."
    rows = [
        {
            "result": f"[{result.short}]({relative(result.notebook + '.ipynb', 'theory/index')})",
            "claims, and the check that decides": "<br>".join(map(saw, result.claims)),
        }
        for result in (RESULTS[key] for key in GROUPS["theory"])
    ]
    return results.table(pd.DataFrame(rows), escape="")


def pages_of(group: str) -> dict[str, str]:
    "The pages of figures and tables of a group, by name, and their results."
    owners = dict(sorted(results.OWNERS.items()))  # figures, then tables, each by number
    return {name: key for name, key in owners.items() if RESULTS[key].groups[0] == group}


def notebooks_of(*groups: str, folder: str) -> str:
    "The contents of the notebooks behind the pages of some groups."
    notebooks = [r for r in RESULTS.values() if r.groups[0] in groups]
    links = [f"Notebook: {r.short} <{relative(r.notebook, f'{folder}/index')}>" for r in notebooks]
    return toctree(links, caption="Behind these pages")


def results_part():
    "The pages of results, of the notebooks behind them, and of the report."
    for name, key in results.OWNERS.items():
        result_page(name, key)
    for key in RESULTS:
        notebook_page(key)
    report_page()
    paper, family = pages_of("paper"), pages_of("family")
    group_index(
        PAPER_INDEX,
        "paper",
        rows=page_rows(paper, "paper"),
        pages=toctree([*paper, "report"]),
        notebooks=notebooks_of("paper", "regulariser", folder="paper"),
    )
    group_index(
        FAMILY_INDEX,
        "family",
        rows=page_rows(family, "family"),
        pages=toctree([f"../paper/{name}" for name in family]),
        notebooks=notebooks_of("family", folder="family"),
    )
    theory = [Path(RESULTS[key].notebook).name for key in GROUPS["theory"]]
    group_index(
        THEORY_INDEX, "theory", overview=survey_rows(), rows=theory_rows(), pages=toctree(theory)
    )


# ---------------------------------------------------------------- explore

EXPLORE = """---
hide-toc: true
---

# Explore

{{.provenance}}
Numbers: records of {scales}. Notebook: [{stem}](../library/{stem}.ipynb).

Which records are there, how does SRR go from layer to layer, and which update rules compress? \
Below you choose what is shown: each control says what to see.

<p><a href="records.html">The same page alone, in the whole window</a></p>
<iframe class="explore" src="records.html" title="Records, SRR by layer and update rules"></iframe>
"""


def explore_part():
    "The page that answers to its reader's hand, and the page of the book that shows it."
    EXTRA.joinpath("explore").mkdir(parents=True, exist_ok=True)
    (EXTRA / "explore" / "records.html").write_text(explore_page(SCALE))
    scales = ", ".join(f"scale `{scale}`" for scale in shown_scales(SCALE))
    write("explore/index.md", EXPLORE.format(scales=scales, stem=MODULES["explore"].stem))


# ---------------------------------------------------------------- the reference


def signature(e: reference.Entry) -> str:
    "The parameters and the result of an entry, as its directive shows them."
    if e.kind in ("data", "property"):
        return ""
    if e.kind == "class":
        fields = [p.text for p in e.parts if not p.text.startswith("model_config")]
        return f"({', '.join(fields)})"
    result = f" -> {e.returns}" if e.returns else ""
    return f"({', '.join(p.text for p in e.parts)}){result}"


def field_list(e: reference.Entry, module: str) -> str:
    "Summary, parameters, result and errors of an entry, as the body of its directive."
    own = tuple(p.name for p in e.parts)

    def text(t):
        return escaped(t, f"reference/{module}", own)

    options = dict(type=e.returns, value=e.value) if e.kind == "data" else {}
    head = [f":{option}: {value}" for option, value in options.items() if value]
    fields = [f":param {p.name.lstrip('*')}: {text(p.doc)}" for p in e.parts]
    if e.returned:
        fields.append(f":returns: {text(e.returned)}")
    messages = [re.sub("--[a-z]+", r"`\g<0>`", error) for error in e.errors]
    fields += [f":raises UserError: {text(message)}" for message in messages]
    return "\n".join([*head, "", text(e.doc), "", *fields])


def described(e: reference.Entry, module: str, depth: int = 4) -> str:
    "An entry as a directive of Sphinx."
    fence = "`" * (depth + 2)
    body = field_list(e, module)
    body += "".join("\n\n" + described(m, module, depth - 1) for m in e.members)
    return f"{fence}{{py:{e.kind}}} {e.name}{signature(e)}\n{body}\n{fence}"


def slug(heading: str) -> str:
    "The anchor that myst gives a heading: of its text without its formulas."
    from myst_parser.mdit_to_docutils.base import default_slugify

    return default_slugify(re.sub(r"\$[^$]*\$", "", heading))


def explained(module: str, section: str) -> str:
    "A heading of a module's page, which leads to the same heading of its notebook."
    stem = MODULES[module].stem
    link = f"../library/{stem}.ipynb"
    if section and not section.startswith(module.capitalize()):
        link += f"#{slug(section)}"
    return f"## {section}\n\n{{.provenance}}\nExplained in [{stem}, *{section}*]({link})."


def entry_blocks(module: str, found: list[reference.Entry]) -> list[str]:
    "The entries of a module, each heading and each group of equations once."
    blocks, last, above = [], None, None
    for e in found:
        if e.section != last:
            blocks.append(explained(module, e.section))
        if e.equations is not above:
            blocks += [f"$$\n{equation.strip()}\n$$" for equation in e.equations]
        blocks.append(described(e, module))
        last, above = e.section, e.equations
    return blocks


MODULE_PAGE = """# `crate_nb.{module}`

```{{py:module}} crate_nb.{module}
:no-index-entry:
```

{intro} Notebook: [{stem}](../library/{stem}.ipynb).{options}

{blocks}
"""


def module_page(module: str, found: list[reference.Entry]):
    "The reference page of a module, in the order of its notebook."
    notebook, page = MODULES[module], f"reference/{module}"
    text = MODULE_PAGE.format(
        module=module,
        intro=prose(sentence(notebook), f"nbs/{notebook.name}", page),
        stem=notebook.stem,
        options=" Options: [command line](command_line.md)." if module == "cli" else "",
        blocks="\n\n".join(entry_blocks(module, found)),
    )
    write(f"{page}.md", text)


COMMANDS = """# Command line

A mistake in a command gives one line and exit code 2, before any work. {notebook} shows how the \
command line is built.

{helps}
"""


def helps(command, name: str) -> list[str]:
    "The help of a command, and of those below it."
    import click

    context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
    out = [f"## `{name}`\n\n```text\n{command.get_help(context)}\n```"]
    if isinstance(command, click.Group):
        for below, subcommand in sorted(command.commands.items()):
            out += helps(subcommand, f"{name} {below}")
    return out


def command_page():
    "The command line, as its own help says it."
    from crate_nb.cli import cli

    stem = MODULES["cli"].stem
    text = COMMANDS.format(
        notebook=f"[{stem}](../library/{stem}.ipynb)", helps="\n\n".join(helps(cli, "crate-nb"))
    )
    write("reference/command_line.md", text)


REFERENCE_INDEX = """# Reference

Every exported name, with its parameters, shapes, units, errors and equation, made from the \
[notebooks](../library/index.md). [Command line](command_line.md) · \
[data and records](data_files.md) \
· {{ref}}`all names <genindex>`

{{.scroll}}
| module | names |
|:---|:---|
{rows}

{pages}"""


def module_row(module: str, found: list[reference.Entry]) -> str:
    "A row of the list of modules: a module and its names."
    names = ", ".join(f"{{py:obj}}`{e.name} <crate_nb.{module}.{e.name}>`" for e in found)
    return f"| [`crate_nb.{module}`]({module}.md) | {names} |"


def reference_part():
    "A page for each module, the command line, and the dictionary of the data."
    found = reference.entries()
    for module, entries in found.items():
        module_page(module, entries)
    command_page()
    records = (ROOT / "data" / "README.md").read_text()
    write("reference/data_files.md", prose(records, "data/README.md", "reference/data_files"))
    index = REFERENCE_INDEX.format(
        rows="\n".join(module_row(module, entries) for module, entries in found.items()),
        pages=toctree(["command_line", "data_files", *found]),
    )
    write("reference/index.md", index)


# ---------------------------------------------------------------- the rest


def toctree(pages, caption: str = "") -> str:
    "The pages below a page, for the side bar."
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return "```{toctree}\n" + options + "\n" + "\n".join(pages) + "\n```\n"


def listed(source: str, page: str) -> str:
    "A notebook in a list: its title, which leads to its page, and its sentence."
    title = reference.first_text(ROOT / source).split("\n")[0].lstrip("# ")
    link = relative(PAGES[source], page)
    return f"- [{title}]({link}.ipynb): {prose(sentence(ROOT / source), source, page)}"


def notebooks_index(page: str, head: str, sources: list[str]):
    "A page that lists notebooks."
    items = "\n".join(listed(source, page) for source in sources)
    pages = toctree([Path(PAGES[source]).name for source in sources])
    write(f"{page}.md", f"{head}\n\n{items}\n\n{pages}")


def numbers_of(source: str) -> str:
    "Where a notebook's numbers come from, by what its code reads."
    read = list(json.loads((ROOT / source).read_text())["metadata"]["stamp"]["records"])
    if not read:
        return "Numbers: made by its own cells; no record is read."
    return f"Numbers: records of scale `{read[0]}`, data set `{LABEL}`, and its own cells."


def start_page():
    "The first page of the book, with its contents."
    page_of("nbs/index.ipynb")
    nb = json.loads((OUT / "index.ipynb").read_text())
    results_parts = [f"{group}/index" for group in GROUPS]
    others = ["explore/index", "guides/index", "library/index", "reference/index"]
    parts = ["Start <self>", *results_parts, *others]
    contents = dict(cell_type="markdown", id="contents", metadata={}, source=toctree(parts))
    nb["cells"].append(contents)
    write_notebook("index", nb)


LIBRARY = """# The library

`crate_nb` is made of {} notebooks. A notebook uses only notebooks with lower numbers, so they can \
be read in order. Each goes from the formula to the code to a test."""
GUIDES_HEAD = """# Guides

How to use `crate_nb`, step by step. Each guide is a notebook that runs as it stands, and that is \
run as a test."""


def notebooks_part():
    "The pages of the library and of the guides."
    library = [f"nbs/{p.name}" for p in MODULES.values()]
    guides = [f"nbs/guides/{g}.ipynb" for g in GUIDES]
    for source in library + guides:
        numbers = numbers_of(source)
        if source in guides[1:]:
            numbers += " Needs [an installation](first_hour.ipynb#install)."
        page_of(source, head=line_of(source, numbers))
    notebooks_index("library/index", LIBRARY.format(len(library)), library)
    notebooks_index("guides/index", GUIDES_HEAD, guides)
    start_page()


if __name__ == "__main__":
    if set(GUIDES) ^ {p.stem for p in (ROOT / "nbs" / "guides").glob("*.ipynb")}:
        sys.exit("GUIDES is not what lies in nbs/guides")
    for folder in (OUT, EXTRA):
        shutil.rmtree(folder, ignore_errors=True)
    notebooks_part()
    results_part()
    explore_part()
    reference_part()
    notebooks, others = (sum(1 for _ in OUT.rglob(f"*.{ending}")) for ending in ("ipynb", "md"))
    print(f"{notebooks} notebooks and {others} other pages in {os.path.relpath(OUT, ROOT)}")
