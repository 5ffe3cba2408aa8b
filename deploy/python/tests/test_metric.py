"""Promise: a metric places patients as the program does, in scikit-learn's conventions."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import job, whole
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from kindred import Job, Metric
from kindred.metric import Row

# These fit a table of their own with other columns; a metric is learned already, for the columns of its job.
CHECKED = {
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}


def nearest(table: pd.DataFrame, k: int, column: str) -> np.ndarray:
    return table[table["rank"] <= k][column].to_numpy().reshape(-1, k)


def test_standardised_patients_are_the_programs(runs, mixed, demo, patients):
    site = runs["unpsl", "class"].sites["patients"]
    assert np.abs(site.metric.standardise(mixed) - site.matrix).max() < 1e-14
    for name, site in demo.sites.items():
        assert np.array_equal(site.metric.standardise(patients["class"][name]), site.matrix)


def test_nearest_patients_are_the_programs(runs, mixed):
    site = runs["unpsl", "class"].sites["patients"]
    apart, rows = site.metric.fit(mixed).kneighbors(n_neighbors=5)
    listed = site.neighbours.reset_index()
    assert np.abs(apart**2 - nearest(listed, 5, "squared_distance")).max() < 1e-12
    assert (mixed["id"].to_numpy()[rows] == nearest(listed, 5, "neighbour")).mean() > 0.99


def test_an_inner_product_is_near_where_it_is_large(mixed, home):
    import kindred

    text = job("unpsl", "class", 'rank = 2\nneighbour_rule = "inner_product"')
    run = kindred.local(mixed, text, home / "inner", patient="id")
    site = run.sites["patients"]
    apart = site.metric.fit(mixed).kneighbors(n_neighbors=5)[0]
    assert np.abs(-apart - nearest(site.neighbours, 5, "inner_product")).max() < 1e-12
    assert run.metric.rule == "inner_product"


def test_the_researchers_metric_gives_the_distances_of_a_hospitals(demo, patients):
    whole = patients["class"]["north"].dropna()
    theirs = demo.metric.fit(whole).kneighbors(n_neighbors=3)[0]
    own = demo.sites["north"].metric.fit(whole).kneighbors(n_neighbors=3)[0]
    assert np.abs(theirs - own).max() < 1e-12


def test_what_only_a_hospital_knows_is_refused(runs, mixed):
    run = runs["unpsl", "class"]
    with pytest.raises(ValueError, match="crp: what stands for a missing value"):
        run.metric.transform(mixed[mixed["ward"].notna()])
    assert np.isfinite(run.metric.transform(whole(mixed))).all()


def test_new_patients_are_compared_with_those_that_were_kept(runs, mixed):
    metric = runs["unpsl", "class"].sites["patients"].metric.fit(mixed)
    apart, rows = metric.kneighbors(mixed.iloc[[7, 9]], n_neighbors=1)
    assert (rows[:, 0].tolist(), apart.max()) == ([7, 9], 0.0)
    assert metric.kneighbors(mixed.iloc[[7]], 2, return_distance=False).shape == (1, 2)
    with pytest.raises(ValueError, match="300 patients were kept"):
        metric.kneighbors(n_neighbors=300)


def test_it_is_a_step_of_a_pipeline(demo, patients):
    train, test = patients["class"]["north"], patients["class"]["south"]
    metric = demo.sites["north"].metric
    pipeline = make_pipeline(metric, KNeighborsClassifier(5)).fit(train, train["class"])
    accuracy = pipeline.score(test, test["class"])
    assert 0.8 < accuracy < 1.0
    framed = clone(metric).set_output(transform="pandas").fit_transform(train)
    assert framed.columns.tolist() == ["w1", "w2", "w3", "w4"]


def test_scikit_learns_checks_hold_where_they_apply():
    text = "".join(f'[[features]]\nname = "x{one}"\nkind = "numeric"\n' for one in range(3))
    read = Job.read(f'name = "j"\n[outcome]\ncolumn = "y"\nkind = "numeric"\n{text}')
    rows = tuple(Row(name, at, "value", 0.0, 1.0, 0.0) for at, name in enumerate(read.names))
    seen = set()
    for estimator, check in estimator_checks_generator(Metric(read, rows, np.eye(3))):
        name = check.func.__name__
        if name in CHECKED:
            check(estimator)
            seen.add(name)
    assert seen >= CHECKED - {"check_parameters_default_constructible"}


def test_it_places_patients_without_scikit_learn(runs):
    folder = runs["unpsl", "class"].folder
    script = (
        "import sys; sys.modules['sklearn'] = sys.modules['sklearn.base'] = None\n"
        "import kindred, pandas\n"
        f"site = kindred.load({str(folder / 'patients')!r})\n"
        "one = dict(born='1950-01-01', sex='m', stage='I', crp=2, bp=120, ward='a')\n"
        "print(site.metric.transform(pandas.DataFrame([one])).shape)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "(1, 2)\n"
