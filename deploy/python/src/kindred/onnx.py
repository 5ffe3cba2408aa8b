"""Forests as ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np

from .forest import _MISSING_LEFT, _TERMINAL, Forest

# Modes of the operator's nodes.
_AT_MOST, _MEMBER = 0, 6
# `TreeEnsemble` came with version 5 of the machine-learning operators.
_ML_VERSION, _VERSION, _IR_VERSION = 5, 21, 10


def model(forest: Forest) -> Any:
    """Give the model of a forest of classes or numbers.

    A leaf of the operator has one value, so each tree stands once per class. Levels are counted from 1,
    because the runtimes' sets have no 0.
    """
    from onnx import TensorProto, helper

    if forest.kind == "survival":
        raise ValueError("the outcome of this forest is survival, wanted numeric or classes")
    targets = max(len(forest.names), 1)
    nodes = _Nodes(forest)
    for target in range(targets):
        for tree in range(len(forest.trees)):
            nodes.add(tree, target)

    def tensor(name: str, numbers: list[float]) -> Any:
        return helper.make_tensor(name, TensorProto.DOUBLE, [len(numbers)], numbers)

    members = {"membership_values": tensor("membership_values", nodes.members)} if nodes.members else {}
    ensemble = helper.make_node(
        "TreeEnsemble",
        ["moved"],
        ["sums"],
        domain="ai.onnx.ml",
        n_targets=targets,
        aggregate_function=1,
        post_transform=0,
        tree_roots=nodes.roots,
        nodes_featureids=nodes.features,
        nodes_splits=tensor("nodes_splits", nodes.splits),
        nodes_modes=helper.make_tensor("nodes_modes", TensorProto.UINT8, [len(nodes.modes)], nodes.modes),
        nodes_truenodeids=nodes.left,
        nodes_falsenodeids=nodes.right,
        nodes_trueleafs=nodes.left_is_leaf,
        nodes_falseleafs=nodes.right_is_leaf,
        nodes_missing_value_tracks_true=nodes.missing_left,
        leaf_targetids=nodes.targets,
        leaf_weights=tensor("leaf_weights", nodes.weights),
        **members,
    )
    move = [1.0 if levels else 0.0 for levels in forest.levels]
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["patients", "move"], ["moved"]),
            ensemble,
            helper.make_node("Div", ["sums", "trees"], ["predicted"]),
        ],
        "forest",
        [helper.make_tensor_value_info("patients", TensorProto.DOUBLE, [None, len(forest.levels)])],
        [helper.make_tensor_value_info("predicted", TensorProto.DOUBLE, [None, targets])],
        [tensor("move", move), tensor("trees", [float(len(forest.trees))])],
    )
    versions = [helper.make_opsetid("", _VERSION), helper.make_opsetid("ai.onnx.ml", _ML_VERSION)]
    return helper.make_model(graph, opset_imports=versions, ir_version=_IR_VERSION)


class _Nodes:
    """The operator's attributes: inner nodes and leaves, numbered over all trees."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.roots: list[int] = []
        self.features: list[int] = []
        self.splits: list[float] = []
        self.modes: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.left_is_leaf: list[int] = []
        self.right_is_leaf: list[int] = []
        self.missing_left: list[int] = []
        self.members: list[float] = []
        self.targets: list[int] = []
        self.weights: list[float] = []

    def add(self, number: int, target: int) -> None:
        tree = self.forest.trees[number]
        is_leaf = tree.nodes["feature"] == _TERMINAL
        first_leaf, first_node = len(self.weights), len(self.features)
        weights = tree.values[tree.ordinals(np.flatnonzero(is_leaf)), target]
        self.weights.extend(weights.tolist())
        self.targets.extend([target] * len(weights))
        places = np.where(is_leaf, first_leaf + np.cumsum(is_leaf) - 1, first_node + np.cumsum(~is_leaf) - 1)
        self.roots.append(int(first_node))
        if is_leaf[0]:
            # A tree of one leaf is a node with this leaf on both sides.
            self._node(0, 0.0, _AT_MOST, (first_leaf, 1), (first_leaf, 1), False)
        for node in tree.nodes[~is_leaf]:
            feature = int(node["feature"]) & (_MISSING_LEFT - 1)
            left, right = int(node["child"]), int(node["child"]) + 1
            levels = self.forest.levels[feature]
            if levels:
                offset = int(node["cut"])
                sent = [one for one in range(levels) if int(tree.sets[offset + one // 64]) >> (one % 64) & 1]
                self.members.extend([*(one + 1.0 for one in sent), np.nan])
            self._node(
                feature,
                0.0 if levels else float(node["cut"].view(np.float64)),
                _MEMBER if levels else _AT_MOST,
                (int(places[left]), int(is_leaf[left])),
                (int(places[right]), int(is_leaf[right])),
                bool(node["feature"] >= _MISSING_LEFT),
            )

    def _node(
        self,
        feature: int,
        split: float,
        mode: int,
        left: tuple[int, int],
        right: tuple[int, int],
        missing: bool,
    ) -> None:
        self.features.append(feature)
        self.splits.append(split)
        self.modes.append(mode)
        self.left.append(left[0])
        self.left_is_leaf.append(left[1])
        self.right.append(right[0])
        self.right_is_leaf.append(right[1])
        self.missing_left.append(int(missing))
