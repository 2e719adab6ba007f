"""Make the pages of the book in build/docs from notebooks, records and figures; Sphinx then makes the site of them.

usage: python docs/stage.py
"""

import json, os, re, shutil, sys
from configparser import ConfigParser
from pathlib import Path

from PIL import Image
import reference
from reference import MODULES, ROOT
from crate_nb.core import home
from crate_nb.figures import _MARKS as MARKS, is_fresh
import results

OUT = ROOT / "build" / "docs"
settings = ConfigParser()
settings.read(ROOT / "settings.ini")
settings = settings["DEFAULT"]
SOURCE = f"{settings['git_url']}/blob/{settings['branch']}"
COLAB = (
    settings["git_url"].replace("https://github.com", "https://colab.research.google.com/github")
    + f"/blob/{settings['branch']}"
)

# Which notebook is which page: path in the repository -> page of the book
GUIDES = [
    "what_we_found",
    "first_hour",
    "add_a_variant",
    "add_a_measure",
    "own_images",
    "official_checkpoint",
    "regulariser",
    "slurm",
    "rented_gpu",
    "records",
]
EXECUTED = {
    p.name: p
    for s in reversed(results.SCALES)
    for p in (results.FIGURES[s] / "notebooks").glob("*.ipynb")
}
PAGES = {
    "nbs/index.ipynb": "index",
    "README.md": "index",
    "data/README.md": "reference/records",
    f"figures/{results.SCALE}/report.html": "paper/index",
    f"figures/{results.SCALE}/{results.REPORT}": "paper/report",
}
PAGES |= {f"nbs/{p.name}": f"library/{p.stem}" for p in MODULES.values()}
PAGES |= {f"nbs/guides/{g}.ipynb": f"guides/{g}" for g in GUIDES}
PAGES |= {f"nbs/paper/{n}.ipynb": f"paper/{n}" for n in results.NOTEBOOKS.values()}

MADE = {"reference/records", "paper/index", "paper/report"}  # pages that are no notebooks


def relative(target: str, page: str) -> str:
    return os.path.relpath(target, Path(page).parent)


# ---------------------------------------------------------------- markdown


def resolve(link: str, source: str, page: str) -> str:
    "A link of a notebook (relative to it) as a link of its page: to another page, to a picture that is copied, or to the repository."
    if re.match(r"[a-z]+:|#", link):
        return link
    path, _, anchor = link.partition("#")
    path = os.path.normpath(Path(source).parent / path)
    if path in PAGES:
        return relative(PAGES[path] + (".md" if PAGES[path] in MADE else ".ipynb"), page) + (
            f"#{anchor}" if anchor else ""
        )
    if not (ROOT / path).exists():
        sys.exit(f"{source}: the link to {link} leads nowhere")
    return (
        f"{SOURCE}/{path}"
        if (ROOT / path).is_file()
        else f"{SOURCE.replace('/blob/', '/tree/')}/{path}"
    )


def picture(link: str, source: str, page: str) -> str:
    "A picture, copied beside the pages."
    path = os.path.normpath(Path(source).parent / link)
    (OUT / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / path, OUT / path)
    return relative(path, page)


def width_of(link: str, source: str) -> str:
    "The width at which a picture of figures/ (200 dots an inch) has the size that it was drawn for."
    path = ROOT / os.path.normpath(Path(source).parent / link)
    with Image.open(path) as image:
        return f"{{width={image.width // 2}px}}"


def names_of(found: dict[str, list[reference.Entry]]) -> dict[str, str]:
    "What text may call an exported name -> the object that the reference describes; a name that two modules export is left out."
    all_names = [
        (e.name, f"crate_nb.{m}.{e.name}")
        for m, es in found.items()
        for x in es
        for e in (x, *x.members)
    ]
    short = {n: full for n, full in all_names if sum(n == o for o, _ in all_names) == 1}
    return (
        short
        | {
            f"{m}.{n}": full
            for n, full in all_names
            for m in MODULES
            if full == f"crate_nb.{m}.{n}"
        }
        | {full: full for _, full in all_names}
    )


NAMES = names_of(reference.entries())


