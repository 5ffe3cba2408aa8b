"""Runs of the built programs, made once for all tests; nothing but synthetic patients."""

import os
import shutil
import subprocess
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

import kindred

matplotlib.use("Agg")

ROOT = Path(__file__).parents[3]
JOBS = ROOT / "deploy" / "jobs"
POLICIES = ROOT / "deploy" / "policies"

OUTCOMES = {
    "class": 'column = "ill"\nkind = "binary"\npositive = ["yes"]',
    "number": 'column = "score"\nkind = "numeric"\nlabel = "Score"\nunit = "points"',
    "survival": 'column = "days"\nkind = "survival"\nevent = "died"\nevent_values = ["1"]\nhorizon = 300\n'
    'unit = "days"',
}

# One feature of each kind and treatment.
FEATURES = """
[[features]]
name = "born"
kind = "age"
at = "2020-12-31"
label = "Age"

[[features]]
name = "sex"
kind = "binary"
positive = "m"
negative = "f"

[[features]]
name = "stage"
kind = "ordinal"
levels = ["I", "II", "III"]

[[features]]
name = "crp"
kind = "numeric"
transform = "log"
range = [0, 40]
impute = "median"

[[features]]
name = "bp"
kind = "numeric"
unit = "mmHg"
range = [50, 250]
impute = "indicator"
missing = ["-9"]
SPLINE

[[features]]
name = "ward"
kind = "categorical"
levels = ["a", "b", "c"]
level_labels = { a = "surgery" }
"""


def job(method: str, outcome: str, settings: str = "", spline: str = "") -> str:
    head = f'name = "mixed"\nmethod = "{method}"\nsites = ["north", "south"]\nseed = 1\n'
    features = FEATURES.replace("SPLINE", spline)
    return f"{head}\n[outcome]\n{OUTCOMES[outcome]}\n{features}\n[{method}]\n{settings}\n"


@pytest.fixture(scope="session")
def mixed() -> pd.DataFrame:
    """Patients with every kind of feature and of outcome, some of it missing."""
    draw = np.random.default_rng(3)
    n = 300
    age = draw.uniform(20, 90, n)
    born = pd.Timestamp("2020-12-31") - pd.to_timedelta((age * 365.2425).astype(int), unit="D")
    sex, stage, ward = draw.integers(0, 2, n), draw.integers(0, 3, n), draw.integers(0, 3, n)
    crp, bp = np.exp(draw.normal(1, 1, n)).round(3), draw.normal(130, 15, n).round(1)
    risk = (age - 55) / 15 + 0.7 * sex + 0.6 * stage + 0.4 * np.log1p(crp) + (ward == 2)
    days, censored = draw.exponential(np.exp(5 - risk)), draw.uniform(20, 500, n)
    frame = pd.DataFrame(
        {
            "id": [f"{one:04}" for one in range(n)],
            "born": born.strftime("%Y-%m-%d"),
            "sex": np.where(sex, "m", "f"),
            "stage": np.array(["I", "II", "III"])[stage],
            "crp": crp,
            "bp": np.where(draw.random(n) < 0.05, -9.0, bp),
            "ward": np.array(["a", "b", "c"])[ward],
            "ill": np.where(draw.random(n) < 1 / (1 + np.exp(1 - risk)), "yes", "no"),
            "score": (3 * risk + draw.normal(0, 1, n)).round(3),
            "days": np.minimum(days, censored).round(2),
            "died": (days < censored).astype(int),
        }
    )
    for column in ["stage", "crp", "ward"]:
        frame.loc[draw.random(n) < 0.06, column] = None
    return frame


def whole(mixed: pd.DataFrame) -> pd.DataFrame:
    """Those who have a value of every feature within its range."""
    return mixed[mixed[["stage", "ward"]].notna().all(axis=1) & (mixed["crp"] <= 40) & (mixed["bp"] > 0)]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


