"One interactive page: every record as a point, SRR by layer, and the paper's five update rules."

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
import pandas as pd, torch
from crate_nb.core import generator
from crate_nb.objective.pitfalls import RULE_NAMES, toy_starts, toy_trajectory
from crate_nb.models.layer import VARIANTS
from crate_nb.training.runs import QUICK_SCALES, SCALES, varied_fields
from crate_nb.training.records import Record, Store, training_name
from crate_nb.study.frames import sealed_ids


def can_draw() -> bool:
    "Whether the libraries for the page are installed."
    return all(map(find_spec, ("altair", "vl_convert")))


def shown_scales(
    scale: str,  # a row of `runs.SCALES`
) -> list[str]:  # `scale` first
    "Scales on the page of a scale: also every other scale with records, except quick ones."
    others = [s for s in SCALES if s not in (scale, *QUICK_SCALES)]
    return [scale, *(s for s in others if Store(s).rows())]


EPS = 0.5  # distortion of the SRR in the first chart, as in the figures
_CONFIG = ["train_size", "patch_size", "dim", "depth", "dropout", "lr", "batch_size", "seed"]
_FINAL = ["test_accuracy", "test_loss", "train_loss", "epochs", "parameters"]


def _member(record: Record) -> str:
    row = VARIANTS[record.config.variant]
    return row.paper or record.config.variant


def _last_srr(record: Record) -> float | None:
    rows = record.probe_frame().sort_values(["epoch", "layer"])
    srr = rows.srr[rows.eps == EPS] if len(rows) else rows.epoch
    return None if srr.empty else srr.iloc[-1]


def _row(record: Record) -> dict[str, Any]:
    final = record.final
    row = {name: final.get(name) for name in _FINAL}
    row |= dict(gap=final["test_loss"] - final["train_loss"], srr=_last_srr(record))
    row |= {name: getattr(record.config, name) for name in _CONFIG}
    row |= dict(member=_member(record), training=training_name(record.config), id=record.id)
    measures = record.measures.get("values", {})
    return row | {f"measure {name}": value for name, value in measures.items()}


def record_table(
    held: Mapping[str, Sequence[Record]],  # scale -> records
) -> pd.DataFrame:  # one row per record
    "Data of the first chart."
    return pd.DataFrame({"scale": s} | _row(r) for s, records in held.items() for r in records)


# column of the probe -> name on the page
TERMS = {"srr": "SRR", "rate": "R (nats)", "subspace_rate": "R^c (nats)", "l0": "non-zero entries"}


def _probes(scale: str, records: Sequence[Record]) -> Iterator[pd.DataFrame]:
    probed = [r for r in records if r.probe.get("layer")]
    fields = varied_fields((r.config for r in probed), ("seed", "variant", "srr_layer"))
    for r in probed:
        unlike = [f"{name} {getattr(r.config, name)}" for name in fields]
        runs = ", ".join([f"{scale}: {training_name(r.config)}", *unlike])
        yield r.probe_frame().rename(columns=TERMS).assign(runs=runs, member=_member(r))


def layer_table(
    held: Mapping[str, Sequence[Record]],  # scale -> records
) -> pd.DataFrame:  # runs, member, epoch, eps, layer; seeds, and each of `TERMS` with its std
    "Data of the second chart: mean and standard deviation over seeds (NaN for one seed)."
    if not (probes := [p for item in held.items() for p in _probes(*item)]):
        return pd.DataFrame()
    keys = ["runs", "member", "epoch", "eps", "layer"]
    groups = pd.concat(probes).groupby(keys, sort=False)
    terms = groups[list(TERMS.values())]
    both = terms.mean().join(terms.std().add_suffix(" std"))
    return both.assign(seeds=groups.size()).reset_index()


STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # kappa
EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # distortions
LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # initial token norms


@cache
def rule_table() -> pd.DataFrame:  # rule, eps, length, step; R^c in nats after 0, 1, ... layers
    "Data of the third chart: the toy experiment, one row per rule and choice."
    choices = list(itertools.product(LENGTHS, STEPS))
    lengths, kappa = torch.tensor(choices, dtype=torch.float64).T[:, :, None, None]
    z, u = toy_starts([generator("explore")])  # shared by all; unit tokens
    frames = []
    for (rule, name), eps in itertools.product(RULE_NAMES.items(), EPSILONS):
        path = toy_trajectory(rule, z * lengths, u[0], eps=eps, kappa=kappa, hold=True)
        rates = pd.DataFrame(torch.cat([path[:, :1, 0], path[..., 1]], 1).numpy())
        keys = pd.DataFrame(choices, columns=["length", "step"])
        frames.append(keys.assign(rule=f"({rule}) {name}", eps=eps).join(rates.rename(columns=str)))
    return pd.concat(frames)


