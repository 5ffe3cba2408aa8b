"""Promise: next to each table lies what its columns are, as a reader of CSV on the Web understands it."""

import json
import shutil

import pytest
from conftest import ROOT
from csvw import CSVW, Table

import kindred
from kindred import programs

SIDECAR = "-metadata.json"


def tables(folders):
    return [path for folder in folders for path in sorted(folder.rglob("*.csv"))]


def read(path):
    """The rows as csvw reads them by the sidecar, which refuses what is of another type."""
    return list(Table.from_file(path.with_name(path.name + SIDECAR)).iterdicts(strict=True))


def said(path):
    return json.loads(path.with_name(path.name + SIDECAR).read_text(encoding="utf-8"))


def test_every_table_of_a_run_is_valid_and_has_described_columns(runs, demo, federated):
    found = tables(run.folder for run in [*runs.values(), demo, *federated.values()])
    assert len({path.name for path in found}) >= 15
    for path in found:
        described = CSVW(str(path.with_name(path.name + SIDECAR)), validate=True)
        assert described.is_valid, (path, described.warnings)
        columns = said(path)["tableSchema"]["columns"]
        with path.open(encoding="utf-8") as file:
            assert sum(1 for _ in file) == len(read(path)) + 1
        assert kindred.run.table(path).columns.tolist() == [one["titles"] for one in columns]
        assert all(one["dc:description"] for one in columns)


def test_results_name_their_sidecars(demo):
    for name in ["metric.csv", "features.csv", "rounds.csv"]:
        assert {name, name + SIDECAR} <= set(demo.result["files"])


def test_numbers_are_read_to_the_bit(runs):
    site = runs["forest", "survival"].sites["patients"]
    read_by_others = [row["risk"] for row in read(site.folder / "predictions.csv")]
    assert read_by_others == site.patients["risk"].tolist()


def test_times_have_units_and_events_labels(runs):
    site = runs["forest", "survival"].sites["patients"]
    columns = site.columns("outcome.csv")
    assert columns.loc["time (days)", ["datatype", "unit"]].tolist() == ["double", "days"]
    assert columns.loc["event", "levels"] == {"0": "censored", "1": "with the event"}
    measured = said(site.folder / "outcome.csv")["schema:variableMeasured"]
    assert [(one["schema:propertyID"], one["schema:unitText"]) for one in measured] == [("days", "days")]


def test_features_have_labels_units_and_labels_of_levels(runs):
    folder = runs["regression", "number"].folder
    said_of = said(folder / "coefficients.csv")["schema:variableMeasured"]
    measured = {one["schema:propertyID"]: one for one in said_of}
    assert measured["score"]["schema:name"] == "Score"
    assert measured["score"]["schema:unitText"] == "points"
    assert measured["born"]["schema:name"] == "Age"
    assert measured["born"]["schema:unitText"] == "years"
    assert measured["bp"]["schema:unitText"] == "mmHg"
    assert measured["ward"]["schema:valueReference"][0] == {"schema:value": "a", "schema:name": "surgery"}


def test_answers_have_sidecars_too(runs, mixed, tmp_path):
    run = runs["forest", "survival"]
    mixed.to_csv(tmp_path / "patients.csv", index=False)
    asked = {
        "similar": ["--patient", "0003"],
        "cluster": ["-k", "2", "--samples", "10"],
        "predict": [],
    }
    for question, options in asked.items():
        written = tmp_path / f"{question}.csv"
        patients = ["--data", str(tmp_path / "patients.csv"), "--id", "id"]
        answer = [str(run.folder), *options, "--csv", str(written)]
        programs.run_program(programs.SITE_AGENT, [question, *patients, *answer])
        assert CSVW(str(written.with_name(written.name + SIDECAR)), validate=True).is_valid
        assert len(read(written)) > 1
    columns = kindred.run.columns(tmp_path / "similar.csv")
    assert columns.loc["bp", ["datatype", "unit"]].tolist() == ["double", "mmHg"]
    assert columns.loc["ward", "datatype"] == "string"
    assert columns.loc["time (days)", "unit"] == "days"


def test_a_count_that_is_withheld_is_no_number(demo, tmp_path):
    for name in ["card.csv", "card.csv" + SIDECAR]:
        shutil.copy(demo.folder / "card" / name, tmp_path)
    table = tmp_path / "card.csv"
    row = next(one for one in read(table) if one["count"] is not None)
    lines = table.read_text(encoding="utf-8")
    table.write_text(lines.replace(f",{row['count']},", ",fewer than 10,", 1), encoding="utf-8")
    assert sum(one["count"] is None for one in read(table)) > 0
    table.write_text(lines.replace(f",{row['count']},", ",some,", 1), encoding="utf-8")
    with pytest.raises(ValueError, match="count: Invalid value"):
        read(table)


def test_the_page_says_where_they_are():
    assert SIDECAR in (ROOT / "deploy" / "files.md").read_text()
