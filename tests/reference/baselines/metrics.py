"""Expected metrics of the baselines: ITML by metric-learn, GMML and the LMNN loss by their formulas.

Run: python metrics.py > metrics.json
"""

import json
import sys

import metric_learn
import numpy
import scipy
from scipy.linalg import fractional_matrix_power as power

RIDGE = 0.1


def renamed(check):
    """metric-learn 0.7 names an argument as scikit-learn did before 1.8."""

    def checked(*given, force_all_finite=True, **named):
        return check(*given, ensure_all_finite=force_all_finite, **named)

    return checked


for module in (metric_learn._util, metric_learn.base_metric, metric_learn.itml):
    for name in ("check_array", "check_X_y"):
        if hasattr(module, name):
            setattr(module, name, renamed(getattr(module, name)))

generator = numpy.random.default_rng(20261121)
codes = numpy.arange(30) % 2
x = generator.normal(size=(30, 4))
x[:, 0] += 1.2 * codes
x[:, 1] *= 2.0
similar = [(i, j) for i in range(30) for j in range(i) if codes[i] == codes[j]]
dissimilar = [(i, j) for i in range(30) for j in range(i) if codes[i] != codes[j]]


def scatter(pairs):
    away = numpy.array([x[i] - x[j] for i, j in pairs])
    mean = away.T @ away / len(pairs)
    return mean + RIDGE * numpy.trace(mean) / len(mean) * numpy.eye(len(mean))


def gmml(step):
    """The point S^-1 #_t D of the geodesic, as its definition prints it."""
    inverse, other = numpy.linalg.inv(scatter(similar)), scatter(dissimilar)
    root, back = power(inverse, 0.5), power(inverse, -0.5)
    return (root @ power(back @ other @ back, step) @ root).real


def itml(gamma):
    chosen = similar[::10] + dissimilar[::10]
    pairs = numpy.array([[x[i], x[j]] for i, j in chosen])
    labels = numpy.array([1] * len(similar[::10]) + [-1] * len(dissimilar[::10]))
    # metric-learn wants bounds of what it calls distances, and compares squares with them
    model = metric_learn.ITML(gamma=gamma, max_iter=200, tol=1e-3)
    model.fit(pairs, labels, bounds=BOUNDS)
    return chosen, labels.tolist(), model.get_mahalanobis_matrix()


def lmnn_loss(w):
    """Weinberger and Saul (2009), (13), with mu = 1/2 and 3 targets, over n."""
    euclidean = ((x[:, None] - x[None]) ** 2).sum(-1)
    mapped = x @ w
    learned = ((mapped[:, None] - mapped[None]) ** 2).sum(-1)
    loss = 0.0
    for i in range(30):
        same = [j for j in range(30) if j != i and codes[j] == codes[i]]
        for j in sorted(same, key=lambda j: euclidean[i, j])[:3]:
            loss += 0.5 * learned[i, j]
            for other in range(30):
                if codes[other] != codes[i]:
                    loss += 0.5 * max(0.0, 1 + learned[i, j] - learned[i, other])
    return loss / 30


def differences(w):
    gradient = numpy.zeros_like(w)
    for place in numpy.ndindex(*w.shape):
        step = numpy.zeros_like(w)
        step[place] = 1e-6
        gradient[place] = (lmnn_loss(w + step) - lmnn_loss(w - step)) / 2e-6
    return gradient


BOUNDS = (1.5, 9.0)
w = generator.normal(size=(4, 4)) * 0.5
itmls = []
for gamma in (0.1, 1.0):
    chosen, labels, metric = itml(gamma)
    itmls.append({"gamma": gamma, "metric": metric.tolist()})

json.dump(
    {
        "versions": {
            "metric-learn": metric_learn.__version__,
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
        },
        "patients": x.tolist(),
        "codes": codes.tolist(),
        "ridge": RIDGE,
        "gmml": [{"step": t, "metric": gmml(t).tolist()} for t in (0.3, 0.5)],
        "bounds": BOUNDS,
        "pairs": [list(pair) for pair in chosen],
        "pair_labels": labels,
        "itml": itmls,
        "lmnn": {"w": w.tolist(), "loss": lmnn_loss(w), "gradient": differences(w).tolist()},
    },
    sys.stdout,
)
print()
