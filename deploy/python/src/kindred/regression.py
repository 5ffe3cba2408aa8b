"""Regressions: coefficients, predictions, and for survival the chance of no event by a time."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .job import Job, Numbers

_CONSTANT = "(constant)"


@dataclass(frozen=True)
class Regression:
    """A linear, logistic or Cox regression with one row of `coefficients` per column.

    `imputed` has what a missing value of a feature counts as: a number, or the place of a level. Without it,
    as in a researcher's folder, patients with missing values are refused.
    """

    job: Job
    family: str
    coefficients: pd.DataFrame
    knots: dict[str, list[float]]
    imputed: dict[str, float] = field(default_factory=dict)

    def design(self, X: pd.DataFrame | NDArray[Any]) -> pd.DataFrame:
        """Give the columns of the regression, in the features' own units."""
        table = self.job.table(X)
        columns: dict[str, Numbers] = {_CONSTANT: np.ones(len(table))}
        for at, feature in enumerate(self.job.features):
            values = table[:, at]
            missing = np.isnan(values)
            columns[f"{feature.name}=missing"] = missing.astype(np.float64)
            values = np.where(missing, self.imputed.get(feature.name, np.nan), values)
            for place, level in enumerate(feature.levels):
                columns[f"{feature.name}={level}"] = np.where(np.isnan(values), np.nan, values == place)
            for part, column in enumerate(_curves(values, self.knots.get(feature.name, []))):
                columns[feature.name + "'" * part] = column
        made = pd.DataFrame({name: columns[name] for name in self.coefficients.index})
        unknown = made.columns[made.isna().any()]
        if len(unknown):
            raise ValueError(
                f"missing values of {', '.join(unknown)}; a hospital's folder has what stands for them"
            )
        return made

    def linear_predictor(self, X: pd.DataFrame | NDArray[Any]) -> Numbers:
        """Give the sum of coefficients times columns; of survival the log hazard ratio to zeros."""
        return np.asarray(self.design(X).to_numpy() @ self.coefficients["coefficient"].to_numpy())

    def distances(
        self, X: pd.DataFrame | NDArray[Any], Y: pd.DataFrame | NDArray[Any] | None = None
    ) -> Numbers:
        """Give the distances of patients, n x m: over features, how far each moves the prediction apart."""
        weights = self.coefficients.get("weight", self.coefficients["coefficient"])
        rows = self.design(X) * weights
        columns = rows if Y is None else self.design(Y) * weights
        apart = np.zeros((len(rows), len(columns)))
        for feature in self.job.features:
            levels = {f"{feature.name}={level}" for level in [*feature.levels, "missing"]}
            own = [name for name in rows.columns if name in levels or name.rstrip("'") == feature.name]
            if own:
                one, other = (part[own].sum(axis=1).to_numpy() for part in (rows, columns))
                apart += np.abs(np.subtract.outer(one, other))
        return apart

    def predict(self, X: pd.DataFrame | NDArray[Any]) -> Numbers:
        """Give the mean, the probability of the second class, or the log hazard ratio."""
        predictor = self.linear_predictor(X)
        return 1.0 / (1.0 + np.exp(-predictor)) if self.family == "logistic" else predictor


@dataclass(frozen=True)
class Cox(Regression):
    """A Cox regression with the cumulative hazard of a patient of zeros at `times`.

    A run with one baseline for all hospitals has it, straight between its times. Otherwise each hospital has
    its own, by `at`, which steps at its events.
    """

    times: Numbers = field(default_factory=lambda: np.empty(0))
    hazard: Numbers = field(default_factory=lambda: np.empty(0))
    steps: bool = False

    def at(self, X: pd.DataFrame) -> Self:
        """Take Breslow's baseline hazard of a hospital's own patients, with their times and events."""
        followed = self.job.followed(X)
        known = followed.notna().all(axis=1).to_numpy()
        followed = followed[known].assign(ratio=np.exp(self.linear_predictor(X[known])))
        by_time = followed.groupby("time")[["event", "ratio"]].sum()
        at_risk = by_time["ratio"][::-1].cumsum()[::-1]
        hazard = (by_time["event"] / at_risk).cumsum()
        return dataclasses.replace(self, times=by_time.index.to_numpy(), hazard=hazard.to_numpy(), steps=True)

    def predict_survival_function(
        self, X: pd.DataFrame | NDArray[Any], times: NDArray[Any] | list[float] | None = None
    ) -> pd.DataFrame:
        """Give the chance of no event by each time [default: the baseline's], one row per patient."""
        if not len(self.times):
            raise ValueError("each hospital has its own baseline hazard; load a hospital's folder")
        by = self.times if times is None else np.asarray(times, dtype=np.float64)
        if self.steps:
            before = np.searchsorted(self.times, by, side="right")
            hazard = np.concatenate([[0.0], self.hazard])[before]
        else:
            hazard = np.interp(by, self.times, self.hazard)
        survival = np.exp(-np.outer(np.exp(self.linear_predictor(X)), hazard))
        return pd.DataFrame(survival, columns=pd.Index(by, name="time"))


def _curves(values: Numbers, knots: list[float]) -> list[Numbers]:
    """Give a number and the curved parts of its natural cubic spline (Harrell, section 2.4.5)."""
    parts = [values]
    if knots:
        last, before = knots[-1], knots[-2]
        cubes = [np.maximum(values - knot, 0.0) ** 3 for knot in knots]
        for knot, cube in zip(knots[:-2], cubes, strict=False):
            bent = (
                cube
                - cubes[-2] * (last - knot) / (last - before)
                + cubes[-1] * (before - knot) / (last - before)
            )
            parts.append(bent / (last - knots[0]) ** 2)
    return parts


def of_files(
    job: Job, said: dict[str, Any], coefficients: pd.DataFrame, imputed: dict[str, float]
) -> Regression:
    """Give the regression of `regression.json` and `coefficients.csv`."""
    knots = {one["feature"]: one["knots"] for one in said.get("splines", [])}
    if said["family"] in ("linear", "logistic"):
        return Regression(job, said["family"], coefficients, knots, imputed)
    steps = said.get("baseline_hazards", [])
    widths = np.array([one["hazard"] * (one["until"] - one["from"]) for one in steps])
    times = np.array([0.0, *(one["until"] for one in steps)]) if steps else np.empty(0)
    hazard = np.concatenate([[0.0], np.cumsum(widths)]) if steps else np.empty(0)
    return Cox(job, said["family"], coefficients, knots, imputed, times, hazard)


def imputed_of(terms: list[dict[str, Any]]) -> dict[str, float]:
    """Give what stands for missing values, by a hospital's `comparison.json`."""
    return {one["name"]: float(next(iter(one["values"].values()))["imputed"]) for one in terms}
