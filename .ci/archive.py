"""Make build/archive: the last commit as a Workflow Run RO-Crate, and its zip. Nothing is uploaded.

The crate has one action for each recorded run: its command, configuration, images, software and
times, and its record. The section *The archive* of data/README.md repeats a run from a crate.
"""

import json, mimetypes, shutil, subprocess
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote
from rocrate.model.computationalworkflow import ComputationalWorkflow
from rocrate.model.computerlanguage import ComputerLanguage
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate
from crate_nb.training.data import SOURCES
from crate_nb.training.records import Record, Store, training_command, training_name
from crate_nb.training.runs import RunConfig

ROOT = Path(__file__).resolve().parent.parent
ABOUT = json.loads((ROOT / "codemeta.json").read_text())
HERE = dict(url=ABOUT["codeRepository"])
PROFILES = {  # of the crate
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
PLACE = ("data_digest", "device", "dtype", "compiled", "threads")  # these may change a result


def as_text(value) -> str:
    "A value of the configuration as `--set` reads it."
    return value if isinstance(value, str) else json.dumps(value)


def times(provenance: dict) -> dict[str, str]:
    "When a run ended, and when it began unless it was interrupted."
    end = datetime.fromisoformat(provenance["utc"])
    begin = end - timedelta(seconds=round(provenance["seconds"]))
    ended = dict(endTime=end.isoformat())
    return ended if provenance["resumed"] else ended | dict(startTime=begin.isoformat())


def entity(crate: ROCrate, id: str, type: str, **properties) -> ContextEntity:
    "The entity with an id, which is added if the crate lacks it."
    id = quote(id, safe="#:/=")
    if not (found := crate.get(id)):
        found = crate.add(ContextEntity(crate, id, {"@type": type}))
        for name, value in properties.items():
            found[name] = value
    return found


def describe(crate: ROCrate):
    "The root of the crate, and its workflow `reproduce`."
    root, (author,) = crate.root_dataset, ABOUT["author"]
    for name in ("name", "description", "keywords", "version"):
        root[name] = ABOUT[name]
    root["author"] = entity(crate, "#authors", author["@type"], name=author["name"])
    root["license"] = entity(crate, ABOUT["license"], "CreativeWork", name="Apache-2.0")
    profiles = [entity(crate, id, "CreativeWork", name=name) for id, name in PROFILES.items()]
    root["conformsTo"] = profiles
    crate.get("README.md")["about"] = root
    told = dict(name="crate-nb reproduce", version=ABOUT["version"], **HERE)
    told["@type"] = [*ComputationalWorkflow.TYPES, "HowTo"]
    python = crate.add(ComputerLanguage(crate, "https://www.python.org/", dict(name="Python")))
    module = "crate_nb/study/reproduce.py"
    crate.add_workflow(dest_path=module, properties=told, main=True, lang=python)
    crate.mainEntity["step"] = entity(crate, "#train", "HowToStep", name="train missing runs")


def setting(crate: ROCrate, name: str, value) -> ContextEntity:
    "A value, which runs share; that of a field of the configuration exemplifies a parameter."
    value = value if isinstance(value, str | int | float) else as_text(value)
    told = dict(name=name, value=value)
    found = entity(crate, f"#{name}={as_text(value)}", "PropertyValue", **told)
    if name in RunConfig.model_fields and "exampleOfWork" not in found:
        told = dict(name=name, description=RunConfig.model_fields[name].description)
        told["additionalType"] = "PropertyValue"
        found["exampleOfWork"] = entity(crate, f"#{name}", "FormalParameter", **told)
        found["exampleOfWork"].append_to("workExample", found)
    return found


def tool(crate: ROCrate, provenance: dict) -> ContextEntity:
    "The program that trained a run: package, commit and torch."
    package, commit, torch = (provenance[k] for k in ("package", "commit", "torch"))
    told = dict(name="PyTorch", version=torch, url="https://pytorch.org/")
    library = entity(crate, f"#torch-{torch}", "SoftwareApplication", **told)
    told = dict(name="crate-nb train", version=f"{package}, commit {commit}", **HERE)
    told["softwareRequirements"] = library
    return entity(crate, f"#train-{package}-{commit}-{torch}", "SoftwareApplication", **told)


def images(crate: ROCrate, name: str) -> list:
    "The data set of a run, if it is a repository of images."
    if name not in SOURCES or not SOURCES[name].digest:
        return []
    repository, commit = SOURCES[name].url.removesuffix(".tar.gz").split("/archive/")
    id = f"{repository}/tree/{commit}"
    told = dict(name=name, subjectOf={"@id": "data/croissant.json"})
    return [crate.get(f"{id}/") or crate.add_dataset(id, properties=told)]


def act(crate: ROCrate, id: str, **properties):
    "An action of the crate, which its root mentions."
    told = dict(agent=crate.get("#authors")) | properties
    crate.root_dataset.append_to("mentions", entity(crate, id, "CreateAction", **told))


def add_run(crate: ROCrate, scale: str, record: Record):
    "The action of a run; its id follows from the fields of the configuration among its objects."
    config, provenance = record.config, record.provenance
    fields = config.model_dump(mode="json", exclude_defaults=True) | dict(seed=config.seed)
    fields |= {k: provenance[k] for k in PLACE if k in provenance}
    objects = images(crate, config.dataset) + [setting(crate, k, v) for k, v in fields.items()]
    name = f"{scale} {record.id}: {config.variant}, {training_name(config)}, seed {config.seed}"
    told = dict(
        name=name, description=training_command(scale, record), instrument=tool(crate, provenance)
    )
    told |= dict(
        object=objects, result=crate.get(f"data/runs/{scale}/images/{record.id}/record.json")
    )
    act(crate, f"#{scale}-{record.id}", **told, **times(provenance))


def crate_of(folder: Path) -> ROCrate:
    "The crate of a clone: an action for each of its records and for each scale that is drawn."
    crate = ROCrate(folder, init=True, version="1.1")
    for file in crate.data_entities:
        if file.type == "File":
            guess, _ = mimetypes.guess_type(file.id)
            file["encodingFormat"] = guess or "application/octet-stream"
    describe(crate)
    for path in sorted((folder / "data" / "runs").iterdir()):
        for record in Store(path.name, path.parent):
            add_run(crate, path.name, record)
        if drawn := crate.get(f"figures/{path.name}/"):
            told = dict(object=crate.get(f"data/runs/{path.name}/"), result=drawn)
            told["description"] = f"crate-nb reproduce --recorded --scale {path.name}"
            told |= dict(name=f"draw {path.name}", instrument=crate.mainEntity)
            act(crate, f"#draw-{path.name}", **told)
    tools = [t for t in crate.get_by_type("SoftwareApplication") if t["name"] == "crate-nb train"]
    for t in tools:
        t["input"] = crate.get_by_type("FormalParameter")
    crate.get("#train")["workExample"] = crate.mainEntity["hasPart"] = tools
    return crate


def last_commit(folder: Path) -> str:
    "Unpack the last commit into a new folder; its name and time."
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packed = subprocess.check_output(["git", "archive", "HEAD"], cwd=ROOT)
    subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
    return subprocess.check_output(["git", "log", "-1", "--format=%h %cI"], cwd=ROOT, text=True)


if __name__ == "__main__":
    folder = ROOT / "build" / "archive" / f"crate_nb-{ABOUT['version']}"
    commit, time = last_commit(folder).split()
    crate = crate_of(folder)
    crate.root_dataset["version"] += f", commit {commit}"
    crate.root_dataset["datePublished"] = time
    crate.metadata.write(folder)
    shutil.make_archive(str(folder), "zip", folder)
