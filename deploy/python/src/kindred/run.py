"""Folders of results: what a run left for the researcher, and what it left at a hospital."""

from __future__ import annotations

import base64
import csv
import json
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from . import figures, metric, regression
from .forest import Bits, Forest
from .job import Job, Numbers, with_unit
from .metric import Metric
from .regression import Regression
from .survival import kaplan_meier


class Absent(LookupError):  # noqa: N818, a state and no error of the program
    """What a run did not leave."""


def table(path: Path) -> pd.DataFrame:
    """Read a table by its sidecar: an identifier keeps its zeros, a number its bits; an empty one is NaN."""
    kinds = columns(path)["datatype"]
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    if header != kinds.index.tolist():
        raise ValueError(f"{path} has other columns than its sidecar")
    cells = {name: np.array([row[at] for row in rows], dtype=object) for at, name in enumerate(header)}
    return pd.DataFrame({name: _cells(texts, kinds[name]) for name, texts in cells.items()})


def columns(path: Path) -> pd.DataFrame:
    """Read what the columns of a CSV file are: datatype, unit, description, and the label of each level."""
    sidecar = path.with_name(f"{path.name}-metadata.json")
    said = json.loads(sidecar.read_text(encoding="utf-8"))["tableSchema"]["columns"]
    rows = [
        {
            "column": one["titles"],
            "datatype": one["datatype"],
            "unit": one.get("schema:unitText", ""),
            "description": one["dc:description"],
            "levels": {
                level["schema:value"]: level["schema:name"] for level in one.get("schema:valueReference", [])
            },
        }
        for one in said
    ]
    return pd.DataFrame(rows).set_index("column")


def _cells(texts: NDArray[np.object_], kind: str) -> NDArray[Any]:
    """Give the cells of a column of this datatype; texts where one stands for a number that is withheld."""
    if kind == "string":
        return texts
    if kind == "boolean":
        return np.isin(texts, ["true", "1"])
    try:
        if kind == "integer" and all(texts):
            return np.array([int(text) for text in texts], dtype=np.int64)
        return np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return texts


@dataclass(frozen=True)
class Outcome:
    """An outcome as people read it. `groups` has the patients of each class, or those with an event."""

    name: str
    label: str
    kind: str
    unit: str
    groups: pd.DataFrame

    def __str__(self) -> str:
        """Give the label with its unit."""
        return with_unit(self.label, self.unit)


class _Folder:
    """A folder of files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            raise Absent(f"{self.folder} has no {name}")
        return path

    def _json(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self._path(name).read_text(encoding="utf-8"))
        return content

    def columns(self, name: str) -> pd.DataFrame:
        """Give what the columns of one of its tables are, as the function `columns` does."""
        return columns(self._path(name))

    def _table(self, name: str, index: str) -> pd.DataFrame:
        return table(self._path(name)).set_index(index)


class Site(_Folder):
    """What a run left at a hospital. All of it is about patients and stays there."""

    @cached_property
    def _record(self) -> dict[str, Any]:
        return self._json("comparison.json")

    @cached_property
    def job(self) -> Job:
        """The job of the run."""
        return Job.read(self._record["job"])

    def _learned(self, kind: str) -> dict[str, Any]:
        if kind not in self._record["learned"]:
            raise Absent(f"this run learned no {kind}")
        learned: dict[str, Any] = self._record["learned"][kind]
        return learned

    @cached_property
    def metric(self) -> Metric:
        """The metric, with this hospital's own means."""
        return metric.of_record(self.job, self._learned("metric"))

    @cached_property
    def forest(self) -> Forest:
        """The forest that this hospital has."""
        return Forest.from_bytes(self._path("forest.bin").read_bytes(), self.job)

    @cached_property
    def unseen(self) -> Bits:
        """Which trees have not seen each patient of the run, n x T."""
        learned = self._learned("forest")
        trees = learned["trees"]
        packed = np.frombuffer(base64.b64decode(learned["out_of_bag"]), dtype=np.uint8)
        packed = packed.reshape(self._record["patients"], -1)
        return np.unpackbits(packed, axis=1, count=trees, bitorder="little").astype(bool)

    @cached_property
    def in_bag(self) -> NDArray[np.uint8]:
        """How often each tree drew each patient of the run, n x T, where its proximity is `gap`."""
        return np.asarray(np.load(self._path("in_bag.npy"), allow_pickle=False))

    @cached_property
    def imputed(self) -> dict[str, float]:
        """What stands for a missing value of each feature of a regression."""
        return regression.imputed_of(self._learned("regression")["terms"])

    @cached_property
    def patients(self) -> pd.DataFrame:
        """One row per patient: outcome, and what the run says of it."""
        outcome = self._table("outcome.csv", "patient")
        parts = [outcome.rename(columns=lambda name: "time" if name.startswith("time (") else name)]
        for name in ["folds.csv", "predictions.csv", "outliers.csv", "scaling.csv", "clusters.csv"]:
            if (self.folder / name).exists():
                parts.append(self._table(name, "patient"))
        return pd.concat(parts, axis=1)

    @cached_property
    def neighbours(self) -> pd.DataFrame:
        """The nearest patients of each patient."""
        return self._table("neighbours.csv", "patient")

    @cached_property
    def matrix(self) -> Numbers:
        """Standardised patients, one row each, after a metric."""
        return np.asarray(np.load(self._path("matrix.npy"), allow_pickle=False))

    @cached_property
    def proximity(self) -> Numbers:
        """The job's proximity of all pairs of patients, after a forest."""
        return np.asarray(np.load(self._path("proximity.npy"), allow_pickle=False))

    def survival(self, group: pd.Series[Any]) -> pd.DataFrame:
        """Give the Kaplan-Meier curve of each group of the patients."""
        return kaplan_meier(self.patients["time"], self.patients["event"], group)


