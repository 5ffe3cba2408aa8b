"""Out-of-bag errors by the size of terminal nodes: noisy classes by scikit-learn, few events by scikit-survival.

Run: python node_size.py > node_size.json
"""

import json
import sys

import numpy as np
import sklearn
import sksurv
from sklearn.ensemble import RandomForestClassifier
from sksurv.ensemble import RandomSurvivalForest
from sksurv.util import Surv

SEEDS = range(10)
TREES = 100


def noisy_classes(rng):
    """Two classes by a sum of digits, a quarter of them turned over."""
    x = rng.integers(0, 10, (800, 6))
    label = (x[:, 0] + x[:, 1] > 9).astype(int) ^ (rng.random(800) < 0.25)
    errors = {}
    for leaf in (1, 3, 10, 30, 100):
        errors[leaf] = []
        for seed in SEEDS:
            forest = RandomForestClassifier(TREES, max_features=2, min_samples_leaf=leaf, oob_score=True,
                                            random_state=seed, n_jobs=2).fit(x, label)
            shares = forest.oob_decision_function_
            errors[leaf].append(float(np.mean(((shares - np.eye(2)[label]) ** 2).sum(axis=1))))
    return {"x": ["".join(map(str, row)) for row in x], "y": "".join(map(str, label)), "errors": errors}


def few_events(rng):
    """1,096 patients with 39 features of yes and no, of whom one in seven has an event."""
    n, p = 1096, 39
    x = (rng.random((n, p)) < rng.uniform(0.05, 0.5, p)).astype(int)
    effects = np.zeros(p)
    effects[:8] = [0.9, -0.8, 0.7, 0.6, -0.6, 0.5, 0.5, -0.4]
    drawn = rng.exponential(np.exp(-(x @ effects)))
    end = rng.random(n) * 0.148
    time, event = np.ceil(np.minimum(drawn, end) / 0.148 * 1500), drawn <= end
    errors = {}
    for leaf in (3, 15):
        errors[leaf] = []
        for seed in SEEDS:
            forest = RandomSurvivalForest(TREES, max_features=6, min_samples_split=2, min_samples_leaf=leaf,
                                          oob_score=True, random_state=seed, n_jobs=2)
            errors[leaf].append(1 - forest.fit(x, Surv.from_arrays(event, time)).oob_score_)
    return {"x": ["".join(map(str, row)) for row in x], "time": time.tolist(), "event": "".join(map(str, event.astype(int))),
            "events": int(event.sum()), "errors": errors}


rng = np.random.default_rng(7)
json.dump({"versions": {"python": sys.version.split()[0], "numpy": np.__version__, "sklearn": sklearn.__version__,
                        "scikit-survival": sksurv.__version__},
           "classes": noisy_classes(rng), "survival": few_events(rng)}, sys.stdout, allow_nan=False)