def prose(text: str, source: str, page: str) -> str:
    "Markdown of a notebook as markdown of its page: links led on, exported names linked to the reference."
    parts = re.split(r"(?ms)(^```.*?^```$)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(
            r"!\[([^\]]*)\]\(([^)\s]+)\)",
            lambda m: f"![{m[1]}]({picture(m[2], source, page)}){width_of(m[2], source)}",
            parts[i],
        )
        parts[i] = re.sub(
            r"(?<!\!)\[([^\]]+)\]\(([^)\s]+)\)",
            lambda m: f"[{m[1]}]({resolve(m[2], source, page)})",
            parts[i],
        )
        lines = [
            l
            if l.startswith("#")
            else re.sub(r"(?<![\[`\w{}])`([\w.]+)(\(\))?`(?![\]`])", lambda m: linked(m, page), l)
            for l in parts[i].split("\n")
        ]
        parts[i] = "\n".join(lines)
    return "".join(parts)


def linked(m: re.Match, page: str) -> str:
    "A name in code style, as a link to its entry if it has one. A plain word (`margin`) may be a field or an option: it leads on from its own module's pages alone, or when it is called."
    target = NAMES.get(m[1])
    if target is None or len(m[1]) <= 3:
        return m[0]
    home = re.search(r"^(?:library/\d\d_|reference/)(\w+)$", page)
    if (
        re.fullmatch("[a-z]+", m[1])
        and not m[2]
        and not (home and target == f"crate_nb.{home[1]}.{m[1]}")
    ):
        return m[0]
    return f"{{py:obj}}`{m[1]}{m[2] or ''} <{target}>`"


def escaped(text: str, page: str = "", own: tuple[str, ...] = ()) -> str:
    "A docstring or comment as markdown: nothing of it means markup but its code style, and a name in code style leads to its entry, unless it is one of the function's own."

    def one(m):
        return (
            linked(m, page)
            if m[1] and m[1] not in own
            else m[0]
            if m[0].startswith("`")
            else "\\" + m[0]
        )

    return re.sub(r"`([\w.]+)(\(\))?`|`[^`]+`|[\\*_<>\[\]$|{}~#]", one, text)


# ---------------------------------------------------------------- notebooks

DIRECTIVE = re.compile(r"^#\| ?\w.*\n?", re.M)


def cleaned(cell: dict, source: str, page: str) -> dict | None:
    "A cell as the page shows it; None for one that it does not show."
    text, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
    if (
        cell["cell_type"] == "raw"
        or re.search(r"^#\| ?(hide|default_exp)\b", text, re.M)
        or "setup" in tags
    ):
        return None
    if cell["cell_type"] == "markdown":
        return dict(cell, source=prose(text, source, page), metadata={})
    text = DIRECTIVE.sub("", text).strip("\n")
    outputs = [o for o in cell["outputs"] if o.get("name") != "stderr"]
    for o in outputs:
        if "text/markdown" in o.get("data", {}):
            o["data"] = {"text/markdown": prose("".join(o["data"]["text/markdown"]), source, page)}
    if not text:
        return None
    return dict(
        cell,
        source=text,
        outputs=outputs,
        metadata=dict(tags=["remove-input"]) if "hide" in tags else {},
    )


def page_of(source: str, executed: Path | None = None, head: str = ""):
    "Stage a notebook; `executed` is the copy whose outputs are shown."
    page, nb = PAGES[source], json.loads((executed or ROOT / source).read_text())
    if any(c.get("outputs") for c in nb["cells"]) and not is_fresh(ROOT / source, executed):
        sys.exit(
            f"{executed or source}: its outputs are not from its present code and records; make test says what refreshes it"
        )
    cells = [c for c in (cleaned(c, source, page) for c in nb["cells"]) if c]
    for c in cells:
        c.pop("attachments", None)
    first = cells[0]["source"].split("\n", 1)
    cells[0]["source"] = first[0] + "\n\n" + head + (first[1] if len(first) > 1 else "")
    nb = dict(
        cells=cells,
        metadata=dict(
            kernelspec=nb["metadata"]["kernelspec"],
            language_info=dict(name="python", pygments_lexer="ipython3"),
        ),
        nbformat=4,
        nbformat_minor=5,
    )
    write(f"{page}.ipynb", json.dumps(nb, indent=1, ensure_ascii=False))


def write(path: str, text: str):
    (OUT / path).parent.mkdir(parents=True, exist_ok=True)
    (OUT / path).write_text(text)


def line_of(source: str, numbers: str) -> str:
    "The line under a title: where the notebook is, how to run it, where its numbers come from."
    return f"{{.provenance}}\n{numbers} Notebook: [{source}]({SOURCE}/{source}), [open in Colab]({COLAB}/{source}).\n\n"


# ---------------------------------------------------------------- the paper


