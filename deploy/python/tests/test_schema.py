"""Promise: each JSON schema describes every key of real output."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

import kindred
from kindred import programs


def strict(schema):
    """The same schema, which allows no key that it does not describe."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    return {**closed, "additionalProperties": False} if "properties" in schema else closed


def check(name, document):
    schema = kindred.schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(strict(schema)).validate(document)


def test_results_and_cards(runs, demo, federated):
    for run in [*runs.values(), demo, *federated.values()]:
        check("result", run.result)
    for run in [demo, *federated.values()]:
        check("card", json.loads((run.folder / "card" / "card.json").read_text()))
        check("result", kindred.load(run.folder / "card").result)


@pytest.mark.parametrize(
    ("method", "outcome"), [("unpsl", "class"), ("forest", "number"), ("forest", "survival")]
)
def test_answers_of_the_site_agent(runs, mixed, method, outcome):
    run = runs[method, outcome]
    check("similar", kindred.similar(mixed, run, patient="0003", id="id", by="anchored").said)
    check("similar", kindred.similar(mixed, run, patient="0003", id="id").said)
    check("match", kindred.match(mixed[20:], run, mixed[:20], id="id").said)
    check("cluster", kindred.cluster(mixed[9:], run, new=mixed[:9], id="id", k=2, samples=10).said)
    check("predict", kindred.predict(mixed[9:], run, new=mixed[:9], id="id").said)


def test_a_personal_metric(home, demo):
    source = home / "patients-class" / "south.csv"
    site = demo.folder / "sites" / "south"
    options = ["--data", str(source), "--id", "patient", "--run", str(site), "--json"]
    check("personal", json.loads(programs.run_program(programs.SITE_AGENT, ["personal", *options])))


def test_the_page_names_every_schema():
    page = (Path(__file__).parents[1] / "README.md").read_text()
    folder = Path(kindred.__file__).parent / "schema"
    names = [path.name.removesuffix(".schema.json") for path in folder.glob("*.json")]
    assert len(names) == 15
    assert [name for name in names if f"`{name}`" not in page] == []


# Each command that prints JSON, and the schema of what it prints; those of `job ask METHOD` are two.
PRINTED = {
    "kindred-coordinator certificates list": "certificates-list",
    "kindred-coordinator doctor": "doctor",
    "kindred-coordinator job ask": "ask-cluster",
    "kindred-coordinator job list": "job-list",
    "kindred-coordinator study list": "study-show",
    "kindred-coordinator study show": "study-show",
    "kindred-site-agent cluster": "cluster",
    "kindred-site-agent doctor": "doctor",
    "kindred-site-agent match": "match",
    "kindred-site-agent personal": "personal",
    "kindred-site-agent predict": "predict",
    "kindred-site-agent similar": "similar",
    "kindred-site-agent study budget": "study-budget",
}


def with_json(command):
    """The commands below this one that have the option `--json`."""
    said = programs.run_program(command[0], [*command[1:], "--help"])
    below = said.partition("Commands:\n")[2].partition("\n\n")[0]
    names = re.findall(r"^  ([a-z-]+) ", below, re.MULTILINE)
    found = {" ".join(command)} if re.search(r"^ +--json", said, re.MULTILINE) else set()
    return found.union(*(with_json([*command, name]) for name in names if name != "help"))


def test_every_command_that_prints_json_has_a_schema():
    found = with_json([programs.COORDINATOR]) | with_json([programs.SITE_AGENT])
    assert found == set(PRINTED)
    for name in PRINTED.values():
        jsonschema.Draft202012Validator.check_schema(kindred.schema(name))


def test_a_forest_that_others_read(runs):
    for (method, _), run in runs.items():
        if method.startswith("forest"):
            check("forest", json.loads(run.forest.to_json()))


def test_a_key_that_is_missing_or_new_is_found(demo):
    for changed in [{**demo.result, "new": 1}, {k: v for k, v in demo.result.items() if k != "status"}]:
        with pytest.raises(jsonschema.ValidationError):
            check("result", changed)
