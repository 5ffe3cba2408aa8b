"""Promise: what every command prints with --json is as its schema says, and every such command is run here."""

import json
import signal
import socket
import subprocess
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
from test_deployment import deployed  # noqa: F401
from test_schema import check

import kindred
from kindred import programs

# Checked by test_schema.py and test_deployment.py.
ELSEWHERE = {
    f"kindred-site-agent {name}"
    for name in ["similar", "match", "cluster", "predict", "personal", "study budget"]
} | {f"kindred-coordinator {name}" for name in ["job ask", "study list", "study show"]}
CHECKED: set[str] = set()


def run(program, schema, words, config=None, code=0):
    """Run a command with --json, and check what it prints; gives that."""
    named = [] if config is None else ["--config", config]
    command = [*words.split(), *named, "--json"]
    ran = subprocess.run(
        [programs._program(program), *command], capture_output=True, text=True, check=False
    )
    assert ran.returncode == code, ran.stderr
    content = json.loads(ran.stdout)
    named = kindred.schema(schema)["commands"]
    own = [one for one in named if f"{program} {words} ".startswith(f"{one} ")]
    assert own, f"{schema} does not name {words}"
    check(schema, [content] if own == ["kindred-coordinator job show"] else content)
    CHECKED.update(own)
    return content


def operator(schema, words, code=0):
    return run(programs.COORDINATOR, schema, words, "operator.toml", code)


def hospital(schema, words, code=0):
    return run(programs.SITE_AGENT, schema, words, "north.toml", code)


@pytest.fixture
def here(deployed, monkeypatch):  # noqa: F811
    monkeypatch.chdir(deployed)
    return deployed


@pytest.fixture(scope="module")
def name(deployed):  # noqa: F811
    """Give the name of a run of the deployment that has ended."""
    done = kindred.submit(
        deployed / "job.toml", deployed / "operator.toml", deployed / "commands", progress=False
    )
    return done.result["run"]


def test_runs(here, name):
    shown = operator("job-list", f"job show {name}")
    assert shown in operator("job-list", "job list")
    fetched = operator("run", f"job result {name} --out fetched")
    assert fetched["status"] == shown["status"]
    assert Path(fetched["report"]).is_file()
    assert operator("run", f"job watch {name} --out fetched")["answer"] == fetched["answer"]
    first = operator("run", "job submit job.toml --token other --seed 3")
    assert first["status"] == "submitted"
    done = operator("run", "job submit job.toml --token other --seed 3 --wait --out other")
    assert done["run"] == first["run"]
    assert operator("did", f"job remove {done['run']}")["run"] == done["run"]
    with pytest.raises(kindred.KindredError, match="found no run"):
        removed = ["job", "show", done["run"], "--config", "operator.toml"]
        programs.run_program(programs.COORDINATOR, removed)
    other = operator("run", "job submit job.toml --token third --seed 4")["run"]
    assert operator("did", f"job cancel {other}")["did"] == "cancelled"
    checked = run(programs.COORDINATOR, "job-check", "job check job.toml")
    assert len(checked["sites"]) == 4


def test_books_of_a_hospital(here, name):
    (own,) = [one for one in hospital("runs", "runs list") if one["run"] == name]
    assert own["results"] and own["copy"] and own["method"] == "unpsl"
    left = hospital("journal-list", f"journal list {name}")
    assert sum(one["bytes"] for one in left["entries"]) == own["bytes"]
    assert len(left["entries"]) == own["messages"]
    verified = hospital("journal-verify", f"journal verify {name}")
    assert verified["run"]["answers"] == own["messages"]
    assert hospital("journal-verify", "journal verify")["run"] is None
    assert hospital("data-check", "data check job.toml --write-dictionary columns.toml")["fits"]
    assert hospital("data-check", "data check job.toml")["dictionary"] is None
    run(programs.SITE_AGENT, "dictionary", "data dictionary job.toml")
    explained = hospital("policy-explain", "policy explain job.toml --operator researcher")
    assert explained["admitted"]
    assert hospital("policy-lowered", "policy lowered")["lowered"] == explained["lowered"]
    assert all(one["status"] != "problem" for one in hospital("doctor", "doctor")["checks"])
    run(programs.COORDINATOR, "doctor", "doctor", "coordinator.toml")