def shown(name: str, page: str) -> str:
    "A saved figure or table with its title and caption."
    r = results.saved(name)
    if r is None:
        return ""
    caption = f"{{.figure-text}}\n{maths(r['caption'])}\n"
    if r["kind"] == "table":
        import pandas as pd

        return f"### {maths(r['title'])}\n\n{results.table(pd.DataFrame(r['rows'], columns=r['columns']))}\n{caption}"
    path = (r["folder"] / f"{r['name']}.png").relative_to(ROOT)
    return f"### {maths(r['title'])}\n\n![{maths(r['title'])}]({picture(str(path), 'README.md', page)}){width_of(str(path), 'README.md')}\n\n{caption}"


def maths(text: str) -> str:
    "A caption as markdown: R^c and alpha as formulas."
    return re.sub(r"R\^c\b", "$R^c$", escaped(text))


def verdict_table(ids: tuple[str, ...]) -> str:
    import pandas as pd

    v = results.verdicts()
    rows = [
        {
            "claim": f"`{i}`",
            "verdict": f"**{MARKS[v.verdict[i]]} {v.verdict[i]}**",
            "measured, with its interval": maths(v.measured[i]),
            "n": v.n[i] or "",
            "paper": v.paper[i],
            "elsewhere": v.elsewhere[i],
            "to settle it": v.settle[i],
        }
        for i in ids
    ]
    return "{.scroll}\n" + pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True) + "\n"


def result_page(name: str, r: results.Result):
    "The page of a figure or table."
    page, notebook = f"paper/{name}", f"nbs/paper/{results.NOTEBOOKS[r.key]}.ipynb"
    v = results.verdicts().verdict
    claims = (
        "\n".join(
            f"- `{i}` ({results.CLAIMS[i].source}): “{maths(results.CLAIMS[i].quote)}”. Tested: {maths(results.CLAIMS[i].says)}. **{MARKS[v[i]]} {v[i]}**"
            for i in r.claims
        )
        or "It states no claim of its own: it says which models the tables are about."
    )
    figures = (
        "\n".join(filter(None, (shown(n, page) for n in r.shown)))
        or f"Nothing yet at scale `{results.SCALE}`: its runs are not recorded.\n"
    )
    paper = results.printed_text(r)
    verdict = (
        verdict_table(r.claims)
        + "\n`measured` is the check that decides, with its 95 % interval; what the words mean stands in [Claims](../library/12_claims.ipynb).\n"
        if r.claims
        else "None.\n"
    )
    how = prose(results.intro(r.key), notebook, page)
    write(
        f"{page}.md",
        f"""# {r.title}

{{.provenance}}
{results.provenance(r.key)}

## The claim

{claims}

## What the paper prints

{paper}

## What we measured

{figures}
## The verdict

{verdict}
## The command

```bash
# at scale quick, from nothing
crate-nb reproduce --only {r.key}
# what this page shows; recorded runs are not trained again
crate-nb reproduce --only {r.key} --scale {results.SCALE} --dataset {results.LABEL}
# the paper's setting, on one GPU
crate-nb reproduce --only {r.key} --scale paper
```

## The cost

{results.cost(r.key)}

## How

{how}

All of it, with the code: [{results.NOTEBOOKS[r.key]}]({results.NOTEBOOKS[r.key]}.ipynb).
""",
    )


def paper_part():
    "The pages of the paper's results, of the notebooks behind them, and of the report."
    for name, r in results.RESULTS.items():
        result_page(name, r)
    keys = {v: k for k, v in results.NOTEBOOKS.items()}
    for source, page in PAGES.items():
        if source.startswith("nbs/paper/"):
            copy = EXECUTED.get(Path(source).name)
            page_of(
                source,
                copy,
                line_of(
                    source,
                    results.provenance(keys[Path(source).stem])
                    if copy
                    else f"Not run at scale `{results.SCALE}` yet, so it shows no numbers.",
                ),
            )
    report = (results.FIGURES[results.SCALE] / results.REPORT).read_text()
    report = re.sub(r"`[^`]*`|R\^c", lambda m: m[0] if m[0].startswith("`") else "$R^c$", report)
    write(
        "paper/report.md",
        prose(report, f"figures/{results.SCALE}/{results.REPORT}", "paper/report"),
    )
    v = results.verdicts()
    counts = ", ".join(f"{(v.verdict == k).sum()} {k}" for k in MARKS if (v.verdict == k).any())
    rows = "\n".join(
        f"| [{r.title}]({n}.md) | {', '.join(f'{i} {MARKS[v.verdict[i]]}' for i in r.claims) or '–'} |"
        for n, r in results.RESULTS.items()
    )
    notebooks = [Path(p).name for s, p in PAGES.items() if s.startswith("nbs/paper/")]
    write(
        "paper/index.md",
        f"""# The paper

{{.provenance}}
Verdicts from the records of scale `{results.SCALE}`, data set `{results.LABEL}`; Figures 1 and 5 need no data.

*An In-depth Investigation of Sparse Rate Reduction in Transformer-like Models* (Hu, Zou and Xu, NeurIPS 2024), figure by figure and table by table: the claim, what the paper prints, what we measured, the verdict, the command, its cost, and how. {len(v)} claims: {counts} ({", ".join(f"{m} {k}" for k, m in MARKS.items())}).

| page | claims |
|:---|:---|
{rows}

[The reproducibility report](report.md) says the same in the form of the ML Reproducibility Challenge: scope, methodology, compute, results, what differs and what the paper leaves open, each number with the records that it comes from.

```{{toctree}}
:hidden:

{chr(10).join(results.RESULTS)}
report
```

```{{toctree}}
:hidden:
:caption: Behind the paper's pages

{chr(10).join(notebooks)}
```
""",
    )