class Run(_Folder):
    """What a run left for the researcher."""

    @cached_property
    def result(self) -> dict[str, Any]:
        """All of `result.json`; `schema("result")` describes it."""
        return self._json("result.json")

    @cached_property
    def job(self) -> Job:
        """The job, unless it holds places of patients."""
        if self.result["job_text"] is None:
            raise Absent("the job of this run holds places of patients, so its results do not have it")
        return Job.read(self.result["job_text"])

    @cached_property
    def study(self) -> pd.Series[Any]:
        """The run in a few lines."""
        keys = ["job", "method", "status", "patients", "seed", "seconds", "version"]
        facts = {key: self.result[key] for key in keys}
        return pd.Series({**facts, "hospitals": len(self.result["sites"])}, name=self.result["run"])

    @cached_property
    def outcome(self) -> Outcome:
        """The outcome with its label and unit."""
        cohort = self.result["cohort"]
        said = cohort["outcome"]
        groups = pd.DataFrame(cohort["groups"], columns=["label", "patients", "share"]).set_index("label")
        return Outcome(said["name"], said["label"], said["kind"], said["unit"], groups)

    @cached_property
    def sites(self) -> dict[str, Site]:
        """The hospitals of a simulation by name, or the patients of `local`."""
        if (self.folder / "patients").is_dir():
            return {"patients": Site(self.folder / "patients")}
        return {path.name: Site(path) for path in sorted(self.folder.glob("sites/*"))}

    @cached_property
    def card(self) -> pd.DataFrame:
        """Table 1: one row per group and feature or level."""
        return table(self._path("card.csv" if (self.folder / "card.csv").exists() else "card/card.csv"))

    @cached_property
    def metric(self) -> Metric:
        """The metric, with the means of all patients."""
        return metric.of_result(self.job, self._model("unpsl"))

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """The coefficients of a regression."""
        return self._table("coefficients.csv", "column")

    @cached_property
    def regression(self) -> Regression:
        """The regression; it takes missing values if a hospital's folder is there."""
        said = self._model("regression")
        imputed = next((site.imputed for site in self.sites.values()), {})
        return regression.of_files(self.job, said, self.coefficients, imputed)

    @cached_property
    def forest(self) -> Forest:
        """The common forest, or the one of `local`."""
        local = self.sites.get("patients")
        if local is not None:
            return local.forest
        return Forest.from_bytes(self._path("forest.bin").read_bytes(), self.job)

    @cached_property
    def importance(self) -> pd.DataFrame:
        """How much worse a forest predicts without each feature."""
        return self._table("importance.csv", "feature")

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """The similarities of a comparison."""
        return self._table("comparison.csv", "family")

    @cached_property
    def groups(self) -> pd.DataFrame:
        """The shared clusters: one row per cluster and feature."""
        return table(self._path("clusters.csv"))

    @cached_property
    def scores(self) -> pd.DataFrame:
        """How well each rule classifies: held-out patients, and those that the run learned from."""
        validation = self.result.get("validation", {"scores": []})["scores"]
        judged = {"held-out": validation, "learned": self.result["evaluation"]}
        rows = [{"judged": name, **one} for name, scores in judged.items() for one in scores]
        if not rows:
            raise Absent("this run classifies nobody")
        return pd.json_normalize(rows).set_index(["judged", "rule"])

    def _model(self, method: str) -> dict[str, Any]:
        if self.result["method"] != method or self.result["model"] is None:
            raise Absent(f"this run of {self.result['method']} learned nothing by {method}")
        model: dict[str, Any] = self.result["model"]
        return model

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw what the run answers, by its method."""
        labels = self.job.labels()
        match self.result["method"]:
            case "unpsl":
                norms = self.metric.features()["norm"]
                return figures.bars(norms[norms > 0].rename(labels), "Weight of the feature", axes)
            case "regression":
                return figures.intervals(_effects(self, labels), self._effect(), 0.0, axes)
            case "forest":
                return figures.bars(self.importance["mean"].rename(labels), "Loss without the feature", axes)
            case "compare":
                gains = self.comparison[["better_by", "low", "high"]].dropna()
                gains = gains.set_axis(["value", "low", "high"], axis=1)
                return figures.intervals(gains, "Gain over Euclidean distance", 0.0, axes)
            case method:
                raise Absent(f"there is no figure of {method}")

    def _effect(self) -> str:
        names = {
            "linear": f"Difference of {self.outcome}",
            "logistic": f"Log odds ratio of {self.outcome.label}",
        }
        return (
            names.get(self.regression.family, f"Log hazard ratio of {self.outcome.label}")
            + " (numbers per SD)"
        )


def _effects(run: Run, labels: dict[str, str]) -> pd.DataFrame:
    """Give the effect of each column per standard deviation, with its interval."""
    effects = run.coefficients.drop(index="(constant)", errors="ignore")
    scaled = effects[["coefficient", "low", "high"]].mul(effects["standard_deviation"], axis=0)
    return scaled.set_axis(["value", "low", "high"], axis=1).rename(labels)


def load(folder: str | Path) -> Run | Site:
    """Read a folder of results: a `Run` of the researcher's, or a `Site` of a hospital's."""
    path = Path(folder)
    if (path / "result.json").exists():
        return Run(path)
    if (path / "comparison.json").exists():
        return Site(path)
    raise Absent(f"{path} has neither result.json nor comparison.json")


def schema(name: str) -> dict[str, Any]:
    """Give the JSON Schema of a file or of a `--json`: result, card, similar, match, cluster, and others."""
    text = resources.files(__package__).joinpath(f"schema/{name}.schema.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