def test_acts_in_pages(here, name):
    # A port of its own; the last table of the file is not one that pages are in.
    text = Path("north.toml").read_text()
    Path("pages.toml").write_text(f'{text}\n[pages]\nlisten = "127.0.0.1:0"\n')
    command = [programs._program(programs.SITE_AGENT), "pages", "--config", "pages.toml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            address = next(part for part in serving.stdout.readline().split() if "://" in part)
            host, path = address.removeprefix("http://").split("/", 1)
            browser = HTTPConnection(host, timeout=60)
            browser.request("GET", f"/{path}")
            reply = browser.getresponse()
            reply.read()
            cookie = {"Cookie": reply.getheader("set-cookie").split(";")[0]}
            browser.request("GET", f"/left/{name}", headers=cookie)
            page = browser.getresponse().read().decode()
            token = page.split('name="token" value="')[1].split('"')[0]
            sent = {**cookie, "Content-Type": "application/x-www-form-urlencoded"}
            browser.request("POST", f"/left/{name}/verify", f"token={token}", sent)
            assert browser.getresponse().status == 200
            listed = hospital("audit-list-site", f"audit list {name}")
        finally:
            serving.send_signal(signal.SIGTERM)
    assert [one["did"] for one in listed["entries"]] == ["verified"]
    assert hospital("audit-verify", "audit verify")["entries"] == 1


def test_backups(here, name):
    coordinator = "coordinator.toml"
    listed = run(programs.COORDINATOR, "audit-list", "audit list", coordinator)
    assert {one["did"] for one in listed["entries"]} >= {"proposed", "submitted", "fetched"}
    verified = run(programs.COORDINATOR, "audit-verify", "audit verify", coordinator)
    assert verified["entries"] == len(listed["entries"])
    copied = run(programs.COORDINATOR, "backup", "backup --out copies/runs", coordinator)
    assert copied["head"] == verified["head"]
    hospital("backup", "backup --out copies/north")
    for program, copy, file in [
        (programs.COORDINATOR, "runs", coordinator),
        (programs.SITE_AGENT, "north", "north.toml"),
    ]:
        lines = Path(file).read_text().splitlines()
        moved = ['folder = "restored"' if one.startswith("folder = ") else one for one in lines]
        Path("moved.toml").write_text("\n".join(moved).replace('"restored"', f'"restored/{copy}"'))
        restored = run(program, "backup", f"restore copies/{copy} --latest", "moved.toml")
        assert restored["files"] > 0


def test_studies(here, name):
    first = operator("sites", "sites list")[0]
    assert first["site"] == "east"
    (study,) = first["approved"]
    assert operator("run", f"study card {study} --out card")["status"] == "completed"
    draft = Path("draft.toml").read_text().replace(f'name = "{study}"', 'name = "second"', 1)
    draft = draft.replace("\noperators = ", f'\nrenews = ["{study}"]\noperators = ', 1)
    Path("second.toml").write_text(draft)
    words = "study draft second.toml --certificates certificates --out second.study.toml"
    drafted = run(programs.COORDINATOR, "study-draft", words)
    assert drafted["file"] == "second.study.toml"
    assert operator("run", "study propose second.study.toml")["status"] == "submitted"
    assert not hospital("study-review", "study review second.study.toml")["approved"]
    given = hospital("study-approval", "study approve second.study.toml --confirm-units")
    assert hospital("study-review", "study review second.study.toml")["approved"]
    consent = hospital("did", "study consent second.study.toml --out consent.json")
    assert consent["files"] == ["consent.json"]
    listed = {one["study"]: one for one in hospital("study-list", "study list")}
    assert listed["second"]["digest"] == given["digest"]
    audited = hospital("study-audit", f"study audit {study} --out audit.json")
    assert all(one["differs"] is None for one in audited["runs"])
    assert hospital("did", "study leave second")["did"] == "left"
    assert operator("did", "study close second")["study"] == "second"


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_parties(tmp_path, monkeypatch, home):
    """From a new federation to a hospital whose table is proposed."""
    monkeypatch.chdir(tmp_path)
    ports = f"--port {_free_port()} --enrolment-port {_free_port()}"
    founding = f"init --hosts 127.0.0.1 --sites north,south --operators one --out all {ports}"
    founded = run(programs.COORDINATOR, "federation", founding)
    assert [one["party"].endswith(f"site/{site}") for one, site in zip(founded["tokens"], ["north", "south"])]
    serving = subprocess.Popen(
        [programs._program(programs.COORDINATOR), "certificates", "serve", "--config", "all/coordinator.toml"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while "certificates are signed" not in serving.stderr.readline():
            time.sleep(0.01)
        study = Path(home / "study.toml")
        frame = kindred.synthesise(tmp_path / "data")["north"]
        words = "study draft --from data/north.csv --outcome class --out text.toml"
        assert run(programs.SITE_AGENT, "study-proposal", words)["outcomes"][0]["name"] == "class"
        outcome = {"column": "class", "kind": "binary", "positive": ["positive"]}
        kindred.Study.draft(
            frame,
            outcome,
            hospitals=["north", "south", "east"],
            features=["first_1", "grade"],
            title="A draft",
            purpose="A test",
            until="2099-12-31",
            operators=["one"],
            methods=["unpsl"],
            limits={"runs": 10, "rounds": 1000, "queries": 10},
        ).save(study)
        words = f"enrol {founded['tokens'][0]['token']} {study} --data data/north.csv --out north"
        enrolled = run(programs.SITE_AGENT, "certificate", words)
        assert enrolled["proposal"]["problems"] is None, enrolled
        run(programs.SITE_AGENT, "certificate", "renew", "north/site.toml")
        plain = run(programs.SITE_AGENT, "certificate", f"enrol {founded['tokens'][1]['token']} --out south")
        assert plain["proposal"] is None
        proposed = f"site init {study} --data data/south.csv"
        assert run(programs.SITE_AGENT, "proposal", proposed, "south/site.toml")["problems"] is None
        declared = run(programs.SITE_AGENT, "study-proposal", "study draft --from south/site.toml")
        assert all("review" in one["reason"] for one in declared["excluded"])
        invited = run(
            programs.COORDINATOR, "token", "certificates invite --operator two", "all/coordinator.toml"
        )
        run(programs.COORDINATOR, "certificate", f"enrol {invited['token']} --out two")
        run(programs.COORDINATOR, "certificate", "renew", "two/operator.toml")
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait()
    run(programs.COORDINATOR, "certificate", "certificates init --folder pki")
    run(programs.COORDINATOR, "certificate", "certificates issue --folder pki --site north")
    run(programs.COORDINATOR, "certificate", "certificates renew --folder pki --site north")
    run(programs.COORDINATOR, "did", "certificates revoke --folder pki --site north")
    listed = run(programs.COORDINATOR, "certificates", "certificates list --folder pki")
    assert [one["status"] for one in listed if one["party"].endswith("north")] == ["revoked"]


def test_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = "synthesise --sites north=60,south=60,east=60 --out data"
    assert len(run(programs.SITE_AGENT, "did", sizes)["files"]) == 3
    simulated = run(programs.COORDINATOR, "run", "simulate --out out")
    assert kindred.load("out").result["run"] == simulated["run"]
    Path("job.toml").write_text(kindred.load("out").result["job_text"])
    alone = run(programs.SITE_AGENT, "run", "local job.toml --data data/north.csv --id patient --out alone")
    assert Path(alone["folder"]).name == "alone"
    for program in [programs.COORDINATOR, programs.SITE_AGENT]:
        pages = run(program, "did", "man --out pages")["files"]
        assert all(Path(page).is_file() for page in pages)


def test_every_command_of_a_schema_was_run(here):
    folder = Path(kindred.__file__).parent / "schema"
    named = {
        command
        for path in folder.glob("*.json")
        for command in json.loads(path.read_text()).get("commands", [])
    }
    assert named - ELSEWHERE - CHECKED == set()
