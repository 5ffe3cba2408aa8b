"""Promise: a drafted study can be run, and says nothing of few patients."""

import json
import tomllib

import pandas as pd
import pytest

import kindred
from kindred import programs

OUTCOME = {"column": "days", "kind": "survival", "event": "died", "event_values": ["1"], "horizon": 300}
KEYS = {"born": {"at": "2020-12-31", "label": "Age"}, "bp": {"unit": "mmHg", "missing": ["-9"]}}


@pytest.fixture(scope="module")
def frame(mixed):
    stage = pd.Categorical(mixed["stage"], ["I", "II", "III"], ordered=True)
    own = mixed.drop(columns=["ill", "score"]).assign(born=pd.to_datetime(mixed["born"]), stage=stage)
    return own.assign(
        smokes=(mixed.index % 3 == 0), statin=(mixed["score"] > 6).astype(float).where(mixed.index % 7 > 0)
    )


def draft(frame):
    features = [column for column in frame.columns if column not in ("id", "days", "died")]
    return kindred.Study.draft(frame, OUTCOME, features=features, keys=KEYS, title="A draft")


def test_columns_become_features_of_their_kind(frame):
    study = tomllib.loads(str(draft(frame)))
    kinds = {one["name"]: one["kind"] for one in study["features"]}
    assert kinds == {
        "born": "age",
        "sex": "categorical",
        "stage": "ordinal",
        "crp": "numeric",
        "bp": "numeric",
        "ward": "categorical",
        "smokes": "binary",
        "statin": "binary",
    }
    assert study["features"][2]["levels"] == ["I", "II", "III"]
    assert (study["title"], study["outcomes"][0]["column"]) == ("A draft", "days")


def test_a_drafted_job_runs(frame, home, tmp_path):
    study = draft(frame)
    run = kindred.local(frame, study.job("regression", {"ridge": "auto"}), home / "drafted", patient="id")
    assert run.study["status"] == "converged"
    assert "smokes" in run.coefficients.index
    study.save(tmp_path / "draft.toml")
    assert (tmp_path / "draft.toml").read_text() == str(study)


def test_no_value_of_a_patient_is_in_a_draft(frame):
    text = str(draft(frame))
    assert "range" not in text
    for column in ["crp", "bp"]:
        extremes = {frame[column].min(), frame[column].max()} - {-9.0}
        assert not any(str(value) in text for value in extremes)


def test_levels_of_few_patients_are_not_named(frame):
    for wards, wanted in [
        (["rarely"] * 9 + ["often"] * 291, "fewer than two levels of at least 10 patients"),
        (["rarely"] * 9 + ["often"] * 200 + ["daily"] * 91, "column ward has levels of fewer patients"),
    ]:
        with pytest.raises(ValueError, match=wanted) as error:
            draft(frame.assign(ward=wards))
        assert "rarely" not in str(error.value)


def test_a_draft_is_what_the_program_proposes(frame, tmp_path):
    frame.to_csv(tmp_path / "table.csv", index=False, date_format="%Y-%m-%d")
    options = ["--from", str(tmp_path / "table.csv"), "--outcome", "days", "--outcome", "died", "--json"]
    said = json.loads(programs.run_program(programs.SITE_AGENT, ["study", "draft", *options]))
    proposed = {one["name"]: one for one in said["features"]}
    study = kindred.Study.draft(frame, OUTCOME, keys={"stage": {"kind": "categorical", "levels": []}})
    assert [one["name"] for one in study.features] == list(proposed)
    for own in study.features:
        if own["name"] != "stage":
            assert own.items() <= proposed[own["name"]].items()
    assert {one["column"] for one in said["excluded"]} == {"id", "born"}


def test_dates_need_a_day_that_ages_count(frame):
    with pytest.raises(ValueError, match="column born has dates"):
        kindred.Study.draft(frame, OUTCOME, features=["born"])
