"""The times of fgclustering 3 for the shapes of clusters.rs: python clusters.py (needs fgclustering).

Once as it is, once without its calls of gc.collect, which take most of the time of small cohorts. The last shape is left out.
"""
import gc, sys, time, warnings
import numpy as np, pandas as pd
from fgclustering import (ClusteringKMedoids, DistanceRandomForestProximity, DistanceWasserstein, forest_guided_clustering,
                          forest_guided_feature_importance)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

warnings.filterwarnings("ignore")
if "--without-gc" in sys.argv:
    gc.collect = lambda *_: 0
for n, p, classes in ((150, 4, 3), (569, 30, 2), (2000, 20, None)):
    x = pd.DataFrame(np.random.default_rng(9).random((n, p)), columns=[f"x{i}" for i in range(p)])
    z = x.reindex(columns=[f"x{i}" for i in range(5)], fill_value=0.5).to_numpy()
    y = 10 * np.sin(np.pi * z[:, 0] * z[:, 1]) + 20 * (z[:, 2] - 0.5) ** 2 + 10 * z[:, 3] + 5 * z[:, 4]
    kind = RandomForestClassifier if classes else RandomForestRegressor
    y = pd.Series(pd.qcut(y, classes, labels=False) if classes else y)
    start = time.time()
    forest = kind(500, min_samples_leaf=5, n_jobs=2, random_state=1).fit(x, y)
    grown = time.time()
    found = forest_guided_clustering(forest, x, y, DistanceRandomForestProximity(), ClusteringKMedoids(), k=(2, 6), n_jobs=2,
                                     random_state=1, verbose=0)
    print(f"{n} x {p}: forest {grown - start:.2f} s, clusters {time.time() - grown:.2f} s (best k {found['best_k']})", flush=True)
