"""What clusters are checked against: kmedoids (total deviation), SciPy, scikit-learn, lifelines, and fgclustering's own examples.

    python clusters.py     (needs kmedoids, scipy, scikit-learn, lifelines, fgclustering)

Writes clusters.json, and terminal_nodes.json.gz: the terminal nodes of scikit-learn's forests for iris, breast cancer and diabetes,
with what fgclustering finds by the very same forests. versions.txt names what made them.
"""
import gc, gzip, json, pathlib, sys, warnings
from importlib.metadata import version
import kmedoids, numpy as np
from fgclustering import ClusteringKMedoids, DistanceRandomForestProximity, forest_guided_clustering
from lifelines.statistics import multivariate_logrank_test
from scipy.spatial.distance import cdist, jensenshannon
from scipy.stats import wasserstein_distance
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import adjusted_rand_score

warnings.filterwarnings("ignore")
gc.collect = lambda *_: 0  # fgclustering collects after every sample, which takes nearly all of its time
HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(7)
out = {}

# Total deviations, the least of many starts.
sets = []
for n, p, groups in ((120, 2, 4), (200, 5, 3), (90, 3, 1)):
    centres = rng.normal(size=(groups, p)) * 2.5
    x = np.round(centres[rng.integers(groups, size=n)] + rng.normal(size=(n, p)), 3)
    for metric in ("euclidean", "sqeuclidean", "cityblock"):
        d = cdist(x, x, metric)
        least = {k: min(kmedoids.fasterpam(d, k, init="random", random_state=s).loss for s in range(60)) for k in (2, 3, 5, 8)}
        sets.append({"points": x.tolist(), "metric": metric, "least": least})
out["deviations"] = sets

out["wasserstein"] = []
out["jensen_shannon"] = []
for _ in range(6):
    a, b = (np.round(rng.normal(rng.normal(), rng.random() + 0.5, rng.integers(1, 30)), 1) for _ in range(2))
    out["wasserstein"].append({"one": a.tolist(), "other": b.tolist(), "distance": wasserstein_distance(a, b)})
    a, b = rng.integers(0, 9, size=(2, 5)) + np.eye(2, 5, dtype=int)
    out["jensen_shannon"].append({"one": a.tolist(), "other": b.tolist(), "distance": float(jensenshannon(a, b, base=2))})

out["adjusted_rand"] = []
for groups in (1, 2, 3, 5):
    a = rng.integers(groups, size=40)
    b = np.where(rng.random(40) < 0.3, rng.integers(4, size=40), a)
    out["adjusted_rand"].append({"one": a.tolist(), "other": b.tolist(), "index": adjusted_rand_score(a, b)})

out["log_rank"] = []
for groups in (2, 3, 6):
    group = rng.integers(groups, size=130)
    time = np.ceil(rng.exponential(8 + 3 * group))
    event = rng.random(130) < 0.7
    test = multivariate_logrank_test(time, group, event)
    out["log_rank"].append({"time": time.tolist(), "event": event.tolist(), "group": group.tolist(), "count": groups,
                            "chi_squared": float(test.test_statistic), "p": float(test.p_value)})
(HERE / "clusters.json").write_text(json.dumps(out) + "\n")

examples = []
for name, load in (("iris", load_iris), ("breast cancer", load_breast_cancer), ("diabetes", load_diabetes)):
    data = load(as_frame=True)
    x, y = data.data, data.target
    if name == "diabetes":
        forest = RandomForestRegressor(100, min_samples_leaf=5, max_features=0.4, random_state=1)
    else:
        forest = RandomForestClassifier(100, max_depth=5, max_features="sqrt", random_state=1)
    forest.fit(x, y)
    found = forest_guided_clustering(forest, x, y, DistanceRandomForestProximity(), ClusteringKMedoids(), k=(2, 6),
                                     random_state=1, verbose=0)
    # Node numbers are their places among the tree's own, so that they are short.
    leaves = np.column_stack([np.unique(column, return_inverse=True)[1] for column in forest.apply(x).T])
    examples.append({"name": name, "is_class": name != "diabetes", "outcome": np.asarray(y, float).tolist(),
                     "nodes": leaves.tolist(), "best": None if found["best_k"] is None else int(found["best_k"]),
                     "k": [int(k) for k in found["ks"]], "stability": [float(v) for v in found["mean_ji"]],
                     "bias": [float(v) for v in found["scores"]],
                     "labels": [np.asarray(found["cluster_labels"][k]).astype(int).tolist() for k in found["ks"]]})
with gzip.GzipFile(HERE / "terminal_nodes.json.gz", "wb", mtime=0) as file:
    file.write(json.dumps(examples, separators=(",", ":")).encode())
names = ("kmedoids", "scipy", "scikit-learn", "lifelines", "numpy", "fgclustering")
(HERE / "versions.txt").write_text("".join([f"python {sys.version.split()[0]}\n"] + [f"{name} {version(name)}\n" for name in names]))
