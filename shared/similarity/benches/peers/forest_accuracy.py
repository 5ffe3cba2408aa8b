"""Predictions of scikit-learn and scikit-survival on the data that `cargo bench --bench forest_accuracy -- FOLDER` wrote.

Run: python forest_accuracy.py FOLDER   with scikit-learn and scikit-survival in the environment. Rules as ours: 200 trees,
floor(sqrt p) features a split, no terminal node of fewer than 1 (classes), 5 (numbers) or 3 (survival) different patients.
"""

import glob
import os
import sys

import numpy as np
import sklearn
import sksurv
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sksurv.ensemble import RandomSurvivalForest
from sksurv.util import Surv

folder = sys.argv[1]
print("scikit-learn", sklearn.__version__, "scikit-survival", sksurv.__version__)
FORESTS = {
    "classification": (RandomForestClassifier, 1),
    "regression": (RandomForestRegressor, 5),
    "survival": (RandomSurvivalForest, 3),
    "censored": (RandomSurvivalForest, 3),
}
for kind, (forest, terminal_min) in FORESTS.items():
    repeats = len(glob.glob(f"{folder}/{kind}.*.training.csv"))
    for repeat in range(repeats):

        def load(part):
            table = np.genfromtxt(f"{folder}/{kind}.{repeat}.{part}.csv", delimiter=",", skip_header=1)
            if kind in ("survival", "censored"):
                return table[:, :-2], Surv.from_arrays(table[:, -1] == 1, table[:, -2])
            return table[:, :-1], table[:, -1]

        x, y = load("training")
        model = forest(200, max_features="sqrt", min_samples_split=2, min_samples_leaf=terminal_min, n_jobs=2,
                       random_state=repeat)
        found = model.fit(x, y).predict(load("test")[0])
        np.savetxt(os.path.join(folder, f"scikit.{kind}.{repeat}.csv"), found, fmt="%.17g")
    print(kind, repeats, "data sets", flush=True)
