"""Promise: the programs run as functions, their failures are exceptions, and no patient is left in a file."""

import io
import pickle
import stat
from contextlib import redirect_stderr, suppress
from pathlib import Path

import pandas as pd
import pytest
from conftest import job

import kindred
from kindred import programs


def test_a_simulation_says_how_far_it_is(home):
    shown = io.StringIO()
    with redirect_stderr(shown):
        run = kindred.simulate(home / "shown", seed=2, progress=True)
    assert run.study["status"] == "converged"
    assert run.study["seed"] == 2
    assert "[####################] ended: converged" in shown.getvalue()
    assert shown.getvalue().endswith("\n")


def test_rounds_of_a_limit_fill_the_bar():
    shown = io.StringIO()
    with redirect_stderr(shown):
        bar = programs._Bar(True)
        bar.show("rounds: 4 of 4 sites connected, round 5 of at most 20")
        bar.show("judging, round 8 of at most 1000000")
    assert "[#####               ] rounds" in shown.getvalue()
    assert "[                    ] judging" in shown.getvalue()


def test_a_failure_is_the_programs_text_and_code(mixed, home):
    with pytest.raises(kindred.KindredError, match="unknown key") as error:
        kindred.local(mixed, job("forest", "class", "treees = 3"), home / "failed")
    assert error.value.code == 2
    assert "treees" in error.value.text
    assert "(code 2)" in str(error.value)
    again = pickle.loads(pickle.dumps(error.value))  # noqa: S301, our own bytes
    assert (again.code, again.text) == (2, error.value.text)
    with pytest.raises(kindred.KindredError) as error:
        kindred.local(mixed.drop(columns="crp"), job("forest", "class"), home / "failed")
    assert error.value.code == 3


def test_a_misread_patient_is_counted_and_not_shown(mixed, home):
    frame = mixed.astype({"bp": object})
    frame.loc[3, "bp"] = "unspeakable"
    with pytest.raises(kindred.KindredError) as error:
        kindred.local(frame, job("forest", "class"), home / "misread")
    assert "unspeakable" not in error.value.text


def test_an_interrupted_wait_ends_the_program(monkeypatch, home):
    def interrupted(bar, line):
        raise KeyboardInterrupt

    monkeypatch.setattr(programs._Bar, "show", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kindred.simulate(home / "interrupted")
    left = home / "interrupted" / "result.json"
    assert not left.exists() or kindred.load(left.parent).study["status"] == "cancelled"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            assert str(home / "interrupted").encode() not in path.read_bytes()


def test_without_programs_their_folder_is_asked_for(monkeypatch, tmp_path, mixed):
    monkeypatch.setenv("KINDRED_PROGRAMS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="KINDRED_PROGRAMS"):
        kindred.local(mixed, "", tmp_path / "out")


def test_patients_are_in_private_files_that_are_removed(monkeypatch, tmp_path, mixed, home):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []
    run_program = programs.run_program

    def looked_at(name, arguments, progress=False):
        for path in tmp_path.rglob("*"):
            seen.append((path.name, stat.S_IMODE(path.stat().st_mode)))
        return run_program(name, arguments, progress)

    monkeypatch.setattr(programs, "run_program", looked_at)
    kindred.local(mixed, job("forest", "class", "trees = 10"), home / "private", patient="id")
    with pytest.raises(kindred.KindredError):
        kindred.local(mixed, "no job", home / "private")
    files = {mode for name, mode in seen if "." in name}
    folders = {mode for name, mode in seen if "." not in name}
    assert (files, folders) == ({0o600}, {0o700})
    assert list(tmp_path.iterdir()) == []


def test_similar_patients_come_with_outcomes_and_a_figure(mixed, runs):
    run = runs["forest", "survival"]
    answer = kindred.similar(mixed[5:], run, new=mixed[:2], id="id", k=4, by="euclidean")
    assert answer.table.groupby("query").size().ge(4).tolist() == [True, True]
    assert answer.table["query"].unique().tolist() == ["0000", "0001"]
    axes = answer.plot()
    assert [one.get_text() for one in axes.get_legend().get_texts()][0] == "all patients"
    own = kindred.similar(mixed, runs["unpsl", "class"], patient="0007", id="id", k=3)
    site = runs["unpsl", "class"].sites["patients"]
    wanted = site.metric.fit(mixed).kneighbors(mixed[7:8], 4)[0][0, 1:]
    assert (own.table["distance"].to_numpy() - wanted).max() < 1e-9
    number = kindred.similar(mixed, runs["forest", "number"], patient="0007", id="id", k=3)
    assert number.plot().get_xlabel() == "Mean of the outcome"


def test_matches_come_with_balance_and_a_love_plot(mixed, runs):
    answer = kindred.match(mixed[20:], runs["unpsl", "class"], mixed[:20], id="id", k=2, choice="greedy")
    assert len(answer.table) == 40
    assert answer.frame("balance")["feature"].str.startswith("ward").sum() == 3
    assert answer.plot().get_xlabel() == "Absolute standardised difference"


def test_clusters_come_with_their_outcomes(mixed, runs):
    answer = kindred.cluster(mixed, runs["unpsl", "class"], id="id", k=2, samples=20)
    assert answer.table.groupby("group").size().sum() == 300
    assert len(answer.plot().get_yticklabels()) == 2
    assert "clusters" in answer.sentence


def test_predictions_come_with_the_figures_of_each_rule(mixed, runs):
    answer = kindred.predict(mixed[30:], runs["forest", "number"], new=mixed[:30], id="id", by="euclidean")
    assert len(answer.table) == 30
    assert answer.table["low"].le(answer.table["predicted"].astype(float)).all()
    assert answer.plot().get_xlabel() == "Explained"
    assert isinstance(answer.frame("rules"), pd.DataFrame)


def test_a_file_or_a_configuration_is_a_source_too(home, patients, demo, tmp_path):
    site = demo.folder / "sites" / "north"
    source = home / "patients-class" / "north.csv"
    answer = kindred.similar(source, str(site), patient="north-0001", id="patient", k=2)
    assert answer.table["patient"].str.startswith("north-").all()
    missing = tmp_path / "site.toml"
    with pytest.raises(kindred.KindredError, match="site.toml"):
        kindred.similar(missing, "some-run", patient="north-0001")
