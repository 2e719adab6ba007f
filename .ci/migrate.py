"""Convert records of an older layout in place; what is new is left alone.

usage: python .ci/migrate.py [data/runs]
Before layout 5, a run lay in <scale>/<id>/record.json and a trial in
../trials/<scale>/<experiment>/<id>.json. Layouts 1 and 2 held the folded path norm under
path-norm, layout 3 one of ToST, where it is undefined.
"""

import json, shutil, sys
from pathlib import Path
from crate_nb.models.layer import VARIANTS


def with_path_norms(measures, schema, variant):
    values, beside = measures.get("values", {}), dict(measures.get("beside", {}))
    if schema > 3 or "path-norm" not in values:
        return measures
    published, row = values["path-norm"], VARIANTS[variant]
    if schema < 3:
        beside["folded_path_norm"] = published
        published = beside.pop("published_path_norm", None)  # missing in the oldest records
    if row.compress == "tssa" and row.skip:
        published = None
    return measures | dict(values=values | {"path-norm": published}, beside=beside)


def converted(record):
    schema, variant = record["schema_version"], record["config"]["variant"]
    parts = dict(schema_version=5, measures=with_path_norms(record["measures"], schema, variant))
    parts["levels"] = [
        row | dict(measures=with_path_norms(row["measures"], schema, variant))
        if "measures" in row
        else row
        for row in record.get("levels", [])
    ]
    return record | parts


def move(old, new, content):
    content["provenance"].pop("digest", None)
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n")
    old.unlink()


def main(runs):
    count = 0
    for old in sorted(runs.glob("*/*/record.json")):
        scale, id = old.parts[-3:-1]
        move(
            old,
            runs / scale / "images" / id / "record.json",
            converted(json.loads(old.read_text())),
        )
        old.parent.rmdir()
        count += 1
    for new in sorted(runs.glob("*/images/*/record.json")):
        record = json.loads(new.read_text())
        if record["schema_version"] < 5:
            move(new, new, converted(record))
            count += 1
    for old in sorted(runs.parent.glob("trials/*/*/*.json")):
        scale, experiment = old.parts[-3:-1]
        new = runs / scale / experiment / old.stem / "record.json"
        move(old, new, json.loads(old.read_text()))
        count += 1
    shutil.rmtree(runs.parent / "trials", ignore_errors=True)
    print(f"{count} records converted")


main(Path(sys.argv[1] if len(sys.argv) > 1 else "data/runs").resolve())
