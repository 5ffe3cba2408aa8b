"""scikit-learn on the data that `cargo bench --bench forest -- FOLDER` wrote.

Run: python forest.py FOLDER THREADS [SET]...   with scikit-learn in the environment. Prints wall and processor seconds; on
a machine shared with others compare the latter.
"""

import resource
import sys
import time

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestRegressor

folder, threads = sys.argv[1], int(sys.argv[2])
print("scikit-learn", sklearn.__version__)
for name in sys.argv[3:] or ["2000x20", "10000x50"]:
    rows, features = (int(part) for part in name.split("x"))

    def load(part, rows):
        columns = np.fromfile(f"{folder}/{name}.{part}.f64").reshape(features + 1, rows)
        return columns[:-1].T, columns[-1]

    x, y = load("training", rows)
    x_test, y_test = load("test", 2000)
    for leaf, split in ((1, 2), (1, 6)):
        forest = RandomForestRegressor(500, max_features="sqrt", min_samples_split=split, min_samples_leaf=leaf,
                                       n_jobs=threads, random_state=1)
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        forest.fit(x, y)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        mse = np.mean((forest.predict(x_test) - y_test) ** 2)
        print(f"train {name} split {split}: {wall:.3f} s, processor {used:.3f} s, test MSE {mse:.4f}", flush=True)
