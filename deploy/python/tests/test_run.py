"""Promise: `load` gives what a run left as frames, objects and figures, and says what it did not leave."""

import numpy as np
import pandas as pd
import pytest

import kindred


def test_a_folder_is_a_run_or_a_hospitals(demo, tmp_path):
    assert isinstance(kindred.load(demo.folder), kindred.Run)
    assert isinstance(kindred.load(str(demo.folder / "sites" / "west")), kindred.Site)
    with pytest.raises(kindred.Absent, match=r"neither result.json nor comparison.json"):
        kindred.load(tmp_path)


def test_the_study_and_its_outcome(demo, runs):
    assert demo.study[["job", "method", "patients", "hospitals"]].tolist() == ["demo", "unpsl", 640, 4]
    assert list(demo.sites) == ["east", "north", "south", "west"]
    assert demo.outcome.groups["patients"].sum() == 640
    number = runs["forest", "number"].outcome
    assert (str(number), number.kind, len(number.groups)) == ("Score (points)", "numeric", 0)


def test_the_card_has_a_row_per_group_and_feature(demo):
    row = demo.card.query("group == 'all patients' and feature == 'first_1'")
    assert row[["patients", "missing"]].to_numpy().tolist() == [[640, 20]]
    assert kindred.load(demo.folder / "card").card.equals(demo.card)


def test_tables_are_the_programs_to_the_bit(demo):
    weights = pd.read_csv(demo.folder / "metric.csv", index_col=0, dtype=str).map(float)
    assert np.array_equal(weights.to_numpy(), demo.metric.weights)
    assert np.array_equal(np.load(demo.folder / "metric.npy"), demo.metric.weights)
    held_out = demo.scores.loc[("held-out", "distance")]
    assert held_out["accuracy"] > demo.scores.loc[("held-out", "euclidean")]["accuracy"]


def test_identifiers_keep_their_zeros_and_patients_their_order(runs, mixed):
    for method, outcome in [("forest", "survival"), ("regression", "survival"), ("unpsl", "class")]:
        site = runs[method, outcome].sites["patients"]
        assert site.patients.index.tolist() == mixed["id"].tolist()
        assert set(site.neighbours["neighbour"]) <= set(mixed["id"])
    followed = runs["forest", "survival"].sites["patients"].patients
    assert followed["time"].tolist() == mixed["days"].tolist()


def test_survival_of_groups_of_a_hospitals_patients(runs, mixed):
    site = runs["forest", "survival"].sites["patients"]
    groups = pd.Series(np.where(site.patients["risk"] > site.patients["risk"].median(), "high", "low"))
    curves = site.survival(groups.set_axis(site.patients.index))
    last = curves.groupby("group")["survival"].last()
    assert last["high"] < last["low"]
    axes = kindred.figures.curves(curves, str(runs["forest", "survival"].outcome))
    assert axes.get_xlabel() == "days (days)"


def test_what_a_run_did_not_leave_is_said(demo, runs, federated):
    for run, name, wanted in [
        (demo, "forest", "no forest.bin"),
        (demo, "regression", "unpsl learned nothing by regression"),
        (runs["forest", "class"], "metric", "forest learned nothing by unpsl"),
        (runs["forest", "number"], "scores", "classifies nobody"),
        (federated["regression"].sites["north"], "metric", "learned no metric"),
        (runs["regression", "class"], "groups", "no clusters.csv"),
    ]:
        with pytest.raises(kindred.Absent, match=wanted):
            getattr(run, name)


def test_each_method_has_a_figure(demo, runs):
    for run, label, rows in [
        (demo, "Weight of the feature", 12),
        (runs["regression", "class"], "Log odds ratio of ill (numbers per SD)", 10),
        (runs["regression", "number"], "Difference of Score (points) (numbers per SD)", 10),
        (runs["regression", "survival"], "Log hazard ratio of days (numbers per SD)", 10),
        (runs["forest", "class"], "Loss without the feature", 6),
        (runs["compare", "class"], "Gain over Euclidean distance", 2),
    ]:
        axes = run.plot()
        assert axes.get_xlabel() == label
        assert len(axes.get_yticklabels()) == rows
    card = kindred.load(demo.folder / "card")
    with pytest.raises(kindred.Absent, match="no figure of card"):
        card.plot()
