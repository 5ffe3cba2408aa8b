"""Cold times: a new Python process from its start to its last result, by Kindred and by others.

    KINDRED_PROGRAMS=target/debug python cold.py [--repeats 5]

It needs this package, scikit-learn, metric-learn and fgclustering. Prints the rows of the table in README.md:
medians in seconds of whole processes, imports and reading included. Each round runs every contender once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

TREES = 500
CLUSTERS = (2, 6)


def _read(folder: Path) -> tuple[object, object]:
    import pandas as pd

    frame = pd.read_csv(folder / "patients.csv")
    return frame.drop(columns=["patient", "malignant"]), frame["malignant"]


def _study(folder: Path) -> tuple[object, object]:
    import pandas as pd

    import kindred

    frame = pd.read_csv(folder / "patients.csv", dtype={"patient": str})
    outcome = {"column": "malignant", "kind": "binary", "positive": ["1"]}
    features = [name for name in frame.columns if name not in ("patient", "malignant")]
    return frame, kindred.Study.draft(frame, outcome, features=features)


def kindred_metric(folder: Path) -> None:
    """Learn UnPSL's metric with held-out figures, and find each patient's five nearest."""
    import kindred

    frame, study = _study(folder)
    run = kindred.local(frame, study.job("unpsl"), folder / "out", patient="patient")
    assert len(run.sites["patients"].neighbours) == 5 * len(frame)


def sklearn_metric(folder: Path) -> None:
    """Learn NCA's metric, and find each patient's five nearest."""
    from sklearn.neighbors import NearestNeighbors, NeighborhoodComponentsAnalysis
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = _read(folder)
    learner = make_pipeline(StandardScaler(), NeighborhoodComponentsAnalysis(random_state=1))
    placed = learner.fit_transform(x, y)
    assert NearestNeighbors(n_neighbors=5).fit(placed).kneighbors()[1].shape == (len(y), 5)


def metric_learn_metric(folder: Path) -> None:
    """Learn LMNN's metric, and find each patient's five nearest."""
    import metric_learn
    from sklearn.neighbors import NearestNeighbors
    from sklearn.preprocessing import StandardScaler

    # metric-learn 0.7 names an argument as scikit-learn did before 1.8.
    for module in (metric_learn._util, metric_learn.base_metric, metric_learn.lmnn):
        for name in ("check_array", "check_X_y"):
            if hasattr(module, name):
                setattr(module, name, _renamed(getattr(module, name)))
    x, y = _read(folder)
    scaled = StandardScaler().fit_transform(x)
    placed = metric_learn.LMNN(n_neighbors=3, random_state=1).fit(scaled, y).transform(scaled)
    assert NearestNeighbors(n_neighbors=5).fit(placed).kneighbors()[1].shape == (len(y), 5)


def _renamed(check: Callable[..., object]) -> Callable[..., object]:
    def checked(*given: object, force_all_finite: bool = True, **named: object) -> object:
        return check(*given, ensure_all_finite=force_all_finite, **named)

    return checked


def kindred_forest(folder: Path) -> None:
    """Grow a forest with its figures and importance, and compute the proximity of all pairs."""
    import kindred

    frame, study = _study(folder)
    job = study.job("forest", {"trees": TREES})
    run = kindred.local(frame, job, folder / "out", patient="patient")
    assert run.sites["patients"].proximity.shape == (len(frame), len(frame))


def sklearn_forest(folder: Path) -> None:
    """Grow a forest with out-of-bag and permutation figures, and compute the proximity of all pairs."""
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.inspection import permutation_importance

    x, y = _read(folder)
    forest = RandomForestClassifier(TREES, oob_score=True, n_jobs=-1, random_state=1).fit(x, y)
    permutation_importance(forest, x, y, n_repeats=1, random_state=1)
    nodes = forest.apply(x)
    proximity = sum(np.equal.outer(tree, tree) for tree in nodes.T) / TREES
    assert proximity.shape == (len(y), len(y))


def kindred_clusters(folder: Path) -> None:
    """Grow a forest, and find clusters by its proximity."""
    import kindred

    frame, study = _study(folder)
    job = study.job("forest", {"trees": TREES, "importance": False})
    run = kindred.local(frame, job, folder / "out", patient="patient")
    low, high = CLUSTERS
    kindred.cluster(frame, run, id="patient", k=f"{low}..{high}")


def fgclustering_clusters(folder: Path) -> None:
    """Grow a forest, and find clusters by its proximity."""
    from fgclustering import ClusteringKMedoids, DistanceRandomForestProximity, forest_guided_clustering
    from sklearn.ensemble import RandomForestClassifier

    x, y = _read(folder)
    forest = RandomForestClassifier(TREES, min_samples_leaf=5, n_jobs=-1, random_state=1).fit(x, y)
    parts = (DistanceRandomForestProximity(), ClusteringKMedoids())
    settings = {"k": CLUSTERS, "n_jobs": 2, "random_state": 1, "verbose": 0}
    found = forest_guided_clustering(forest, x, y, *parts, **settings)
    assert found["best_k"]


# What is done, and who does it.
TASKS: list[tuple[str, dict[str, Callable[[Path], None]]]] = [
    (
        "a learned metric, five nearest of each",
        {"kindred": kindred_metric, "scikit-learn": sklearn_metric, "metric-learn": metric_learn_metric},
    ),
    (
        f"{TREES} trees, importance, all proximities",
        {"kindred": kindred_forest, "scikit-learn": sklearn_forest},
    ),
    (
        f"{TREES} trees, clusters ({CLUSTERS[0]} to {CLUSTERS[1]})",
        {"kindred": kindred_clusters, "fgclustering": fgclustering_clusters},
    ),
]


def _seconds(function: Callable[[Path], None], data: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "patients.csv").symlink_to(data)
        began = time.perf_counter()
        subprocess.run([sys.executable, __file__, "--only", function.__name__, folder], check=True)
        return time.perf_counter() - began


def main() -> None:
    """Measure all, or run one contender in this process."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs=2, metavar=("FUNCTION", "FOLDER"))
    given = parser.parse_args()
    if given.only:
        globals()[given.only[0]](Path(given.only[1]))
        return
    from sklearn.datasets import load_breast_cancer

    packages = ["kindred", "scikit-learn", "metric-learn", "fgclustering", "numpy", "pandas"]
    versions = ", ".join(f"{one} {version(one)}" for one in packages)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, {versions}")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "patients.csv"
        x, y = load_breast_cancer(return_X_y=True, as_frame=True)
        frame = x.rename(columns=lambda name: name.replace(" ", "_")).assign(malignant=1 - y)
        frame.insert(0, "patient", range(1, len(frame) + 1))
        frame.to_csv(data, index=False)
        for task, contenders in TASKS:
            times: dict[str, list[float]] = {name: [] for name in contenders}
            for _ in range(given.repeats):
                for name, function in contenders.items():
                    times[name].append(_seconds(function, data))
            medians = (f"{name} {statistics.median(own):.1f}" for name, own in times.items())
            print(f"| {task} | {' | '.join(medians)} |", flush=True)


if __name__ == "__main__":
    main()
