"""Studies: a draft from a table, and jobs of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from .job import texts

# A level that fewer patients have is named to nobody.
LEVEL_PATIENTS_MIN = 10


@dataclass(frozen=True)
class Study:
    """A study as its text says it: hospitals, outcomes and features."""

    keys: dict[str, Any]
    outcomes: tuple[dict[str, Any], ...]
    features: tuple[dict[str, Any], ...]

    @classmethod
    def draft(
        cls,
        frame: pd.DataFrame,
        outcome: Mapping[str, Any],
        *,
        name: str = "study",
        hospitals: Sequence[str] = ("here", "there"),
        features: Sequence[str] | None = None,
        keys: Mapping[str, Mapping[str, Any]] | None = None,
        **said: Any,
    ) -> Self:
        """Draft a study with the columns of a table as features, for people to read and complete.

        `outcome` and `keys`, by feature, have the keys of a job, such as `{"column": "days", "kind":
        "survival", "event": "died", "event_values": ["1"]}` and `{"age": {"unit": "years", "range": [0,
        110]}}`. `said` has further keys of the study, such as `title`, `purpose`, `until` and `operators`.

        Other hospitals read the draft, so no value of the table is in it: no range, and no level of fewer
        than ten patients.
        """
        used = {outcome["column"], outcome.get("event")}
        columns = features or [str(column) for column in frame.columns if column not in used]
        given = keys or {}
        drafted = [_feature(frame[column], given.get(column, {})) for column in columns]
        own = {"name": name, "hospitals": list(hospitals), **said}
        label = {"name": "outcome", "label": outcome["column"]}
        return cls(own, ({**label, **outcome},), tuple(drafted))

    def __str__(self) -> str:
        """Give the text for `kindred-coordinator study draft`."""
        parts = [_lines(self.keys)]
        parts += ["[[outcomes]]\n" + _lines(one) for one in self.outcomes]
        parts += ["[[features]]\n" + _lines(one) for one in self.features]
        return "\n".join(parts)

    def save(self, path: str | Path) -> None:
        """Write the text to a file."""
        Path(path).write_text(str(self), encoding="utf-8")

    def job(self, method: str, settings: Mapping[str, Any] | None = None, *, seed: int = 1) -> str:
        """Give a job that has everything in itself, for `local` and `simulate`."""
        name = self.keys["name"]
        own = {"name": name, "method": method, "sites": self.keys["hospitals"], "seed": seed}
        outcome = {key: value for key, value in self.outcomes[0].items() if key != "name"}
        parts = [_lines(own), "[outcome]\n" + _lines(outcome)]
        parts += ["[[features]]\n" + _lines(one) for one in self.features]
        return "\n".join([*parts, f"[{method}]\n" + _lines(settings or {})])


def _feature(column: pd.Series[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    name = str(column.name)
    if "kind" in given:
        return {"name": name, **given}
    if pd.api.types.is_bool_dtype(column):
        found: dict[str, Any] = {"kind": "binary", "positive": "True", "negative": "False"}
    elif pd.api.types.is_datetime64_any_dtype(column):
        if "at" not in given:
            raise ValueError(f"column {name} has dates; say in keys the day `at` which ages count")
        found = {"kind": "age"}
    elif pd.api.types.is_numeric_dtype(column):
        found = {"kind": "binary" if set(column.dropna().unique()) == {0, 1} else "numeric"}
    elif isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        found = {"kind": "ordinal", "levels": _levels(column)}
    else:
        found = {"kind": "categorical", "levels": _levels(column)}
    return {"name": name, **found, **given}


def _levels(column: pd.Series[Any]) -> list[str]:
    held = pd.Series(texts(column))
    counts = held[held != ""].value_counts()
    rare = int((counts < LEVEL_PATIENTS_MIN).sum())
    if rare:
        raise ValueError(
            f"column {column.name}: {rare} levels have fewer than {LEVEL_PATIENTS_MIN} patients; join them"
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [str(level) for level in column.dtype.categories if str(level) in counts.index]
    return sorted(counts.index)


def _lines(keys: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())


def _toml(value: Any) -> str:
    """Give a value as TOML, whose texts, numbers and truths are those of JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)
