"""Questions to one hospital's own patients, answered by the site agent's program; nothing leaves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from . import figures
from .programs import SITE_AGENT, options, private_folder, run_program, write_private
from .run import Run, table


@dataclass(frozen=True)
class Answer:
    """What a question found: the program's whole answer as `said`, and its table."""

    question: str
    said: dict[str, Any]
    table: pd.DataFrame

    @property
    def sentence(self) -> str:
        """The program's own sentence; empty where the question has none."""
        return str(self.said.get("sentence", ""))

    def frame(self, key: str) -> pd.DataFrame:
        """Give a list of the answer as a frame, such as `balance`, `rules` or `groups`."""
        return pd.json_normalize(self.said[key])

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the outcomes of cases or clusters, the balance of a match, or the figures of each rule."""
        match self.question:
            case "similar":
                cases = {f"similar to {one['patient']}": one["fared"] for one in self.said["queries"]}
                return _outcomes({"all patients": self.said["whole"], **cases}, axes)
            case "cluster":
                return _outcomes(
                    {f"cluster {one['group']}": one["fared"] for one in self.said["groups"]}, axes
                )
            case "match":
                balance = self.frame("balance").set_index("feature")
                before, after = (
                    balance[f"{when}.standardised_difference"].astype(float) for when in ("before", "after")
                )
                return figures.love(before, after, axes)
        rules = self.frame("rules").set_index("rule")
        figure = next(one for one in ("accuracy", "explained", "concordance") if f"{one}.value" in rules)
        ends = {end: rules[f"{figure}.{end}"].astype(float) for end in ("value", "low", "high")}
        return figures.intervals(pd.DataFrame(ends).dropna(), figure.capitalize(), None, axes)


def _outcomes(groups: dict[str, dict[str, Any]], axes: Axes | None) -> Axes:
    """Draw the outcomes of groups: shares of classes, survival, or means."""
    first = next(iter(groups.values()))
    if "classes" in first:
        shares = {
            name: {one["class"]: one["share"]["value"] for one in outcomes["classes"]}
            for name, outcomes in groups.items()
        }
        return figures.shares(pd.DataFrame(shares).T, "Share of the patients", axes)
    if "survival" in first:
        columns = ["time", "survival", "low", "high"]
        curves = [
            pd.DataFrame(outcomes["survival"]["curve"], columns=columns).assign(group=name)
            for name, outcomes in groups.items()
        ]
        unit = first["survival"]["unit"]
        return figures.curves(pd.concat(curves), f"Time in {unit}" if unit else "Time", axes)
    means = pd.DataFrame({name: outcomes["mean"] for name, outcomes in groups.items()}).T
    return figures.intervals(means.astype(float), "Mean of the outcome", None, axes)


def _ask(
    question: str, source: pd.DataFrame | Path, run: Run | str, new: pd.DataFrame | None, **asked: Any
) -> Answer:
    with private_folder() as folder:
        if isinstance(source, pd.DataFrame):
            asked["data"] = write_private(folder / "patients.csv", source)
        else:
            asked["config" if source.suffix == ".toml" else "data"] = source
        if new is not None:
            asked["new"] = write_private(folder / "new.csv", new)
        written = folder / "answer.csv"
        name = run.folder if isinstance(run, Run) else run
        printed = run_program(SITE_AGENT, [question, str(name), *options(json=True, csv=written, **asked)])
        return Answer(question, json.loads(printed), table(written))


def similar(
    source: pd.DataFrame | Path,
    run: Run | str,
    *,
    new: pd.DataFrame | None = None,
    patient: str | None = None,
    id: str | None = None,
    k: int = 10,
    by: str = "run",
) -> Answer:
    """Find the nearest patients of new ones, or of one of the cohort by its identifier.

    `source` is the cohort as a frame or a file, with identifiers in the column `id`, or a hospital's
    `site.toml`. `run` is a run of `local`, or the name of a run at the hospital.
    """
    return _ask("similar", source, run, new, patient=patient, id=id, k=k, by=by)


def match(
    source: pd.DataFrame | Path,
    run: Run | str,
    new: pd.DataFrame,
    *,
    id: str | None = None,
    k: int = 1,
    caliper: float | None = None,
    choice: str = "optimal",
    by: str = "run",
) -> Answer:
    """Match k patients of the cohort to each new one; source and run as of `similar`."""
    return _ask("match", source, run, new, id=id, k=k, caliper=caliper, choice=choice, by=by)


def cluster(
    source: pd.DataFrame | Path,
    run: Run | str,
    *,
    new: pd.DataFrame | None = None,
    id: str | None = None,
    k: int | str = "2..8",
    samples: int = 100,
    seed: int = 1,
    by: str = "run",
) -> Answer:
    """Divide the cohort into clusters around medoids; source and run as of `similar`."""
    return _ask("cluster", source, run, new, id=id, k=k, samples=samples, seed=seed, by=by)


def predict(
    source: pd.DataFrame | Path,
    run: Run | str,
    *,
    new: pd.DataFrame | None = None,
    id: str | None = None,
    folds: int = 5,
    seed: int = 1,
    by: str = "run",
) -> Answer:
    """Predict the outcome from similar patients, with held-out figures; source and run as of `similar`."""
    return _ask("predict", source, run, new, id=id, folds=folds, seed=seed, by=by)
