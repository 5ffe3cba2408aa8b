"""Right counts and log losses of k nearest training patients under W, from scikit-learn alone.

Run: python neighbours.py > neighbours.json
"""

import json
import sys

import numpy
import sklearn
from sklearn import metrics
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

NEIGHBOURS = [1, 3, 5, 9]

generator = numpy.random.default_rng(20261121)
codes = (generator.random(60) < 0.4).astype(int)
x = generator.normal(size=(60, 5))
x[:, 0] += 0.9 * codes
x[:, 1] -= 0.7 * codes
w = generator.normal(size=(5, 2))
w[3] = 0.0


def right(training, held_out, k, metric):
    model = KNeighborsClassifier(n_neighbors=k, algorithm="brute", metric=metric)
    model.fit(x[training] @ w, codes[training])
    return int((model.predict(x[held_out] @ w) == codes[held_out]).sum())


def log_loss(training, held_out, k, metric):
    """Of shares with one vote more, spread as the classes of the training patients are, each with one patient more."""
    model = KNeighborsClassifier(n_neighbors=k, algorithm="brute", metric=metric)
    model.fit(x[training] @ w, codes[training])
    votes = k * model.predict_proba(x[held_out] @ w)
    prior = (numpy.bincount(codes[training], minlength=2) + 1) / (len(training) + 2)
    shares = (votes + prior) / (k + 1)
    return float(metrics.log_loss(codes[held_out], shares, normalize=False))


folds = []
for training, held_out in StratifiedKFold(4, shuffle=True, random_state=3).split(x, codes):
    rules = {
        "distance": "euclidean",
        "inner_product": lambda a, b: -float(a @ b),
    }
    folds.append(
        {
            "training": training.tolist(),
            "held_out": held_out.tolist(),
            **{
                name: [right(training, held_out, k, metric) for k in NEIGHBOURS]
                for name, metric in rules.items()
            },
            "log_loss": {
                name: [log_loss(training, held_out, k, metric) for k in NEIGHBOURS]
                for name, metric in rules.items()
            },
        }
    )

json.dump(
    {
        "made_by": f"numpy {numpy.__version__}, scikit-learn {sklearn.__version__}",
        "neighbours": NEIGHBOURS,
        "patients": x.tolist(),
        "codes": codes.tolist(),
        "metric": w.tolist(),
        "folds": folds,
    },
    sys.stdout,
)
print()
