"""What the book says of each figure and table of the paper: print, measurement, cost.

Every number comes from a record, a printed table, or a file of figures/<scale>.
"""

import json
from functools import lru_cache
import pandas as pd

import reference
from crate_nb.study.claims import Evidence, printed
from crate_nb.core import home
from crate_nb.study.figures import Page, RESULTS, markdown_table, stem
from crate_nb.study.report import spent
from crate_nb.training.records import Record
from crate_nb.training.trials import Trials
from crate_nb.training.sweeps import plan
from crate_nb.training.sweeps import duration

SCALE, LABEL = "small", "cifar10-jpeg75"  # whose records the book shows
SCALES = (SCALE, "untrained")  # the profiles before training are at the paper's own architecture
FIGURES = {s: home() / "figures" / s for s in SCALES}
REPORT = f"{stem('reproducibility', SCALE, LABEL)}.md"
OWNERS = {  # a page's name -> the key in `RESULTS` of the result that it belongs to
    name: key for key, result in RESULTS.items() for name in result.pages
}


@lru_cache
def evidence() -> Evidence:
    "The records, read once for all pages."
    return Evidence(SCALE, LABEL)


@lru_cache
def verdicts() -> pd.DataFrame:
    "One row per claim, as `figures/<scale>` has it."
    path = FIGURES[SCALE] / f"{stem('claims', SCALE, LABEL)}.csv"
    return pd.read_csv(path, keep_default_na=False).set_index("id")


def saved(name: str) -> dict | None:
    "A saved figure or table, with the data set's label or without, and its folder."
    for scale, folder in FIGURES.items():
        for file in (stem(name, scale, LABEL), name):
            path = folder / f"{file}.json"
            if path.is_file():
                return dict(json.loads(path.read_text()), folder=folder)
    return None


def saved_by(key: str) -> list[str]:
    "The names of what the notebook of a result saved, in its order."
    files = [path for folder in FIGURES.values() for path in folder.glob("*.json")]
    found = [json.loads(path.read_text()) for path in files]
    mine = [about for about in found if about["notebook"] == key]
    return [about["name"] for about in sorted(mine, key=lambda about: about["index"])]


NO_MODELS = (
    "Numbers: computed from fixed seeds and the paper's printed tables; no model is trained."
)


def of_trials(experiment: str) -> str:
    "Where the numbers of an experiment's trials come from, and what they cost."
    trials = list(Trials(experiment, SCALE))
    seconds = sum(t.provenance.get("seconds", 0) for t in trials)  # early trials do not tell
    cost = f", {duration(seconds)} of one CPU core" if seconds else ""
    where = f"data/trials/{SCALE}/{experiment}"
    return f"Numbers: {len(trials)} trials of scale `{SCALE}` in `{where}`{cost}."


def provenance(key: str) -> str:
    "Where the numbers of a result come from."
    experiment = RESULTS[key].experiment
    if key == "init":
        records = evidence().on("untrained").records("fig2")
        return f"Numbers: {len(records)} records of scale `untrained`, data set `{LABEL}`."
    if RESULTS[key].trials and experiment is None:
        return of_trials(RESULTS[key].trials)
    if key == "claims":
        return f"Numbers: all records of scale `{SCALE}`, data set `{LABEL}`."
    if experiment is None:
        return NO_MODELS
    there, wanted = len(evidence().records(experiment)), len(plan(experiment, SCALE, LABEL))
    records = f"{there} records of scale `{SCALE}`, data set `{LABEL}`"
    if there >= wanted:
        return f"Numbers: {records}."
    return f"Numbers: the paper's, and {records}, of the {wanted} that it takes."


def machine(record: Record) -> str:
    "What a run was trained on."
    device, threads = record.provenance["device"], record.provenance["threads"]
    return f"{device} ({threads} thread{'s' if threads > 1 else ''} a run)"


def seconds_left(experiment: str) -> float:
    "About how long the runs take that are not recorded, by the epochs of Table 3's."
    like = evidence().records("tab3")
    seconds = sum(r.provenance["seconds"] for r in like)
    epoch = seconds / sum(r.config.epochs for r in like)
    there = {r.id for r in evidence().records(experiment)}
    return epoch * sum(c.epochs for c in plan(experiment, SCALE, LABEL) if c.id not in there)


def cost(key: str) -> str:
    "What the records of a result cost, or what they will."
    experiment, trials = RESULTS[key].experiment, RESULTS[key].trials
    if trials and experiment is None:
        return of_trials(trials)
    if experiment is None:
        return "Seconds on one CPU core."
    records, runs = evidence().records(experiment), plan(experiment, SCALE, LABEL)
    if len(records) >= len(runs):
        chips = ", ".join(sorted(set(map(machine, records))))
        return (
            f"{len(records)} runs, {spent(records)} of training and measuring in all, "
            f"one after the other, on {chips}. Drawing the result again takes seconds."
        )
    return (
        f"{len(runs)} runs, {len(records)} of them recorded; "
        f"the rest takes about {duration(seconds_left(experiment))} of one core, "
        f"if an epoch takes as long as in the {len(evidence().records('tab3'))} runs of Table 3."
    )


def table(frame: pd.DataFrame, escape: str = "|*") -> str:
    "A table as markdown, in a box that scrolls."
    return f"{{.scroll}}\n{markdown_table(frame, escape)}\n"


def intro(key: str) -> str:
    "What the notebook of a result says first, without its title and its command."
    path = reference.ROOT / "nbs" / f"{RESULTS[key].notebook}.ipynb"
    paragraphs = reference.first_text(path).split("\n\n")[1:]
    return "\n\n".join(p for p in paragraphs if not p.startswith("Run it:"))


def printed_text(page: Page) -> str:
    "What the paper prints: its table, or, for a figure, that it prints no numbers."
    if page.printed:
        return table(printed(page.printed).rename(columns=lambda c: c.replace("_", " ")))
    if not page.claims:
        return (
            "The axes of the grid. Our text of the paper gives only width 384; "
            "the other values are chosen here, and marked in [the report](report.md)."
        )
    numbers = [number for number in verdicts().paper[list(page.claims)] if number]
    says = "A figure without numbers. The claim above is what the paper's text says of it"
    if not numbers:
        return f"{says}."
    found = ", ".join(numbers)
    return f"{says}; from the table beside it follows {found} for the check that decides."
