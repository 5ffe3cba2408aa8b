"""Promise: each JSON schema describes every key of real output."""

import json
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
    options = [str(site), "--data", str(source), "--id", "patient", "--json"]
    check("personal", json.loads(programs.run_program(programs.SITE_AGENT, ["personal", *options])))


def test_every_schema_has_its_version_and_its_commands():
    folder = Path(kindred.__file__).parent / "schema"
    names = {path.name.removesuffix(".schema.json") for path in folder.glob("*.json")}
    assert {name for name in names if "commands" not in kindred.schema(name)} == {"card", "forest", "result"}
    assert [name for name in names if kindred.schema(name)["$id"] != f"urn:kindred:schema:{name}:1"] == []


def test_a_forest_that_others_read(runs):
    for (method, _), run in runs.items():
        if method.startswith("forest"):
            check("forest", json.loads(run.forest.to_json()))


def test_a_key_that_is_missing_or_new_is_found(demo):
    for changed in [{**demo.result, "new": 1}, {k: v for k, v in demo.result.items() if k != "status"}]:
        with pytest.raises(jsonschema.ValidationError):
            check("result", changed)
