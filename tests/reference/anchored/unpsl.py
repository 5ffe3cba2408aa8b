"""UnPSL anchored: the linear predictor of a regression as one more coordinate of W'x, on held-out patients (AUC).

W minimises the distance form of the pair loss, with lambda_1 = 0.003 (smoothed), lambda_2 = 0.001 and rank 5, by L-BFGS. `w` is the weight of the
further coordinate, in medians of the two distances. Usage: unpsl.py DIR SURVIVAL OUT.json; benchmark.py lies beside it.
"""

import json
import sys

import numpy as np
from benchmark import *
from scipy.optimize import minimize

NAMES = ["Cleveland", "Hungary", "VA", "breast cancer (collinear)", "iris, two species", "PBC, dead within a year (few events)", "synthetic (few events)"]
ANCHORS = [0.0, 0.25, 0.5, 1.0, 2.0]


def learned(z, y, rank=5, sparsity=0.003, correlated=0.001):
    n, d = z.shape
    same = np.where(y[:, None] == y[None, :], 1.0, -1.0)
    pairs = ~np.eye(n, dtype=bool)
    weights = np.where(same > 0, 1 / np.sum(pairs & (same > 0)), 1 / np.sum(same < 0)) * pairs / 2
    r = np.corrcoef(z.T) ** 2

    def of(flat):
        w, b = flat[:-1].reshape(d, rank), flat[-1]
        e = z @ w
        squares = np.sum(e**2, axis=1)
        t = 2 * e @ e.T - squares[:, None] - squares[None, :] + b
        loss = np.sum(weights * np.logaddexp(0, -same * t))
        g = -weights * same / (1 + np.exp(np.clip(same * t, -500, 500)))
        # G is symmetric.
        gradient = 4 * z.T @ (g @ e - g.sum(axis=1)[:, None] * e)
        norms = np.sqrt(np.sum(w**2, axis=1) + 1e-8)
        value = loss + sparsity * norms.sum() + correlated * np.sum((w @ w.T) * r)
        gradient = gradient + sparsity * w / norms[:, None] + 2 * correlated * r @ w
        return value, np.r_[gradient.ravel(), g.sum()]

    rng = np.random.default_rng(3)
    begin = np.r_[0.1 * rng.normal(size=d * rank), 1.0]
    found = minimize(of, begin, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return found.x[:-1].reshape(d, rank)


def trial(name):
    family, x, y, groups = SETS[name]()
    pairs = {}
    for _, train, test, z, design, penalised in parted(family, x, y, groups, repeats=1):
        b = chosen(family, design[train], y[train], penalised)[0][1:]
        w = learned(z[train], y[train])
        e = z @ w
        squared = np.sum((e[test][:, None, :] - e[train][None, :, :]) ** 2, axis=2)
        risk = np.abs((z[test] @ b)[:, None] - (z[train] @ b)[None, :])
        unit = np.median(np.sqrt(squared)) / np.median(risk)
        reasons = risk + 0.3 * manhattan(z[test] * b, z[train] * b)
        for k in NEIGHBOURS:
            if k >= len(train):
                continue
            ways = {f"UnPSL, w = {a:g}": squared + (a * unit * risk) ** 2 for a in ANCHORS}
            for how, d in {**ways, "anchored": reasons}.items():
                so_far = pairs.setdefault(f"{how}, {k}", np.zeros(2))
                so_far += concordance(family, by_neighbours(family, d, y[train], k), y[test])
    return {key: value[0] / value[1] for key, value in pairs.items()}


found = {}
for name in NAMES:
    found[name] = {key: float(value) for key, value in trial(name).items()}
    print(name, {key: round(value, 4) for key, value in found[name].items()}, flush=True)
    with open(OUT, "w") as file:
        json.dump(found, file, indent=1)
