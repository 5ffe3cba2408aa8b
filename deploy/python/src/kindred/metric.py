"""Metrics: learned distances between patients, in scikit-learn's conventions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .job import Job, Numbers

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ImportError:  # its conventions need scikit-learn; the arithmetic does not

    class BaseEstimator:  # type: ignore[no-redef]
        """Nothing of scikit-learn's."""

    class TransformerMixin:  # type: ignore[no-redef]
        """Nothing of scikit-learn's."""


@dataclass(frozen=True)
class Row:
    """One row of a metric: (taken - mean) / scale of a feature's value.

    `taken` is `value`, `missing`, or the place of a level. `imputed` is what a missing value counts as, in
    the unit of what is taken; NaN where only a hospital's folder has it.
    """

    name: str
    feature: int
    taken: str | int
    mean: float
    scale: float
    imputed: float

    def standardise(self, values: Numbers) -> Numbers:
        """Standardise one feature's values."""
        missing = np.isnan(values)
        if self.taken == "missing":
            numbers = missing.astype(np.float64)
        else:
            numbers = values if self.taken == "value" else (values == self.taken).astype(np.float64)
            numbers = np.where(missing, self.imputed, numbers)
        if np.isnan(numbers).any():
            raise ValueError(f"{self.name}: what stands for a missing value is in a hospital's folder alone")
        return (numbers - self.mean) / self.scale


class Metric(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A learned metric W: patients i and j are |W'x_i - W'x_j| apart, for standardised x.

    It is learned already, so `fit` only keeps the patients among which `kneighbors` looks. Tables are data
    frames with the job's columns, or arrays with these in order.
    """

    def __init__(self, job: Job, rows: tuple[Row, ...], weights: Numbers, rule: str = "distance") -> None:
        """Take the rows of a metric and their weights W, d x m."""
        self.job = job
        self.rows = rows
        self.weights = weights
        self.rule = rule

    def __sklearn_tags__(self) -> Any:
        """Say that missing values are expected, and that nothing is learned by `fit`."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.requires_fit = False
        return tags

    def standardise(self, X: pd.DataFrame | NDArray[Any]) -> Numbers:
        """Give the standardised rows of each patient, n x d."""
        table = self.job.table(X)
        return np.column_stack([row.standardise(table[:, row.feature]) for row in self.rows])

    def fit(self, X: pd.DataFrame | NDArray[Any], y: Any = None) -> Self:
        """Keep patients among which `kneighbors` looks."""
        self.embedding_ = self.transform(X)
        self.n_features_in_ = len(self.job.features)
        self.feature_names_in_ = np.array(self.job.names, dtype=object)
        return self

    def transform(self, X: pd.DataFrame | NDArray[Any]) -> Numbers:
        """Give coordinates W'x, n x m, whose Euclidean distance is the learned one."""
        return self.standardise(X) @ self.weights

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the coordinates as `metric.csv` does."""
        return np.array([f"w{at + 1}" for at in range(self.weights.shape[1])], dtype=object)

    def kneighbors(
        self,
        X: pd.DataFrame | NDArray[Any] | None = None,
        n_neighbors: int = 5,
        return_distance: bool = True,
    ) -> tuple[Numbers, NDArray[np.intp]] | NDArray[np.intp]:
        """Find the nearest of the patients that `fit` kept; without X of each of them among the others.

        With the rule `inner_product` a distance is the negative inner product, as in the program.
        """
        there = self.embedding_
        here = there if X is None else self.transform(X)
        if n_neighbors > len(there) - (X is None):
            raise ValueError(f"n_neighbors is {n_neighbors}, and {len(there)} patients were kept")
        if self.rule == "inner_product":
            apart = -(here @ there.T)
        else:
            squares = sum(
                np.subtract.outer(one, other) ** 2 for one, other in zip(here.T, there.T, strict=True)
            )
            apart = np.sqrt(squares)
        if X is None:
            np.fill_diagonal(apart, np.inf)
        nearest = np.argsort(apart, axis=1, kind="stable")[:, :n_neighbors]
        return (np.take_along_axis(apart, nearest, axis=1), nearest) if return_distance else nearest

    def features(self) -> pd.DataFrame:
        """Give the norm of each row, with mean and scale; 0 has no weight."""
        return pd.DataFrame(
            {
                "norm": np.linalg.norm(self.weights, axis=1),
                "mean": [row.mean for row in self.rows],
                "scale": [row.scale for row in self.rows],
            },
            index=pd.Index([row.name for row in self.rows], name="row"),
        )


def of_record(job: Job, learned: dict[str, Any]) -> Metric:
    """Give the metric of a hospital's `comparison.json`."""
    rows = tuple(
        Row(
            one["name"],
            one["column"],
            one["transform"]["level"] if isinstance(one["transform"], dict) else one["transform"],
            one["mean"],
            one["scale"],
            one["imputed"],
        )
        for one in learned["rows"]
    )
    return Metric(job, rows, np.array(learned["metric"], dtype=np.float64), learned["rule"])


def of_result(job: Job, model: dict[str, Any]) -> Metric:
    """Give the metric of a researcher's `result.json`, which has no more than the means of all patients."""
    known: dict[str, tuple[int, str | int, bool]] = {}
    for at, feature in enumerate(job.features):
        mean_stands = (
            feature.keys.get("impute", "mean") in ("mean", "indicator")
            and feature.keys.get("standardise", "moments") == "moments"
        )
        for place, level in enumerate(feature.levels):
            known[f"{feature.name}={level}"] = (at, place, False)
        if not feature.levels:
            known[feature.name] = (at, "value", mean_stands)
        known.setdefault(f"{feature.name}=missing", (at, "missing", False))
    rows = []
    for one in model["rows"]:
        feature_at, taken, mean_stands = known[one["name"]]
        imputed = one["mean"] if mean_stands else np.nan
        rows.append(Row(one["name"], feature_at, taken, one["mean"], one["scale"], imputed))
    weights = np.array([one["weights"] for one in model["rows"]], dtype=np.float64)
    return Metric(job, tuple(rows), weights, job.keys.get("unpsl", {}).get("neighbour_rule", "distance"))
