"""Expected numbers for UnPSL from NumPy and SciPy alone: objective, gradient, optimum, scores.

Run: python optimum.py > optimum.json
The optimum of (4.19) with its row norms is found by an active set: BFGS on a smoothed norm, rows near
zero are fixed at zero, BFGS again on the rest, then the optimality conditions are checked.
"""

import json
import sys

import numpy
import scipy
import sklearn
from scipy.optimize import minimize
from sklearn import metrics

LAMBDA_1, LAMBDA_2, THRESHOLD, RANK = 0.03, 0.01, 1.0, 3
FEATURES = 6

generator = numpy.random.default_rng(20180503)


def site(count):
    shared = generator.normal(size=(count, 2))
    x = generator.normal(size=(count, FEATURES))
    x[:, 2] = 0.5 * (x[:, 0] + x[:, 1]) + 0.3 * generator.normal(size=count)
    x[:, 3] += shared[:, 0]
    codes = (x[:, 0] - 0.7 * x[:, 1] + 0.4 * generator.normal(size=count) > 0.2).astype(int)
    codes[x[:, 3] > 1.4] = 2
    return x, codes


def softplus(z):
    return numpy.logaddexp(0.0, z)


def smooth(w, sites, pairs_total):
    """sum_p [loss_p / N + (N_p / N) lambda_2 Tr(W W' (R_p o R_p)')] and its gradient."""
    value, gradient = 0.0, numpy.zeros_like(w)
    for x, codes in sites:
        count = len(x)
        y = numpy.where(codes[:, None] == codes[None, :], 1.0, -1.0)
        off = 1.0 - numpy.eye(count)
        s = x @ w @ w.T @ x.T
        z = y * (s - THRESHOLD)
        value += 0.5 * (off * softplus(-z)).sum() / pairs_total
        g = -off * y * scipy.special.expit(-z)
        gradient += x.T @ (g @ (x @ w)) / pairs_total
        squared = numpy.corrcoef(x.T) ** 2
        share = (count * (count - 1) / 2) / pairs_total
        value += share * LAMBDA_2 * numpy.trace(w @ w.T @ squared.T)
        gradient += share * LAMBDA_2 * 2 * squared @ w
    return value, gradient


def objective(w, sites, pairs_total):
    return smooth(w, sites, pairs_total)[0] + LAMBDA_1 * numpy.linalg.norm(w, axis=1).sum()


def bfgs(w, rows, epsilon, sites, pairs_total):
    def function(flat):
        full = numpy.zeros((FEATURES, RANK))
        full[rows] = flat.reshape(-1, RANK)
        value, gradient = smooth(full, sites, pairs_total)
        norms = numpy.sqrt((full[rows] ** 2).sum(axis=1) + epsilon**2)
        value += LAMBDA_1 * norms.sum()
        gradient = gradient[rows] + LAMBDA_1 * full[rows] / norms[:, None]
        return value, gradient.ravel()

    found = minimize(function, w[rows].ravel(), jac=True, method="BFGS",
                     options={"gtol": 1e-11, "maxiter": 20000})
    result = numpy.zeros((FEATURES, RANK))
    result[rows] = found.x.reshape(-1, RANK)
    return result


def optimum(start, sites, pairs_total):
    w, every = start, numpy.arange(FEATURES)
    for epsilon in [1e-2, 1e-3, 1e-4]:
        w = bfgs(w, every, epsilon, sites, pairs_total)
    rows = every[numpy.linalg.norm(w, axis=1) > 1e-2]
    w = bfgs(w, rows, 0.0, sites, pairs_total)
    _, gradient = smooth(w, sites, pairs_total)
    for row in every:
        length = numpy.linalg.norm(w[row])
        if length > 0:
            assert numpy.linalg.norm(gradient[row] + LAMBDA_1 * w[row] / length) < 1e-7
        else:
            assert numpy.linalg.norm(gradient[row]) < LAMBDA_1
    return w


def scores():
    actual = [1] * 12 + [0] * 7
    predicted = [1] * 8 + [0] * 4 + [1] * 2 + [0] * 5
    return {
        "true_positive": 8, "false_positive": 2, "true_negative": 5, "false_negative": 4,
        "accuracy": metrics.accuracy_score(actual, predicted),
        "recall": metrics.recall_score(actual, predicted),
        "precision": metrics.precision_score(actual, predicted),
        "f1": metrics.fbeta_score(actual, predicted, beta=1),
        "f2": metrics.fbeta_score(actual, predicted, beta=2),
    }


def main():
    sites = [site(25), site(40), site(15)]
    pairs_total = sum(len(x) * (len(x) - 1) / 2 for x, _ in sites)
    start = generator.normal(size=(FEATURES, RANK)) / numpy.sqrt(FEATURES * RANK)
    value, gradient = smooth(start, sites, pairs_total)
    best = optimum(start, sites, pairs_total)
    json.dump({
        "versions": {"numpy": numpy.__version__, "scipy": scipy.__version__,
                     "scikit-learn": sklearn.__version__},
        "rank": RANK, "lambda_sparsity": LAMBDA_1, "lambda_correlation": LAMBDA_2,
        "threshold": THRESHOLD,
        "sites": [{"patients": x.tolist(), "codes": codes.tolist()} for x, codes in sites],
        "start": start.tolist(),
        "smooth_at_start": value,
        "gradient_at_start": gradient.tolist(),
        "objective_at_start": objective(start, sites, pairs_total),
        "optimum": best.tolist(),
        "objective_at_optimum": objective(best, sites, pairs_total),
        "scores": scores(),
    }, sys.stdout, indent=1)


main()
