"""One page for each figure and table of the paper: claim, print, measurement, verdict, command, cost, and how. Every number comes from a record, a printed table, or a file of figures/<scale>."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
import pandas as pd

from crate_nb.claims import CLAIMS, Evidence, printed
from crate_nb.core import home
from crate_nb.figures import NOTEBOOKS, stem
from crate_nb.runs import EXPERIMENTS, plan
from crate_nb.training import duration

SCALE, LABEL = "small", "cifar10-jpeg75"  # whose records the book shows
SCALES = (SCALE, "untrained")  # the profiles before training are at the paper's own architecture
FIGURES = {s: home() / "figures" / s for s in SCALES}
REPORT = f"{stem('reproducibility', SCALE, LABEL)}.md"


@dataclass(frozen=True)
class Result:
    "A figure or table of the paper."

    title: str
    key: str  # what `--only` calls it
    claims: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # what `figures/<scale>` has of it
    printed: str | None = None  # the paper's own table


RESULTS = {
    "figure_1": Result("Figure 1: the pitfalls", "fig1", ("fig1a", "fig1b"), ("fig1a", "fig1b")),
    "figure_2": Result(
        "Figure 2: SRR by layer",
        "fig2",
        ("fig2-init", "fig2-train"),
        (
            "fig2_untrained",
            "fig2_turns",
            "fig2_search",
            "fig2_srr_by_layer",
            "fig2_terms",
            "fig2_eps",
            "fig2_orthonormality",
        ),
    ),
    "figure_3": Result(
        "Figure 3: SRR along training", "fig2", ("fig2-train",), ("fig3_srr_by_epoch",)
    ),
    "figure_4": Result(
        "Figure 4: SRR and the generalisation gap", "tab1", ("tab1-best",), ("fig4_srr_gap",)
    ),
    "figure_5": Result("Figure 5: five update rules", "fig1", ("fig5",), ("fig5", "fig5_map")),
    "figure_6": Result(
        "Figure 6: the gap at the other width", "tab1", ("tab5-best",), ("fig6_srr_gap",)
    ),
    "table_1": Result(
        "Table 1: 23 measures",
        "tab1",
        ("tab1-positive", "tab1-best", "tab1-type", "tab1-norms", "tab1-flat"),
        ("tab1", "tab1_taus", "tab1_srr_choices", "tab1_srr_ranks", "tab1_confounds"),
        "table1_correlation_width384",
    ),
    "table_2": Result(
        "Table 2: SRR as a regulariser",
        "tab2",
        ("tab2", "tab2-cifar100"),
        ("tab2",),
        "table2_regularization",
    ),
    "table_3": Result(
        "Table 3: the output matrix",
        "tab3",
        ("tab3-order", "tab3-transpose", "tab3-negative"),
        ("tab3", "tab3_accuracy"),
        "table3_output_matrix",
    ),
    "table_4": Result("Table 4: the grid of models", "tab1", (), ("tab4",)),
    "table_5": Result(
        "Table 5: 23 measures at the other width",
        "tab1",
        ("tab5-best", "tab5-flat"),
        ("tab5",),
        "table5_correlation_other_width",
    ),
    "table_6": Result(
        "Table 6: which layer to regularise",
        "tab2",
        ("tab6-last", "tab6-shallow", "tab6-random"),
        ("tab6", "tab6_gains"),
        "table6_layer_choice_cifar10",
    ),
}


@lru_cache
def evidence() -> Evidence:
    "The records, read once for all pages."
    return Evidence(SCALE, LABEL)


@lru_cache
def verdicts() -> pd.DataFrame:
    "One row per claim, as `figures/<scale>` has it."
    return pd.read_csv(
        FIGURES[SCALE] / f"{stem('claims', SCALE, LABEL)}.csv", keep_default_na=False
    ).set_index("id")


def saved(name: str) -> dict | None:
    "A saved figure or table: its own, or that with the data set's label."
    path = next(
        (
            p
            for s in SCALES
            for p in (FIGURES[s] / f"{stem(name, s, LABEL)}.json", FIGURES[s] / f"{name}.json")
            if p.is_file()
        ),
        None,
    )
    return dict(json.loads(path.read_text()), folder=path.parent) if path else None


def provenance(key: str) -> str:
    "Where a page's numbers come from."
    if key == "init":
        return f"Numbers: {len(evidence().on('untrained').records('fig2'))} records of scale `untrained`, data set `{LABEL}`."
    if key == "mechanism":
        return f"Numbers: models that the notebook trains itself, at scale `{SCALE}`, data set `{LABEL}`; its captions say how many, and how."
    if key not in EXPERIMENTS:
        return (
            "Numbers: computed from fixed seeds and the paper's printed tables; no model is trained."
            if key != "claims"
            else f"Numbers: all records of scale `{SCALE}`, data set `{LABEL}`."
        )
    there, wanted = len(evidence().records(key)), len(plan(key, SCALE, LABEL))
    return (
        f"Numbers: {there} records of scale `{SCALE}`, data set `{LABEL}`."
        if there >= wanted
        else f"Numbers: the paper's, and {there} records of scale `{SCALE}`, data set `{LABEL}`, of the {wanted} that it takes."
    )


def cost(key: str) -> str:
    "What the records cost, or what they will."
    if key not in EXPERIMENTS:
        return "Seconds on one CPU core."
    records, runs = evidence().records(key), plan(key, SCALE, LABEL)
    if len(records) >= len(runs):
        chips = ", ".join(
            sorted(
                {
                    f"{r.provenance['device']} ({r.provenance['threads']} thread{'s' if r.provenance['threads'] > 1 else ''} a run)"
                    for r in records
                }
            )
        )
        return f"{len(records)} runs, {duration(sum(r.seconds for r in records))} of training and measuring in all, one after the other, on {chips}. Drawing it again from them takes seconds."
    like = evidence().records("tab3")
    each = sum(r.provenance["seconds"] for r in like) / sum(r.config.epochs for r in like)
    left = {c.id: c for c in runs}.keys() - {r.id for r in records}
    return f"{len(runs)} runs, {len(records)} of them recorded; the rest takes about {duration(each * sum(c.epochs for c in runs if c.id in left))} of one core, if an epoch takes as long as in the {len(like)} runs of Table 3."


def table(frame: pd.DataFrame) -> str:
    "A table as markdown; a vertical bar in a cell would end it."
    return (
        "{.scroll}\n"
        + frame.astype(str)
        .map(lambda v: v.replace("|", "\\|").replace("*", "\\*"))
        .to_markdown(index=False, disable_numparse=True)
        + "\n"
    )


def intro(key: str) -> str:
    "What the notebook says first."
    nb = json.loads(
        (
            Path(__file__).resolve().parent.parent / "nbs" / "paper" / f"{NOTEBOOKS[key]}.ipynb"
        ).read_text()
    )
    text = "".join(next(c for c in nb["cells"] if c["cell_type"] == "markdown")["source"])
    return "\n\n".join(p for p in text.split("\n\n")[1:] if not p.startswith("Run it:"))


def printed_text(r: Result) -> str:
    "What the paper prints: its table, or, for a figure, that it prints no numbers."
    if r.printed:
        return table(printed(r.printed).rename(columns=lambda c: c.replace("_", " ")))
    if r.claims:
        return "A figure, without numbers. What its text says of it is the claim above" + (
            "."
            if not (p := [v for v in verdicts().paper[list(r.claims)] if v])
            else f"; from the table beside it follows {', '.join(p)} for the check that decides."
        )
    return "The axes of the grid, of which our text gives only width 384; the rest is chosen here, and marked in [the report](report.md)."
