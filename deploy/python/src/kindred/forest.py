"""Forests: `forest.bin`, version 1, read without the programs.

All numbers are little-endian. u16, u32 and u64 are whole numbers, and f64 is a double::

    forest  = "KDFOREST", version u16, target, p u32, p x feature, p x gain f64, T u32, T x tree
    target  = 0 u8                                    numeric
            | 1 u8, K u32, K x string                 classes
            | 2 u8, G u32, G x f64                    survival: the event times
    feature = string, 0 u8                            numeric
            | string, 1 u8, levels u32, levels x string
    string  = bytes u32, UTF-8
    tree    = N u32, N x node, N x patients u32, S u32, S x u64 level sets, values
    node    = feature u32, child u32, cut u64         see below
    values  = L x f64 | L x K x f64 | (L+1) x start u32, steps x (time u16), steps x (step f64)

A node's feature has bit 31 set where missing values go left. It is 2^32 - 1 at a terminal node, whose child
is its ordinal. The right child follows the left. The cut is the bits of a threshold, or an offset into the
level sets: bit l of a set sends level l left. L = (N + 1) / 2 terminal nodes.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .job import Job, Numbers

_TERMINAL = 2**32 - 1
_MISSING_LEFT = 2**31
_NODE = np.dtype([("feature", "<u4"), ("child", "<u4"), ("cut", "<u8")])

Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Tree:
    """One tree. `values` has one row per terminal node; of survival its hazard's steps at the event times."""

    nodes: NDArray[Any]
    sets: NDArray[np.uint64]
    patients: NDArray[np.uint32]
    values: Numbers

    def apply(self, table: Numbers, levels: list[int]) -> NDArray[np.int64]:
        """Give the terminal node of each patient."""
        at = np.zeros(len(table), dtype=np.int64)
        going = np.arange(len(table))
        while True:
            going = going[self.nodes["feature"][at[going]] != _TERMINAL]
            if not len(going):
                return at
            nodes = self.nodes[at[going]]
            feature = nodes["feature"] & np.uint32(_MISSING_LEFT - 1)
            value = table[going, feature]
            missing = np.isnan(value)
            left = value <= nodes["cut"].view(np.float64)
            for row in np.flatnonzero((np.array(levels)[feature] > 0) & ~missing):
                level = int(value[row])
                word = int(self.sets[int(nodes["cut"][row]) + level // 64])
                left[row] = word >> (level % 64) & 1
            left |= missing & (nodes["feature"] >= _MISSING_LEFT)
            at[going] = nodes["child"] + ~left

    def ordinals(self, terminal: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the rows of `values` of terminal nodes."""
        return self.nodes["child"][terminal].astype(np.int64)


class Forest:
    """A forest with the job that says how its features are read."""

    def __init__(
        self, job: Job, kind: str, names: list[Any], levels: list[list[str]], trees: list[Tree]
    ) -> None:
        """Take the parts: `kind` is numeric, classes or survival, and `names` are its classes or times."""
        self.job = job
        self.kind = kind
        self.names = names
        self.levels_of_features = levels
        self.trees = trees

    @property
    def levels(self) -> list[int]:
        """How many levels each feature has; 0 of a number."""
        return [len(levels) for levels in self.levels_of_features]

    @classmethod
    def from_bytes(cls, content: bytes, job: Job) -> Self:
        """Read the bytes of `forest.bin` for a job with the same features."""
        reader = _Reader(content)
        if reader.take(8) != b"KDFOREST":
            raise ValueError("the bytes do not begin with KDFOREST")
        version = reader.number("<H")
        if version != 1:
            raise ValueError(f"format version {version}, wanted 1")
        kind = ["numeric", "classes", "survival"][reader.number("<B")]
        names: list[Any] = []
        if kind == "classes":
            names = reader.strings()
        elif kind == "survival":
            names = list(reader.array("<f8", reader.count()))
        features, levels = [], []
        for _ in range(reader.count()):
            features.append(reader.string())
            levels.append(reader.strings() if reader.number("<B") else [])
        if features != job.names:
            raise ValueError("the forest has other features than the job")
        reader.take(8 * len(features))  # the gains, which predict nothing
        counts = np.array([len(one) for one in levels])
        trees = [reader.tree(kind, len(names), counts) for _ in range(reader.count())]
        if reader.at != len(content):
            raise ValueError(f"{len(content) - reader.at} bytes follow the forest, wanted 0")
        return cls(job, kind, names, levels, trees)

    @classmethod
    def from_json(cls, text: str, job: Job) -> Self:
        """Read what `to_json` gave, for a job with the same features."""
        from .forest_json import forest_of

        return forest_of(cls, json.loads(text), job)

    def to_json(self) -> str:
        """Give the forest as JSON, which `schema("forest")` describes."""
        from .forest_json import document

        return json.dumps(document(self), ensure_ascii=False, allow_nan=False)

    def apply(self, X: pd.DataFrame | NDArray[Any]) -> NDArray[np.int64]:
        """Give the terminal node of each patient in each tree, n x T."""
        table, levels = self.job.table(X), self.levels
        return np.column_stack([tree.apply(table, levels) for tree in self.trees])

    def _means(self, X: pd.DataFrame | NDArray[Any], unseen: Bits | None) -> Numbers:
        """Give the mean over trees, or over those that have not seen a patient; added in the trees' order."""
        nodes = self.apply(X)
        counted = np.ones(nodes.shape, dtype=bool) if unseen is None else unseen
        sums = np.zeros((len(nodes), self.trees[0].values.shape[1]))
        for at, tree in enumerate(self.trees):
            rows = np.flatnonzero(counted[:, at])
            sums[rows] += tree.values[tree.ordinals(nodes[rows, at])]
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / counted.sum(axis=1, keepdims=True))

    def predict(self, X: pd.DataFrame | NDArray[Any], unseen: Bits | None = None) -> NDArray[Any]:
        """Predict the number, the class, or a risk: the cumulative hazard summed over the event times.

        `unseen`, n x T, limits each patient to some trees, as a hospital's `unseen` does for its own cohort.
        """
        if self.kind == "classes":
            shares = self.predict_proba(X, unseen)
            labels = np.array([*self.names, ""], dtype=object)
            return labels[np.where(np.isnan(shares[:, 0]), -1, shares.argmax(axis=1))]
        if self.kind == "survival":
            return _row_sums(self.predict_cumulative_hazard(X, unseen).to_numpy())
        return self._means(X, unseen)[:, 0]

    def predict_proba(self, X: pd.DataFrame | NDArray[Any], unseen: Bits | None = None) -> Numbers:
        """Give the mean share of each class, n x K."""
        self._is("classes")
        return self._means(X, unseen)

    def predict_cumulative_hazard(
        self, X: pd.DataFrame | NDArray[Any], unseen: Bits | None = None
    ) -> pd.DataFrame:
        """Give the mean cumulative hazard by each event time."""
        self._is("survival")
        hazard = np.cumsum(self._means(X, unseen), axis=1)
        return pd.DataFrame(hazard, columns=pd.Index(self.names, name="time"))

    def _is(self, kind: str) -> None:
        if self.kind != kind:
            raise ValueError(f"the outcome of this forest is {self.kind}, wanted {kind}")

    def proximity(
        self,
        X: pd.DataFrame | NDArray[Any],
        Y: pd.DataFrame | NDArray[Any] | None = None,
        unseen: Bits | None = None,
    ) -> Numbers:
        """Give the share of trees in which two patients share a terminal node.

        With `unseen` only those trees count that have seen neither of two patients of X.
        """
        rows = self.apply(X)
        columns = rows if Y is None else self.apply(Y)
        shared = np.zeros((len(rows), len(columns)))
        for at in range(len(self.trees)):
            same = rows[:, at, None] == columns[None, :, at]
            shared += same if unseen is None else same & unseen[:, at, None] & unseen[None, :, at]
        if unseen is None:
            return np.asarray(shared / len(self.trees))
        both = unseen.astype(np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray(shared / (both @ both.T))

    def gap(
        self,
        cohort: pd.DataFrame | NDArray[Any],
        in_bag: NDArray[np.uint8],
        new: pd.DataFrame | NDArray[Any] | None = None,
    ) -> Numbers:
        """Give RF-GAP: the weights with which the cohort votes for each of its patients, or for new ones.

        `in_bag`, n x T, has how often each tree drew each patient of the cohort, as a hospital's `in_bag`.
        """
        nodes = self.apply(cohort)
        rows = nodes if new is None else self.apply(new)
        weights = np.zeros((len(rows), len(nodes)))
        used = np.zeros((len(rows), 1))
        for at in range(len(self.trees)):
            drawn = in_bag[:, at].astype(np.float64)
            votes = np.ones(len(rows), dtype=bool) if new is not None else in_bag[:, at] == 0
            held = np.bincount(nodes[:, at], weights=drawn, minlength=len(self.trees[at].nodes))
            shared = rows[votes, at, None] == nodes[None, :, at]
            with np.errstate(invalid="ignore"):
                share = drawn / held[nodes[:, at]]
            weights[votes] += np.where(shared & (drawn > 0), share, 0.0)
            used += votes[:, None]
        with np.errstate(invalid="ignore"):
            return np.asarray(weights / used)

    def to_onnx(self) -> Any:
        """Give the ONNX model, by the operator `TreeEnsemble` in double precision.

        Its input `patients` is the job's table (`Job.table`), with NaN for missing values. Its output
        `predicted` is the mean, or the share of each class.
        """
        from .onnx import model

        return model(self)


def _row_sums(numbers: Numbers) -> Numbers:
    """Add each row as the program does, in eight lanes, so that no bit differs."""
    whole = numbers.shape[1] // 8 * 8
    lanes = np.zeros((len(numbers), 8))
    for at in range(0, whole, 8):
        lanes += numbers[:, at : at + 8]
    sums = np.zeros(len(numbers))
    for lane in range(4):
        sums += lanes[:, lane] + lanes[:, lane + 4]
    for at in range(whole, numbers.shape[1]):
        sums += numbers[:, at]
    return sums


def _check(nodes: NDArray[Any], sets: NDArray[np.uint64], levels: NDArray[np.int64]) -> None:
    """Refuse nodes from which a patient would not come to an end."""
    child = nodes["child"].astype(np.int64)
    is_leaf = nodes["feature"] == _TERMINAL
    inner = np.flatnonzero(~is_leaf)
    feature = (nodes["feature"][inner] & np.uint32(_MISSING_LEFT - 1)).astype(np.int64)
    holds = (
        len(nodes) % 2 == 1 and (child[is_leaf] <= len(nodes) // 2).all() and (feature < len(levels)).all()
    )
    holds = holds and (child[inner] > inner).all() and (child[inner] + 1 < len(nodes)).all()
    if holds:
        words = -(-levels[feature] // 64)
        cuts = nodes["cut"][inner][words > 0]
        holds = (cuts <= len(sets)).all() and (cuts + words[words > 0].astype(np.uint64) <= len(sets)).all()
    if not holds:
        raise ValueError("a node is not that of a forest")


class _Reader:
    """Bytes not yet read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def take(self, count: int) -> bytes:
        taken = self.content[self.at : self.at + count]
        if len(taken) < count:
            raise ValueError("the bytes end within the forest")
        self.at += count
        return taken

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def count(self) -> int:
        return self.number("<I")

    def string(self) -> str:
        return self.take(self.count()).decode()

    def strings(self) -> list[str]:
        return [self.string() for _ in range(self.count())]

    def array(self, kind: Any, count: int) -> NDArray[Any]:
        kind = np.dtype(kind)
        return np.frombuffer(self.take(count * kind.itemsize), dtype=kind)

    def tree(self, kind: str, width: int, levels: NDArray[np.int64]) -> Tree:
        count = self.count()
        nodes, patients = self.array(_NODE, count), self.array("<u4", count)
        sets = self.array("<u8", self.count())
        terminal = (count + 1) // 2
        _check(nodes, sets, levels)
        if kind != "survival":
            values = self.array("<f8", terminal * max(width, 1)).reshape(terminal, -1)
            return Tree(nodes, sets, patients, values)
        starts = self.array("<u4", terminal + 1)
        times = self.array("<u2", int(starts[-1]))
        steps = self.array("<f8", int(starts[-1]))
        values = np.zeros((terminal, width))
        values[np.repeat(np.arange(terminal), np.diff(starts).astype(np.int64)), times] = steps
        return Tree(nodes, sets, patients, values)