def _inline(table: pd.DataFrame) -> Any:
    alt: Any = import_module("altair")
    text = table.to_csv(index=False, float_format="%.4g")
    numbers = dict.fromkeys(table.select_dtypes("number"), "number")
    return alt.InlineData(text, format=alt.CsvDataFormat(type="csv", parse=numbers))


def _choice(name: str, options: Sequence, start: Any) -> Any:
    alt: Any = import_module("altair")
    return alt.param(name, value=start, bind=alt.binding_select(options=options, name=name))


def _looks(table: pd.DataFrame) -> tuple[Any, Any, Any]:
    alt: Any = import_module("altair")
    rows = {row.paper or name: row.color for name, row in VARIANTS.items()}
    rows = {name: color for name, color in rows.items() if name in set(table.member)}
    columns = alt.expr("max(2, floor(windowSize()[0] / 160))")
    legend = dict(orient="bottom", columns=columns, title=None, symbolOpacity=1, symbolLimit=0)
    look = dict(legend=legend)
    color = alt.Color("member:N", scale=dict(domain=list(rows), range=list(rows.values())), **look)
    shape = alt.Shape("member:N", scale=dict(domain=list(rows)), **look)
    return color, shape, alt.selection_point(fields=["member"], bind="legend")


def _axis(field: str, **more) -> dict[str, Any]:
    return dict(field=field, type="quantitative", title=None, scale=dict(zero=False)) | more


_LAYER = _axis("layer", title="layer", axis=dict(tickMinStep=1, format="d"))


def _record_chart(table: pd.DataFrame) -> Any:
    "The initial selection is the page's scale."
    alt: Any = import_module("altair")
    color, shape, pick = _looks(table)
    numbers = list(table.select_dtypes("number"))
    shown = [dict(field=name) for name in table if not name.startswith("measure")]
    kept = {name: ["all", *table[name].unique()] for name in ("scale", "training")}
    lists = dict(up=(numbers, _FINAL[0]), across=(numbers, "gap"))
    lists |= dict(scale=(kept["scale"], table.scale[0]), training=(kept["training"], "all"))
    isin = " && ".join(f"({name} == 'all' || datum.{name} == {name})" for name in kept)
    return (
        alt.Chart(_inline(table), width="container", height=420)
        .transform_calculate(x="datum[across]", y="datum[up]")
        .transform_filter(f"isValid(datum.x) && isValid(datum.y) && {isin}")
        .transform_filter(pick)
        .mark_point(filled=True, size=60, opacity=0.75)
        .encode(x=_axis("x"), y=_axis("y"), color=color, shape=shape, tooltip=shown)
        .properties(title=alt.Title(alt.expr("up + ', by ' + across"), anchor="start"))
        .add_params(*(_choice(name, *of) for name, of in lists.items()), pick)
    )


def _layer_chart(table: pd.DataFrame) -> Any:
    "One panel per row of `TERMS`, with a line and a band of spread per member."
    alt: Any = import_module("altair")
    color, shape, pick = _looks(table)
    terms, runs = list(TERMS.values()), list(table.runs.unique())
    own = table.runs[table.runs.str.startswith(runs[0].split(":")[0])]  # runs of the page's scale
    shown = [dict(field=name) for name in ("member", "epoch", "layer", "mean", "std", "seeds")]
    lines = alt.Chart(width=260, height=220).encode(x=_LAYER, y=_axis("mean"), color=color)
    band = lines.mark_area(opacity=0.15).encode(y=_axis("low"), y2="high")
    dots = lines.mark_point(filled=True, size=50, opacity=1).encode(shape=shape, tooltip=shown)
    eps, last = sorted(table.eps.unique()), int(table.epoch.max())
    table = table.assign(runs=table.runs.map(runs.index))  # a number is shorter than its text
    until = alt.binding_range(min=0, max=last, step=1, name="epoch, at most")
    return (
        alt.layer(band, lines.mark_line(), dots.add_params(pick))
        .facet(alt.Facet("term:N", sort=terms, title=None), data=_inline(table), columns=4)
        .transform_filter(
            f"datum.runs == indexof({runs}, runs) && datum.eps == eps && datum.epoch <= epoch"
        )
        .transform_joinaggregate(last="max(epoch)", groupby=["member"])
        .transform_filter("datum.epoch == datum.last")
        .transform_filter(pick)
        .transform_fold(terms, as_=["term", "mean"])
        .transform_filter("isValid(datum.mean)")
        .transform_calculate(std="datum[datum.term + ' std']")
        .transform_calculate(low="datum.mean - datum.std", high="datum.mean + datum.std")
        .resolve_scale(y="independent")
        .add_params(_choice("runs", runs, own.mode()[0]), _choice("eps", eps, EPS))
        .add_params(alt.param("epoch", value=last, bind=until))
    )