# ---------------------------------------------------------------- the reference


def described(e: reference.Entry, module: str, depth: int = 4) -> str:
    "An entry as a directive of Sphinx."
    fence = "`" * (depth + 2)
    shown = (
        ""
        if e.kind in ("data", "property")
        else "("
        + ", ".join(p.text for p in e.parts)
        + ")"
        + (f" -> {e.returns}" if e.returns else "")
    )
    if e.kind == "class":
        shown = (
            "(" + ", ".join(p.text for p in e.parts if not p.text.startswith("model_config")) + ")"
        )

    def text(t):
        return escaped(t, f"reference/{module}", tuple(p.name for p in e.parts))

    options = [
        f":{k}: {v}"
        for k, v in dict(type=e.returns, value=e.value).items()
        if v and e.kind == "data"
    ]
    lines = ["\n".join([*options, "", text(e.doc)])]
    lines += [f":param {p.name.lstrip('*')}: {text(p.doc)}" for p in e.parts]
    if e.returned:
        lines.append(f":returns: {text(e.returned)}")
    lines += [
        f":raises UserError: {text(m)}"
        for m in (re.sub("--[a-z]+", r"`\g<0>`", m) for m in e.errors)
    ]
    body = lines[0] + "\n\n" + "\n".join(lines[1:])
    body += "".join("\n\n" + described(m, module, depth - 1) for m in e.members)
    return f"{fence}{{py:{e.kind}}} {e.name}{shown}\n{body}\n{fence}"


def slug(heading: str) -> str:
    "The anchor that myst gives a heading."
    from myst_parser.mdit_to_docutils.base import default_slugify

    return default_slugify(
        re.sub(r"\$[^$]*\$", "", heading)
    )  # of a heading, myst takes the text without its formulas


def module_page(module: str, found: list[reference.Entry]):
    "The reference page of a module, in the order of its notebook."
    notebook = MODULES[module]
    intro = next(
        m[1]
        for c in json.loads(notebook.read_text())["cells"]
        if (m := re.search(r"(?m)^> (.+(?:\n> .+)*)", "".join(c["source"])))
    )
    page, out, last, above = f"reference/{module}", [], None, None
    for e in found:
        if e.section != last:
            anchor = f"../library/{notebook.stem}.ipynb" + (
                f"#{slug(e.section)}"
                if e.section and not e.section.startswith(module.capitalize())
                else ""
            )
            out.append(
                f"## {e.section}\n\n{{.provenance}}\nExplained in [{notebook.stem}, *{e.section}*]({anchor})."
            )
            last = e.section
        if e.equations and e.equations is not above:
            out += [f"$$\n{q.strip()}\n$$" for q in e.equations]
        above = e.equations
        out.append(described(e, module))
    write(
        f"{page}.md",
        f"# `crate_nb.{module}`\n\n```{{py:module}} crate_nb.{module}\n:no-index-entry:\n```\n\n"
        + prose(" ".join(intro.replace("\n> ", " ").split()), f"nbs/{notebook.name}", page)
        + f" Notebook: [{notebook.stem}](../library/{notebook.stem}.ipynb)."
        + " Options: [command line](command_line.md)." * (module == "cli")
        + "\n\n"
        + "\n\n".join(out)
        + "\n",
    )


def command_page():
    "The command line, as its own help says it."
    import click
    from crate_nb.cli import cli

    def helps(command, name):
        context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
        own = [f"## `{name}`\n\n```text\n{command.get_help(context)}\n```"]
        return own + (
            [h for n, c in sorted(command.commands.items()) for h in helps(c, f"{name} {n}")]
            if isinstance(command, click.Group)
            else []
        )

    write(
        "reference/command_line.md",
        "# Command line\n\nA mistake gives one line and exit code 2, before any work. How it is built: [14_cli](../library/14_cli.ipynb).\n\n"
        + "\n\n".join(helps(cli, "crate-nb"))
        + "\n",
    )


