"""Studies: a draft from a table, and jobs of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from .programs import SITE_AGENT, private_folder, run_program, write_private


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

        `kindred-site-agent study draft` proposes the features. Other hospitals read the draft, so no value of
        the table is in it: no range, and no level of few patients.
        """
        given = keys or {}
        used = {outcome["column"], outcome.get("event")}
        found = _proposed(frame)
        free = [str(column) for column in frame.columns if column not in used]
        columns = features or [one for one in free if one in given or "reason" not in found[one]]
        drafted = [_feature(frame[one], found.get(one, {}), given.get(one, {})) for one in columns]
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


def _proposed(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Let the hospital's program propose each column: what it may say of one is decided there alone."""
    types = pd.api.types
    plain = [types.is_bool_dtype, types.is_numeric_dtype, types.is_datetime64_any_dtype]
    codes = [column for column in frame.columns if not any(one(frame[column].dtype) for one in plain)]
    with private_folder() as folder:
        given = ["--from", write_private(folder / "patients.csv", frame), "--json"]
        given += [word for column in codes for word in ("--categorical", str(column))]
        said = json.loads(run_program(SITE_AGENT, ["study", "draft", *given]))
    return {one["column"]: one for one in [*said["features"], *said["excluded"]]}


def _feature(column: pd.Series[Any], found: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    name = str(column.name)
    if "kind" in given:
        return {"name": name, **given}
    if found.get("reason", "").startswith("dates"):
        if "at" not in given:
            raise ValueError(f"column {name} has dates; say in keys the day `at` which ages count")
        return {"name": name, "kind": "age", **given}
    if "reason" in found:
        raise ValueError(f"column {name} is no feature: {found['reason']}")
    if found["rarer_levels"]:
        raise ValueError(f"column {name} has levels of fewer patients than are named to others; join them")
    keys = {key: found[key] for key in ("kind", "unit", "positive", "negative", "levels") if found.get(key)}
    if isinstance(column.dtype, pd.CategoricalDtype) and "levels" in keys:
        keys["levels"] = [str(one) for one in column.dtype.categories if str(one) in keys["levels"]]
        keys["kind"] = "ordinal" if column.dtype.ordered else "categorical"
    return {"name": name, **keys, **given}


def _lines(keys: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())


def _toml(value: Any) -> str:
    """Give a value as TOML, whose texts, numbers and truths are those of JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)
