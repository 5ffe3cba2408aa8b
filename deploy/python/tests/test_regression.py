"""Promise: a regression predicts what the program predicts, and survival is R's."""

import io

import numpy as np
import pandas as pd
import pytest
from conftest import FIT_IN_R, job, run_r, whole

import kindred


@pytest.mark.parametrize(("outcome", "column"), [("class", "probability"), ("number", "mean")])
def test_predictions_are_the_programs(runs, mixed, outcome, column):
    run = runs["regression", outcome]
    assert run.regression.knots.keys() == {"bp"}
    said = run.sites["patients"].patients[column].to_numpy()
    assert np.abs(run.regression.predict(mixed) - said).max() < 1e-12


def risks(site: kindred.Site) -> pd.DataFrame:
    return site.patients.filter(like="risk_by_").rename(
        columns=lambda name: float(name.removeprefix("risk_by_"))
    )


def test_survival_by_a_hospitals_own_baseline_is_the_programs(runs, mixed, federated, patients):
    run = runs["regression", "survival"]
    for cox, frame, site in [
        (run.regression, mixed, run.sites["patients"]),
        (
            federated["regression"].regression,
            patients["survival"]["east"],
            federated["regression"].sites["east"],
        ),
    ]:
        shift = cox.predict(frame) - site.patients["log_hazard_ratio"].to_numpy()
        assert np.ptp(shift) < 1e-12
        said = risks(site)
        found = cox.at(frame).predict_survival_function(frame, said.columns)
        assert np.abs(1 - found.to_numpy() - said.to_numpy()).max() < 1e-12


def test_survival_by_a_common_baseline_is_the_programs(mixed, home):
    text = job("regression", "survival", 'baseline = "common"\ncells = 4')
    run = kindred.local(mixed, text, home / "common", patient="id")
    said = risks(run.sites["patients"])
    found = run.regression.predict_survival_function(mixed, said.columns)
    assert np.abs(1 - found.to_numpy() - said.to_numpy()).max() < 1e-12
    assert run.regression.predict_survival_function(mixed).columns.tolist() == [0, 75, 150, 225, 300]


def test_without_a_baseline_there_is_no_survival(runs, mixed):
    with pytest.raises(ValueError, match="its own baseline hazard"):
        runs["regression", "survival"].regression.predict_survival_function(mixed)


@pytest.mark.parametrize("outcome", ["class", "number", "survival"])
def test_distances_are_the_programs(runs, mixed, outcome):
    run = runs["regression", outcome]
    apart = run.regression.distances(mixed)
    rows = {patient: at for at, patient in enumerate(mixed["id"])}
    listed = run.sites["patients"].neighbours.reset_index()
    assert len(listed) == 1500
    for one in listed.itertuples():
        assert apart[rows[one.patient], rows[one.neighbour]] == pytest.approx(one.distance, abs=1e-12)
    new = mixed.head(2)
    assert np.allclose(run.regression.distances(new, mixed), apart[:2], rtol=0, atol=1e-15)


def test_a_researcher_alone_cannot_fill_in_missing_values(runs, mixed):
    run = runs["regression", "number"]
    bare = kindred.regression.of_files(run.job, run.result["model"], run.coefficients, {})
    with pytest.raises(ValueError, match="missing values of crp"):
        bare.predict(whole(mixed).assign(crp=np.nan))
    complete = whole(mixed)
    assert np.array_equal(bare.predict(complete), run.regression.predict(complete))


def test_survival_is_that_of_rs_survfit(complete, home):
    frame, run = complete
    script = f"""{FIT_IN_R}
curves <- survfit(fit, newdata = frame[1:4, ], stype = 2, ctype = 1)
write.csv(data.frame(time = curves$time, curves$surv), row.names = FALSE)
"""
    theirs = pd.read_csv(io.StringIO(run_r(script, home)))
    found = run.regression.at(frame).predict_survival_function(frame.head(4), theirs["time"].to_numpy())
    assert np.abs(found.to_numpy().T - theirs.iloc[:, 1:].to_numpy()).max() < 1e-7