def reference_part():
    "A page for each module, the command line, and the dictionary of the data."
    found = reference.entries()
    for module, es in found.items():
        module_page(module, es)
    command_page()
    write(
        "reference/records.md",
        prose((ROOT / "data" / "README.md").read_text(), "data/README.md", "reference/records"),
    )
    rows = "\n".join(
        f"| [`crate_nb.{m}`]({m}.md) | {', '.join(f'{{py:obj}}`{e.name} <crate_nb.{m}.{e.name}>`' for e in es)} |"
        for m, es in found.items()
    )
    write(
        "reference/index.md",
        f"# Reference\n\nEvery exported name, with its parameters, shapes, units, errors and equation, made from the [notebooks](../library/index.md). [Command line](command_line.md) · [data and records](records.md) · {{ref}}`all names <genindex>`\n\n{{.scroll}}\n| module | names |\n|:---|:---|\n{rows}\n\n"
        + toctree(["command_line", "records", *found]),
    )


# ---------------------------------------------------------------- the rest


def toctree(pages) -> str:
    return "```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def title(source: str) -> tuple[str, str]:
    "A notebook's title, and the sentence below it."
    text = "".join(
        next(
            c
            for c in json.loads((ROOT / source).read_text())["cells"]
            if c["cell_type"] == "markdown"
        )["source"]
    )
    quote = re.search(r"(?m)^> (.+(?:\n> .+)*)", text)
    return text.split("\n")[0].lstrip("# "), " ".join(
        quote[1].replace("\n> ", " ").split()
    ) if quote else ""


def listing(sources, page: str) -> str:
    "A list of notebooks, each with its sentence."
    rows = [(PAGES[s], *title(s)) for s in sources]
    return "\n".join(
        f"- [{t}]({relative(p, page)}.ipynb): {prose(sentence, s, page)}"
        for s, (p, t, sentence) in zip(sources, rows)
    )


def numbers_of(source: str) -> str:
    "Where a notebook's numbers come from, by what its code reads."
    read = list(json.loads((ROOT / source).read_text())["metadata"]["stamp"]["records"])
    return (
        f"Numbers: records of scale `{read[0]}`, data set `{results.LABEL}`, and its own cells."
        if read
        else "Numbers: made by its own cells; no record is read."
    )


def notebooks_part():
    library, guides = (
        [f"nbs/{p.name}" for p in MODULES.values()],
        [f"nbs/guides/{g}.ipynb" for g in GUIDES],
    )
    for s in library + guides:
        page_of(
            s,
            head=line_of(
                s,
                numbers_of(s)
                + (
                    " Needs [an installation](first_hour.ipynb#install)." if s in guides[1:] else ""
                ),
            ),
        )
    write(
        "library/index.md",
        f"# The library\n\n{len(library)} notebooks, of which `crate_nb` is made. The number is the floor: a notebook uses only lower numbers, so they can be read in order. Each goes from the formula to the code to a test.\n\n"
        + listing(library, "library/index")
        + "\n\n"
        + toctree([Path(PAGES[s]).name for s in library]),
    )
    write(
        "guides/index.md",
        "# Guides\n\nHow to use it, step by step. Each is a notebook that runs as it stands, and is run as a test.\n\n"
        + listing(guides, "guides/index")
        + "\n\n"
        + toctree([Path(PAGES[s]).name for s in guides]),
    )
    page_of("nbs/index.ipynb")
    path = OUT / "index.ipynb"
    nb = json.loads(path.read_text())
    nb["cells"].append(
        dict(
            cell_type="markdown",
            id="contents",
            metadata={},
            source=toctree(
                ["Start <self>", "paper/index", "guides/index", "library/index", "reference/index"]
            ),
        )
    )
    path.write_text(json.dumps(nb, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    if set(GUIDES) ^ {p.stem for p in (ROOT / "nbs" / "guides").glob("*.ipynb")}:
        sys.exit("GUIDES is not what lies in nbs/guides")
    shutil.rmtree(OUT, ignore_errors=True)
    notebooks_part()
    paper_part()
    reference_part()
    print(
        f"{sum(1 for _ in OUT.rglob('*.ipynb'))} notebooks and {sum(1 for _ in OUT.rglob('*.md'))} other pages in {os.path.relpath(OUT, ROOT)}"
    )