SETTINGS = {
    ("unpsl", "class"): "rank = 2\nlambda_sparsity = 0.01",
    ("regression", "class"): "",
    ("regression", "number"): "",
    ("regression", "survival"): "",
    ("forest", "class"): 'trees = 70\nproximity = "proximity"',
    ("forest", "number"): 'trees = 70\nproximity = "out-of-bag"',
    ("forest", "survival"): 'trees = 70\nproximity = "proximity"',
    ("forest-gap", "class"): 'trees = 70\nproximity = "gap"',
    ("compare", "class"): 'families = ["cosine", "regression"]\n[regression]',
}


@pytest.fixture(scope="session")
def runs(mixed: pd.DataFrame, home: Path) -> dict[tuple[str, str], kindred.Run]:
    """Runs of one table, by method and outcome."""
    spline = {"regression": "spline = 3"}
    made = {}
    for (method, outcome), settings in SETTINGS.items():
        text = job(method.partition("-")[0], outcome, settings, spline.get(method, ""))
        made[method, outcome] = kindred.local(mixed, text, home / f"{method}-{outcome}", patient="id")
    return made


@pytest.fixture(scope="session")
def patients(home: Path) -> dict[str, dict[str, pd.DataFrame]]:
    """Synthetic patients of four sites, by outcome."""
    return {
        outcome: kindred.synthesise(home / f"patients-{outcome}", outcome)
        for outcome in ["class", "survival"]
    }


@pytest.fixture(scope="session")
def demo(home: Path) -> kindred.Run:
    return kindred.simulate(home / "demo")


@pytest.fixture(scope="session")
def federated(home: Path, patients: dict[str, dict[str, pd.DataFrame]]) -> dict[str, kindred.Run]:
    """Runs of four hospitals on survival: a forest and a regression."""
    return {
        "forest": kindred.simulate(
            home / "federated-forest",
            JOBS / "demo-forest-survival.toml",
            home / "patients-survival",
            policy=POLICIES / "forests.toml",
        ),
        "regression": kindred.simulate(
            home / "federated-regression",
            JOBS / "demo-regression-survival.toml",
            patients["survival"],
            policy=POLICIES / "simulation.toml",
        ),
    }


@pytest.fixture(scope="session")
def complete(home: Path, patients: dict[str, dict[str, pd.DataFrame]]) -> tuple[pd.DataFrame, kindred.Run]:
    """Patients without a missing value, also as `complete.csv`, and their Cox regression."""
    frame = patients["survival"]["north"].dropna()
    frame.to_csv(home / "complete.csv", index=False)
    outcome = {"column": "days", "kind": "survival", "event": "event", "event_values": ["1"], "horizon": 1000}
    levels = {"grade": {"kind": "categorical", "levels": ["low", "middle", "high"]}}
    study = kindred.Study.draft(frame, outcome, features=["first_1", "second_1", "grade"], keys=levels)
    return frame, kindred.local(frame, study.job("regression"), home / "complete", patient="patient")


# The same regression in R, as `fit`.
FIT_IN_R = """
library(survival)
frame <- read.csv("complete.csv")
frame$grade <- factor(frame$grade, levels = c("low", "middle", "high"))
fit <- coxph(Surv(days, event) ~ first_1 + second_1 + grade, frame, ties = "efron",
             control = coxph.control(eps = 1e-12, iter.max = 50))
"""


def run_r(script: str, folder: Path) -> str:
    """Run a script with R in a folder; gives what it printed. Skipped where R is absent."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("found no Rscript")
    packages = "c('jsonlite', 'survival')"
    wanted = f"for (one in {packages}) if (!requireNamespace(one, quietly = TRUE)) quit(status = 7)\n"
    ran = subprocess.run(
        [program, "-e", wanted + script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KINDRED_R": str(ROOT / "deploy" / "r" / "kindred.R")},
    )
    if ran.returncode == 7:
        pytest.skip("found no jsonlite or survival in R")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
