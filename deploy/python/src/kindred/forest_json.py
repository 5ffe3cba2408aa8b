"""Forests as JSON that other programs read: every node with its feature, its sides and its values.

`schema("forest")` describes it. A number has as many digits as it needs to be the same double again.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .forest import _MISSING_LEFT, _NODE, _TERMINAL, Forest, Tree, _check
from .job import Job

F = TypeVar("F", bound=Forest)

FORMAT, VERSION = "kindred-forest", 1


def document(forest: Forest) -> dict[str, Any]:
    """Give the forest as an object of JSON."""
    features = [
        {"name": name, "levels": levels}
        for name, levels in zip(forest.job.names, forest.levels_of_features, strict=True)
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": forest.kind,
        "names": [name if forest.kind == "classes" else float(name) for name in forest.names],
        "features": features,
        "trees": [_nodes(forest, tree) for tree in forest.trees],
    }


def forest_of(kind: type[F], content: dict[str, Any], job: Job) -> F:
    """Read the forest again, for a job with the same features."""
    if (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        found = f"{content.get('format')} of version {content.get('version')}"
        raise ValueError(f"format {found}, wanted {FORMAT} of version {VERSION}")
    if [one["name"] for one in content["features"]] != job.names:
        raise ValueError("the forest has other features than the job")
    levels = [one["levels"] for one in content["features"]]
    trees = [_tree(content["kind"], content["names"], levels, nodes) for nodes in content["trees"]]
    return kind(job, content["kind"], content["names"], levels, trees)


def _nodes(forest: Forest, tree: Tree) -> list[dict[str, Any]]:
    each = zip(tree.nodes, tree.patients, strict=True)
    return [_node(forest, tree, node, int(patients)) for node, patients in each]


def _node(forest: Forest, tree: Tree, node: Any, patients: int) -> dict[str, Any]:
    if node["feature"] == _TERMINAL:
        value = tree.values[int(node["child"])]
        if forest.kind == "survival":
            at = np.flatnonzero(value)
            return {"patients": patients, "times": at.tolist(), "steps": value[at].tolist()}
        return {"patients": patients, "value": value.tolist()}
    feature = int(node["feature"]) & (_MISSING_LEFT - 1)
    levels = forest.levels_of_features[feature]
    if levels:
        offset = int(node["cut"])
        sent = [at for at in range(len(levels)) if int(tree.sets[offset + at // 64]) >> (at % 64) & 1]
        goes_left: dict[str, Any] = {"levels_left": [levels[at] for at in sent]}
    else:
        at_most = float(node["cut"].view(np.float64))
        goes_left = {"at_most": at_most if np.isfinite(at_most) else None}
    return {
        "patients": patients,
        "feature": feature,
        **goes_left,
        "missing_left": bool(node["feature"] >= _MISSING_LEFT),
        "left": int(node["child"]),
        "right": int(node["child"]) + 1,
    }


def _tree(kind: str, names: list[Any], levels: list[list[str]], said: list[dict[str, Any]]) -> Tree:
    nodes = np.zeros(len(said), dtype=_NODE)
    sets: list[int] = []
    values: list[NDArray[np.float64]] = []
    for at, one in enumerate(said):
        if "feature" not in one:
            nodes[at] = (_TERMINAL, len(values), 0)
            values.append(_values(kind, len(names), one))
            continue
        if one["right"] != one["left"] + 1:
            raise ValueError("a right node does not follow the left one")
        feature = one["feature"] | (_MISSING_LEFT if one["missing_left"] else 0)
        if "at_most" in one:
            at_most = np.inf if one["at_most"] is None else one["at_most"]
            cut = int(np.float64(at_most).view(np.uint64))
        else:
            cut = len(sets)
            sets.extend(_set(levels[one["feature"]], one["levels_left"]))
        nodes[at] = (feature, one["left"], cut)
    made = Tree(
        nodes,
        np.array(sets, dtype=np.uint64),
        np.array([one["patients"] for one in said], dtype=np.uint32),
        np.array(values),
    )
    _check(nodes, made.sets, np.array([len(one) for one in levels]))
    return made


def _set(levels: list[str], sent: list[str]) -> list[int]:
    words = [0] * -(-len(levels) // 64)
    for level in sent:
        at = levels.index(level)
        words[at // 64] |= 1 << (at % 64)
    return words


def _values(kind: str, width: int, one: dict[str, Any]) -> NDArray[np.float64]:
    if kind != "survival":
        return np.array(one["value"], dtype=np.float64)
    values = np.zeros(width)
    values[one["times"]] = one["steps"]
    return values
