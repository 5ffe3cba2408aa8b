"""R2ML's objective, a subgradient by differences, the proximal operator by an SVD, and points of the simplex by SciPy's SLSQP.

Run: python r2ml.py > r2ml.json
"""

import json
import sys

import numpy
import scipy
from scipy.optimize import minimize

METRICS, RANK_PENALTY = 5, 1.0
generator = numpy.random.default_rng(20130923)
codes = numpy.arange(24) % 3
x = generator.normal(size=(24, 4)) * 0.5
x[:, 0] += 0.8 * codes
metrics = generator.normal(size=(METRICS, 4, 4)) * 0.4
weights = generator.random((24, METRICS))
weights /= weights.sum(axis=1, keepdims=True)


def smooth(metric, own):
    """Huang and others (2013): what one metric adds but for its nuclear norm, as its definition prints it."""
    total = 0.0
    for m in range(24):
        for n in range(24):
            away = metric @ (x[m] - x[n])
            distance = away @ away
            total += own[m] * own[n] * distance if codes[m] == codes[n] else max(0.0, 1 - distance)
    return total


def differences(metric, own):
    gradient = numpy.zeros_like(metric)
    for place in numpy.ndindex(*metric.shape):
        step = numpy.zeros_like(metric)
        step[place] = 1e-6
        gradient[place] = (smooth(metric + step, own) - smooth(metric - step, own)) / 2e-6
    return gradient


def shrunk(metric, threshold):
    u, s, vt = numpy.linalg.svd(metric)
    return u @ numpy.diag(numpy.maximum(s - threshold, 0)) @ vt


def nearest(point):
    start = numpy.full(len(point), 1 / len(point))
    found = minimize(lambda y: ((y - point) ** 2).sum(), start, jac=lambda y: 2 * (y - point), bounds=[(0, 1)] * len(point),
                     constraints=[{"type": "eq", "fun": lambda y: y.sum() - 1}], method="SLSQP", options={"ftol": 1e-15})
    return found.x.tolist()


nuclear = [numpy.linalg.norm(metric, "nuc") for metric in metrics]
points = [generator.normal(size=METRICS).tolist() for _ in range(6)]
json.dump(
    {
        "versions": {"numpy": numpy.__version__, "scipy": scipy.__version__},
        "patients": x.tolist(),
        "codes": codes.tolist(),
        "metrics": metrics.tolist(),
        "weights": weights.tolist(),
        "objective": sum(smooth(m, g) + RANK_PENALTY * n for m, g, n in zip(metrics, weights.T, nuclear)),
        "smooth": smooth(metrics[0], weights[:, 0]),
        "subgradient": differences(metrics[0], weights[:, 0]).tolist(),
        "threshold": 0.3,
        "shrunk": shrunk(metrics[0], 0.3).tolist(),
        "points": points,
        "nearest": [nearest(numpy.array(point)) for point in points],
    },
    sys.stdout,
)
print()