def _rule_chart(table: pd.DataFrame) -> Any:
    alt: Any = import_module("altair")
    layers = [name for name in table if name.isdigit()]
    lists = dict(eps=(EPSILONS, 1.0), length=(LENGTHS, 1.0), step=(STEPS, 0.1))
    trends = alt.Scale(domain=["falls", "rises"], range=["#0173b2", "#d55e00"])
    color = alt.Color("trend:N", scale=trends, legend=alt.Legend(orient="bottom", title=None))
    return (
        alt.Chart(_inline(table), width=200, height=190)
        .transform_filter(" && ".join(f"datum.{name} == {name}" for name in lists))
        .transform_calculate(trend=f"datum['{layers[-1]}'] < datum['0'] ? 'falls' : 'rises'")
        .transform_fold(layers, as_=["layer", "rate"])
        .mark_line(point=True)
        .encode(x=_LAYER, y=_axis("rate"), color=color, tooltip=["layer:Q", "rate:Q"])
        .facet(alt.Facet("rule:N", title=None), columns=len(RULE_NAMES))
        .resolve_scale(y="independent")
        .add_params(*(_choice(name, *of) for name, of in lists.items()))
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>crate_nb: explore {{ scale }}</title><style>
body { margin: 0 auto; padding: 1rem; max-width: 86rem; color: #1d2329; background: #fff;
  font: 16px/1.5 system-ui, sans-serif }
.vega-embed { width: 100%; display: flex !important; flex-direction: column-reverse }
.vega-bindings { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin-bottom: .6rem }
.vega-bind-name { margin-right: .4rem; font-weight: 600 }
p { max-width: 60rem }
sup { line-height: 0 }
select { font: inherit; max-width: min(28rem, 80vw) }
</style><script>{{ vega }}</script></head><body>
<h1>Explore</h1>
<p>{% for name, n in counts.items() %}{{ n }} records of {{ name }}
{{- ", " if not loop.last }}{% endfor %}.</p>
<h2>Records</h2>
<p>Each point is a trained model (accuracy in %, losses and their gap in nats, SRR of the last
layer). Choose the quantities on the axes, and click a name in the legend to show only that
model.</p>
<div class="chart"></div>
<h2>SRR, layer by layer</h2>
<p>SRR is R<sup>c</sup> − R plus a weighted count of non-zero entries, and should fall from layer
to layer. Each line is a mean over seeds, each band one standard deviation on either side.</p>
<div class="chart"></div>
<h2>Five update rules</h2>
<p>Attention is derived as a step that lowers R<sup>c</sup> (nats). Compare five rules, from the
exact gradient (a) to its approximation in attention (e). A line that jumps and then stays flat
has diverged.</p>
<div class="chart"></div>
<script>
const specs = {{ specs | tojson }}, font = { labelFontSize: 12, titleFontSize: 13 };
document.querySelectorAll(".chart").forEach((place, i) => {
  const spec = specs[i], room = document.body.clientWidth - 32;
  if (!spec) return (place.textContent = "No data recorded yet.");
  if (spec.facet) spec.columns = Math.max(1, Math.floor(room / (spec.spec.width + 65)));
  const config = { axis: font, legend: font, header: font };
  vegaEmbed(place, spec, { actions: false, renderer: "svg", config });
});
</script></body></html>
"""


def explore_page(
    scale: str,  # a row of `runs.SCALES`
) -> str:  # HTML
    "The page of a scale."
    import jinja2, markupsafe

    convert: Any = import_module("vl_convert")
    vega = markupsafe.Markup(convert.javascript_bundle())
    held = {}
    for name in shown_scales(scale):
        sealed = sealed_ids(store := Store(name))
        held[name] = [r for r in store if r.id not in sealed]
    tables = record_table(held), layer_table(held), rule_table()
    charts = zip((_record_chart, _layer_chart, _rule_chart), tables)
    specs = [chart(table).to_dict() if len(table) else None for chart, table in charts]
    counts = {name: len(found) for name, found in held.items()}
    page = jinja2.Environment(autoescape=True).from_string(_PAGE)
    return page.render(scale=scale, vega=vega, counts=counts, specs=specs)
