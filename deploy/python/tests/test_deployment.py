"""Promise: a researcher proposes, submits and asks from Python, and machines read what the programs list."""

import io
import json
import os
import subprocess
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from test_schema import check

import kindred
from kindred import programs


@pytest.fixture(scope="module")
def deployed() -> Path:
    """The folder of a running deployment with an open study and `job.toml` of it."""
    folder = os.environ.get("KINDRED_DEPLOYMENT")
    if folder is None:
        pytest.skip("KINDRED_DEPLOYMENT names no folder of a running deployment")
    return Path(folder)


@pytest.fixture(scope="module")
def submitted(deployed):
    shown = io.StringIO()
    with redirect_stderr(shown):
        run = kindred.submit(deployed / "job.toml", deployed / "operator.toml", deployed / "submitted")
    return run, shown.getvalue()


def test_a_submitted_job_is_awaited_with_a_bar(submitted):
    run, shown = submitted
    assert run.study["hospitals"] == 4
    assert "[####################] ended: " in shown
    assert run.job.outcome["column"] == "class"
    assert run.scores.loc[("held-out", "distance")]["patients"] == 350
    assert run.metric.weights.shape[0] == len(run.result["features"])


def test_a_job_that_is_not_awaited_gives_its_run(deployed):
    text = (deployed / "job.toml").read_text()
    study = next(one for one in text.splitlines() if one.startswith("study = "))
    path = deployed / study.split('"')[1]
    text = text.replace(study, f'study = "{path}"')
    run = kindred.submit(text, deployed / "operator.toml", deployed / "never", wait=False, seed=7)
    assert isinstance(run, str)
    assert len(run) == 12
    options = [
        "job",
        "watch",
        run,
        "--config",
        str(deployed / "operator.toml"),
        "--out",
        str(deployed / "watched"),
    ]
    programs.run_program(programs.COORDINATOR, options)
    assert kindred.load(deployed / "watched").study["seed"] == 7
    assert not (deployed / "never").exists()


def test_lists_are_as_their_schemas_say(deployed, submitted):
    config = ["--config", str(deployed / "operator.toml"), "--json"]
    check("job-list", json.loads(programs.run_program(programs.COORDINATOR, ["job", "list", *config])))
    studies = json.loads(programs.run_program(programs.COORDINATOR, ["study", "list", *config]))
    for study in studies:
        check("study-show", study)
    shown = ["study", "show", studies[0]["study"], *config]
    check("study-show", json.loads(programs.run_program(programs.COORDINATOR, shown)))
    budget = ["study", "budget", "--config", str(deployed / "north.toml"), "--json"]
    check("study-budget", json.loads(programs.run_program(programs.SITE_AGENT, budget)))


def test_what_operators_look_at_is_as_its_schema_says(deployed):
    folder = ["--folder", str(deployed / "certificates"), "--json"]
    listed = programs.run_program(programs.COORDINATOR, ["certificates", "list", *folder])
    check("certificates", json.loads(listed))
    assert "site-north" in {one["party"] for one in json.loads(listed)}
    for name, config in [(programs.COORDINATOR, "coordinator"), (programs.SITE_AGENT, "north")]:
        command = [programs._program(name), "doctor", "--config", str(deployed / f"{config}.toml"), "--json"]
        # Its code says whether something must be mended.
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
        check("doctor", found)
        assert len(found["checks"]) > 3


def test_questions_to_all_hospitals_are_as_their_schemas_say(deployed, submitted, patients):
    run, _ = submitted
    name = run.result["run"]
    config = ["--config", str(deployed / "operator.toml"), "--json"]
    new = patients["class"]["east"].head(2).drop(columns=["class"])
    new.to_csv(deployed / "new.csv", index=False)
    asked = ["--new", str(deployed / "new.csv"), "--id", "patient", "--out", str(deployed / "alike")]
    found = json.loads(
        programs.run_program(programs.COORDINATOR, ["job", "ask", "neighbours", name, *asked, *config])
    )
    check("ask-neighbours", found)
    settings = ["clusters_min=2", "clusters_max=2", "samples=10", "--out", str(deployed / "groups")]
    found = json.loads(
        programs.run_program(programs.COORDINATOR, ["job", "ask", "cluster", name, *settings, *config])
    )
    check("ask-cluster", found)
    groups = kindred.load(deployed / "groups")
    assert sorted(groups.groups.iloc[:, 0].astype(str).unique()) == ["1", "2"]
    check("result", groups.result)
    with pytest.raises(kindred.Absent, match="holds places of patients"):
        _ = kindred.load(deployed / "alike").job


def test_a_hospital_asks_by_its_configuration(deployed, submitted):
    run, _ = submitted
    name = run.result["run"]
    answer = kindred.similar(deployed / "north.toml", name, patient="north-0001", k=3)
    assert answer.table["patient"].str.startswith("north-").all()
    site = kindred.load(deployed / "sites" / "north" / "runs" / name)
    assert len(site.patients) == 130


def test_a_drafted_study_is_one_that_hospitals_can_approve(deployed, patients):
    frame = patients["class"]["north"]
    study = kindred.Study.draft(
        frame,
        {"column": "class", "kind": "binary", "positive": ["positive"]},
        name="drafted",
        hospitals=["north", "south", "east", "west"],
        features=["first_1", "grade"],
        title="A draft",
        purpose="A test",
        until="2099-12-31",
        operators=["researcher"],
        methods=["unpsl"],
        limits={"runs": 10, "rounds": 1000, "queries": 10},
    )
    study.save(deployed / "drafted.toml")
    options = [
        "--certificates",
        str(deployed / "certificates"),
        "--out",
        str(deployed / "drafted.study.toml"),
    ]
    programs.run_program(programs.COORDINATOR, ["study", "draft", str(deployed / "drafted.toml"), *options])
    assert (deployed / "drafted.study.toml").read_text().count("sha256:") == 5


def test_a_coordinator_that_is_not_there_has_code_5(deployed):
    config = (deployed / "operator.toml").read_text()
    port = config.split("127.0.0.1:")[1].split('"')[0]
    absent = deployed / "absent.toml"
    absent.write_text(config.replace(port, "9"))
    with pytest.raises(kindred.KindredError, match="KDR-UNREACHABLE") as error:
        kindred.submit(deployed / "job.toml", absent, deployed / "absent", progress=False)
    assert error.value.code == 5
