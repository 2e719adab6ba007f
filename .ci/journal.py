"""Fill the texts of docs/journal with recorded numbers, and print each as a PDF in build/journal.

`{tab3-rule}` stands for what was measured for a claim, and `{n tab3-rule}` for another of KINDS.
Such a line ends with the signs that it was written for: if one has changed, it is *Being revised*.
`{source | rows | number | format}` is a number computed from a table: a csv of figures/, records,
settings, rules or claims. On a line of its own, `{table | source | rows | columns}` is a table, and
`{output | notebook}` the last text that a notebook shows.
"""

import json, re, shutil
from datetime import date
from functools import cache
from pathlib import Path
import pandas as pd, yaml
from crate_nb.study.results import in_words, nearest_answers, read_results, saved_answers
from crate_nb.training.records import Store
from crate_nb.training.runs import read_rules, scale_config

ROOT = Path(__file__).resolve().parent.parent
SOURCE, OUT = ROOT / "docs" / "journal", ROOT / "build" / "journal"
AUTHOR = yaml.safe_load((ROOT / "CITATION.cff").read_text())["authors"][0]["name"]
KINDS = {  # word before a claim's id -> what it stands for
    "share": lambda a: a.measured.str.replace("+", ""),  # a share has no sign
    "printed": lambda a: a.paper.astype(str),
    "n": lambda a: a.n.astype(str),
}
NUMBER = re.compile(r"\{([^{}|]+) \| ([^{}|]*) ?\| ([^{}|]+?)(?: \| ([^{}| ]+))?\}")
TABLE = re.compile(r"^\{table \| ([^|]+) \| ([^|]*) ?\| ([^{}|]+)\}$", re.M)
OUTPUT = re.compile(r"\{output \| ([^{}|]+)\}")
LINK = re.compile(r" ?\[[^]]+\]\([^)]+\)[^.]*\.")  # with the rest of its sentence
SIGNS = re.compile(r"^([-\d.> ]*(?:!\[)?)(.+?)(\{\w+=.+?\})? <!-- written for: (.+?) -->$", re.M)
PICTURE = re.compile(r"(?<=\]\()\.\./\.\./figures/([^)]+\.png)(?=\))")


@cache
def saved(source: str) -> pd.DataFrame:
    "A table by the name of its source."
    if source.startswith("records/"):
        return pd.DataFrame(Store(source.removeprefix("records/")).rows())
    if source == "settings":
        every = {scale: scale_config(scale) for scale in ("small", "medium", "paper")}
        return pd.DataFrame([dict(scale=s) | config.model_dump() for s, config in every.items()])
    if source == "rules":
        of = {
            name: (rule, rule.configs(), Store(rule.scale)) for name, rule in read_rules().items()
        }
        rows = [
            (name, r.question, sum(c in s for c in cs), len(cs)) for name, (r, cs, s) in of.items()
        ]
        return pd.DataFrame(rows, columns=["rule", "question", "recorded", "planned"])
    return pd.read_csv(ROOT / "figures" / f"{source}.csv")


def said(found: re.Match) -> str:
    "The last text that a notebook shows, without links."
    cells = json.loads((ROOT / "nbs" / f"{found[1]}.ipynb").read_text())["cells"]
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return LINK.sub("", "".join([d for d in shown if "text/markdown" in d][-1]["text/markdown"]))


def fill(template: str, answers: pd.DataFrame) -> str:
    "A text with its numbers; `answers` as `nearest_answers` gives them."
    groups = {name: result.group for name, result in read_results().items()}
    claims = answers.assign(group=answers.result.map(groups))
    others = [
        claims.assign(id=f"{kind} " + claims.id, measured=of(claims)) for kind, of in KINDS.items()
    ]
    every = pd.concat([claims, *others])

    def rows(source: str, query: str) -> pd.DataFrame:
        table = claims if source == "claims" else saved(source)
        return table.query(query) if query else table

    def number(found: re.Match) -> str:
        return format(rows(found[1], found[2]).eval(found[3]), found[4] or "")

    def table(found: re.Match) -> str:
        columns = dict(c.split(" as ") if " as " in c else (c, c) for c in found[3].split(", "))
        shown = rows(found[1], found[2])[[*columns]].rename(columns=columns)
        return shown.to_markdown(index=False).replace("R^c", "$R^c$")

    def words(found: re.Match) -> str:
        signs = dict(pair.split(" ", 1) for pair in found[4].split(", "))
        return found[1] + in_words(found[2], signs, every) + (found[3] or "")

    text = SIGNS.sub(words, NUMBER.sub(number, OUTPUT.sub(said, TABLE.sub(table, template))))
    text = re.sub(r"(?<=[ (\[])-(?=\d)", "\N{MINUS SIGN}", text)
    return text.replace("{author}", AUTHOR).replace("{date}", f"{date.today():%-d %B %Y}")


if __name__ == "__main__":
    import pypandoc, typst

    OUT.mkdir(parents=True, exist_ok=True)
    shutil.copy(SOURCE / "paper.bib", OUT)
    answers = nearest_answers(saved_answers(ROOT / "figures"))
    options = ["--standalone", "--citeproc", f"--bibliography={OUT / 'paper.bib'}"]
    options += [f"--metadata-file={SOURCE / 'style.yaml'}", f"--metadata=author:{AUTHOR}"]
    options += ["--columns=1000"]  # no width of a table is fixed, no line is wrapped
    for path in sorted(SOURCE.glob("*.md")):
        text = path.read_text()
        for picture in PICTURE.findall(text):
            shutil.copy(ROOT / "figures" / picture, OUT)
        text = PICTURE.sub(lambda found: Path(found[1]).name, fill(text, answers))
        (OUT / path.name).write_text(text)
        made = OUT / f"{path.stem}.typ"
        pypandoc.convert_text(text, "typst", "markdown", options, outputfile=made)
        typst.compile(made, output=made.with_suffix(".pdf"))
        print(made.with_suffix(".pdf").relative_to(ROOT))
