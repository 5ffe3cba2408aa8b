"""Promise: the page's ten lines of Python and of R place a patient as the package does, and R reads a run."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import FIT_IN_R, run_r

PAGE = (Path(__file__).parents[1] / "README.md").read_text()


def lines(language: str) -> str:
    """The page's lines that read `metric.csv`."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    found = next(block for block in blocks if "metric.csv" in block)
    assert len(found.splitlines()) <= 11
    return found


def by_rows(patient: pd.Series) -> dict[str, float]:
    """Numbers by name, and the level as 1."""
    known = patient.drop(["patient", "class", "grade"]).dropna().astype(float).to_dict()
    return {**known, f"grade={patient['grade']}": 1.0}


@pytest.fixture(scope="module")
def two(patients, demo):
    pair = patients["class"]["north"].query("grade.notna()").iloc[[1, 4]]
    one, other = demo.metric.transform(pair)
    return [by_rows(row) for _, row in pair.iterrows()], np.linalg.norm(one - other)


def test_ten_lines_of_python(two, demo, monkeypatch, capsys):
    (one, other), wanted = two
    monkeypatch.chdir(demo.folder)
    exec(lines("python"), {"one": one, "other": other})  # noqa: S102, the page's own lines
    assert float(capsys.readouterr().out) == pytest.approx(wanted, abs=1e-12)


def test_ten_lines_of_r(two, demo):
    pair, wanted = two
    given = ""
    for name, patient in zip(["one", "other"], pair, strict=True):
        entries = ", ".join(f"`{key}` = {value!r}" for key, value in patient.items())
        given += f"{name} <- c({entries})\n"
    assert float(run_r(given + lines("r"), demo.folder)) == pytest.approx(wanted, abs=1e-12)


def test_r_reads_a_regression_as_coxph_says_it(complete, home):
    script = f"""{FIT_IN_R}
source(Sys.getenv("KINDRED_R"))
said <- summary(kindred_load("complete"))
invisible(capture.output(print(said)))
theirs <- summary(fit)
stopifnot(identical(colnames(said$coefficients), colnames(theirs$coefficients)))
stopifnot(said$n == theirs$n, said$nevent == theirs$nevent, abs(said$loglik - theirs$loglik[2]) < 1e-4)
cat(max(abs(unname(said$coefficients) - unname(theirs$coefficients))))
"""
    assert float(run_r(script, home)) < 1e-5


def test_r_draws_survival_by_group(runs):
    site = runs["forest", "survival"].sites["patients"]
    risk = site.patients["risk"]
    site_curves = site.survival((risk > risk.median()).map({True: "b", False: "a"}))
    script = f"""
source(Sys.getenv("KINDRED_R"))
site <- kindred_load({str(site.folder)!r})
stopifnot(is.character(site[["outcome.csv"]]$patient), site[["outcome.csv"]]$patient[1] == "0000")
risk <- site[["predictions.csv"]]$risk
curves <- kindred_survival(site, ifelse(risk > median(risk), "b", "a"))
cat(format(sum(curves$surv), digits = 15))
"""
    assert float(run_r(script, site.folder)) == pytest.approx(site_curves["survival"].sum(), abs=1e-9)
