"""fgclustering 3's own examples, and a larger set: python clusters.py FOLDER [--without-gc] (needs fgclustering and scikit-learn).

Writes each data set to FOLDER, where clusters.rs reads the same numbers, and prints what a forest of 500 trees and k from 2 to 6 take, and the k
that is best. With --without-gc its calls of gc.collect are left out, which take most of the time of small cohorts.
"""
import gc, sys, time, warnings
from importlib.metadata import version
from pathlib import Path
import numpy as np, pandas as pd
from fgclustering import ClusteringKMedoids, DistanceRandomForestProximity, forest_guided_clustering
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

warnings.filterwarnings("ignore")
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
if "--without-gc" in sys.argv:
    gc.collect = lambda *_: 0


def friedman(n, p):
    x = pd.DataFrame(np.random.default_rng(9).random((n, p)), columns=[f"x{i}" for i in range(p)])
    z = x.to_numpy()
    return x, pd.Series(10 * np.sin(np.pi * z[:, 0] * z[:, 1]) + 20 * (z[:, 2] - 0.5) ** 2 + 10 * z[:, 3] + 5 * z[:, 4])


print("fgclustering", version("fgclustering"))
for name, (x, y), classes in (
    ("iris", load_iris(return_X_y=True, as_frame=True), True),
    ("breast-cancer", load_breast_cancer(return_X_y=True, as_frame=True), True),
    ("diabetes", load_diabetes(return_X_y=True, as_frame=True), False),
    ("friedman", friedman(2000, 20), False),
):
    kind = "class" if classes else "number"
    x.assign(**{kind: y}).to_csv(folder / f"{name}.csv", index=False)
    start = time.time()
    forest = (RandomForestClassifier if classes else RandomForestRegressor)(500, min_samples_leaf=5, n_jobs=2, random_state=1).fit(x, y)
    grown = time.time()
    found = forest_guided_clustering(forest, x, y, DistanceRandomForestProximity(), ClusteringKMedoids(), k=(2, 6), n_jobs=2,
                                     random_state=1, verbose=0)
    print(f"{name}, {x.shape[0]} x {x.shape[1]}: forest {grown - start:.2f} s, clusters {time.time() - grown:.2f} s "
          f"(best k {found['best_k']})", flush=True)
