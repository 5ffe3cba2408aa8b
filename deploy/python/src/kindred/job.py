"""Jobs: what a run asked, and how the values of a table of patients are read for it."""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

DAYS_PER_YEAR = 365.2425
# Between the job and its study in the text that all hospitals read.
_STUDY_FOLLOWS = "\n# The study, as its hospitals approved it:\n"


def texts(column: pd.Series[Any]) -> NDArray[np.object_]:
    """Give values as a file has them: missing ones are empty, whole numbers have no point, dates no time."""

    def text(value: Any) -> str:
        if value is None or value is pd.NA or value is pd.NaT or value != value:
            return ""
        if isinstance(value, float | np.floating) and float(value).is_integer():
            return str(int(value))
        if isinstance(value, datetime.date):
            return value.isoformat()[:10]
        return str(value).strip()

    return np.array([text(value) for value in column], dtype=object)


def _numbers(values: NDArray[np.object_]) -> tuple[Numbers, NDArray[np.bool_]]:
    """Give numbers, NaN for an empty text, and which texts are no finite number."""

    def number(value: str) -> float:
        try:
            return float(value)
        except ValueError:
            return np.nan

    numbers = np.array([number(value) for value in values], dtype=np.float64)
    return numbers, ~np.isfinite(numbers) & (values != "")


def _places(values: NDArray[np.object_], codes: list[str]) -> Numbers:
    """Give the place of each value among codes, NaN for any other value; 1.0 is also the code 1."""
    by_text = {code.strip(): float(at) for at, code in enumerate(codes)}
    numbers = _numbers(np.array(list(by_text), dtype=object))[0]
    by_number = {
        number: place for number, place in zip(numbers, by_text.values(), strict=True) if number == number
    }
    read = _numbers(values)[0]
    found = [
        by_text.get(text, by_number.get(number, np.nan)) for text, number in zip(values, read, strict=True)
    ]
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True)
class Feature:
    """A feature with its keys in the job."""

    name: str
    kind: str
    keys: dict[str, Any]

    @property
    def levels(self) -> list[str]:
        """Its levels; none of a number."""
        return list(self.keys.get("levels", [])) if self.kind == "categorical" else []

    @property
    def label(self) -> str:
        """What people read, with the unit."""
        return with_unit(self.keys.get("label", self.name), self.keys.get("unit", ""))

    def read(self, column: pd.Series[Any]) -> Numbers:
        """Give one number per patient: the value, the place of a level, or NaN where it is missing.

        As in `local`, a number outside of the job's range counts as missing. No error shows a value.
        """
        values = texts(column)
        values[~np.isnan(_places(values, self.keys.get("missing", [])))] = ""
        if self.kind in ("categorical", "ordinal", "binary"):
            levels = self.keys.get("levels", [self.keys.get("negative", "0"), self.keys.get("positive", "1")])
            places = _places(values, levels)
            self._refuse(np.isnan(places) & (values != ""), "of the job's levels")
            return places
        if self.kind == "age":
            return self._ages(values)
        numbers, wrong = _numbers(values)
        self._refuse(wrong, "numbers")
        low, high = self.keys.get("range", [-np.inf, np.inf])
        numbers[(numbers < low) | (numbers > high)] = np.nan
        if self.keys.get("transform") == "log":
            self._refuse(numbers < 0, "numbers of 0 or more, which a logarithm needs")
            numbers = np.log1p(numbers)
        return numbers

    def _ages(self, values: NDArray[np.object_]) -> Numbers:
        at = datetime.date.fromisoformat(self.keys["at"])
        ages = np.full(len(values), np.nan)
        wrong = np.zeros(len(values), dtype=bool)
        for row, value in enumerate(values):
            try:
                ages[row] = (at - datetime.date.fromisoformat(value)).days / DAYS_PER_YEAR
            except ValueError:
                wrong[row] = bool(value)
        self._refuse(wrong, "dates as YYYY-MM-DD")
        return ages

    def _refuse(self, wrong: NDArray[np.bool_], wanted: str) -> None:
        if wrong.any():
            raise ValueError(f"column {self.name}: {int(wrong.sum())} values are not {wanted}")


@dataclass(frozen=True)
class Job:
    """A job as its text says it, with the outcome and the features of its study."""

    keys: dict[str, Any]
    features: tuple[Feature, ...]
    outcome: dict[str, Any]

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a job that has everything in itself, or one that its study follows."""
        own, _, study = text.partition(_STUDY_FOLLOWS)
        keys = tomllib.loads(own)
        if study:
            agreed = tomllib.loads(study)
            asked = keys.get("outcome", agreed["outcomes"][0]["name"])  # a card is about all of them
            outcome = next(one for one in agreed["outcomes"] if one["name"] == asked)
            wanted = keys.get("features", [one["name"] for one in agreed["features"]])
            features = [one for one in agreed["features"] if one["name"] in wanted]
        else:
            outcome, features = keys["outcome"], keys["features"]
        return cls(keys, tuple(Feature(one["name"], one["kind"], one) for one in features), outcome)

    @property
    def names(self) -> list[str]:
        """Give the names of the features."""
        return [feature.name for feature in self.features]

    def labels(self) -> dict[str, str]:
        """Give what people read for each feature, and for each row or column that is made of it."""
        labels = {}
        for feature in self.features:
            labels[feature.name] = feature.label
            labels[f"{feature.name}=missing"] = f"{feature.label}: missing"
            for level in feature.levels:
                said = feature.keys.get("level_labels", {}).get(level, level)
                labels[f"{feature.name}={level}"] = f"{feature.label}: {said}"
        return labels

    def table(self, frame: pd.DataFrame | NDArray[Any]) -> Numbers:
        """Read patients, n x p. An array has its columns in the job's order."""
        if not isinstance(frame, pd.DataFrame):
            array = np.asarray(frame)
            if array.ndim != 2 or array.shape[1] != len(self.features):
                raise ValueError(f"a table of shape {array.shape}, wanted (n, {len(self.features)})")
            frame = pd.DataFrame(array, columns=pd.Index(self.names))
        absent = [name for name in self.names if name not in frame.columns]
        if absent:
            raise ValueError(f"the table has no column {', '.join(absent)}")
        columns = [feature.read(frame[feature.name]) for feature in self.features]
        return np.column_stack(columns) if len(frame) else np.empty((0, len(self.features)))

    def followed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Read `time` and `event` of a survival outcome; NaN where one of them is missing."""
        outcome = self.outcome
        if outcome["kind"] != "survival":
            raise ValueError(f"the outcome is {outcome['kind']}, wanted survival")
        time = Feature(outcome["column"], "numeric", {"missing": outcome.get("missing", [])})
        event = texts(frame[outcome["event"]])
        seen = (~np.isnan(_places(event, outcome["event_values"]))).astype(np.float64)
        seen[event == ""] = np.nan
        return pd.DataFrame({"time": time.read(frame[time.name]), "event": seen}, index=frame.index)


def with_unit(label: str, unit: str) -> str:
    """Give a label with its unit, where it has one."""
    return f"{label} ({unit})" if unit else label
