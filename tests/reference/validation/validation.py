"""Held-out figures of a small federation from NumPy, SciPy and scikit-learn alone, on the folds that Kindred forms.

    python validation.py patients .                 writes north.csv, south.csv, east.csv
    kindred-coordinator simulate job.toml --data . --out OUT
    python validation.py figures OUT > expected.json

Of OUT it reads what stays at the sites: the standardised patients, their classes and folds. Of every fold the metric is learned
again without it, as the minimum of (4.19) over W and the threshold of each site by L-BFGS on smoothed row norms; held-out
patients are classed by scikit-learn.
"""

import csv
import json
import pathlib
import sys

import numpy
import scipy
import sklearn
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

SITES = {"north": 90, "south": 72, "east": 61}
FEATURES, RANK, LAMBDA_1, LAMBDA_2, NEIGHBOURS = 6, 3, 0.01, 0.001, 5


def write_patients(folder):
    generator = numpy.random.default_rng(20261122)
    for place, (name, count) in enumerate(SITES.items()):
        x = generator.normal(size=(count, FEATURES)) + 0.3 * place
        x[:, 2] = 0.6 * (x[:, 0] + x[:, 1]) + 0.4 * generator.normal(size=count)
        noise = generator.normal(size=count)
        positive = x[:, 0] - 0.8 * x[:, 1] + 0.5 * x[:, 3] + 0.8 * noise > 0.3 * place
        with open(folder / f"{name}.csv", "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["patient", "class"] + [f"x{k}" for k in range(FEATURES)])
            for row in range(count):
                word = "positive" if positive[row] else "negative"
                table.writerow([f"{name}-{row}", word] + [f"{value:.6f}" for value in x[row]])


def column(path, place):
    with open(path) as file:
        return numpy.array([int(row[place]) for row in list(csv.reader(file))[1:]])


def read(out):
    folders = [out / "sites" / name for name in SITES]
    return [(numpy.load(f / "matrix.npy"), column(f / "outcome.csv", 1), column(f / "folds.csv", 1)) for f in folders]


def pairs(codes):
    """Similar and dissimilar ones."""
    sizes = numpy.unique(codes, return_counts=True)[1]
    similar = int((sizes * (sizes - 1) // 2).sum())
    return numpy.array([similar, len(codes) * (len(codes) - 1) // 2 - similar])


def prepared(parts, whole):
    """Of each site its part, with the pairs of all sites' parts as it reckons them: all pairs in the ratio of its own."""
    totals = sum(pairs(codes) for _, codes in whole)
    ready = []
    for (x, codes), (_, all_codes) in zip(parts, whole):
        reckoned = numpy.round(totals * pairs(codes) / pairs(all_codes)).sum()
        y = numpy.where(codes[:, None] == codes[None, :], 1.0, -1.0)
        off = 1.0 - numpy.eye(len(x))
        ready.append((x, y, off, numpy.corrcoef(x.T) ** 2, reckoned, pairs(codes).sum()))
    return ready


def learned(parts, whole):
    ready = prepared(parts, whole)

    def function(flat, epsilon):
        w, b = flat[:-len(ready)].reshape(FEATURES, RANK), flat[-len(ready):]
        norms = numpy.sqrt((w**2).sum(axis=1) + epsilon**2)
        value, slope, slope_b = LAMBDA_1 * norms.sum(), LAMBDA_1 * w / norms[:, None], numpy.zeros(len(ready))
        for place, (x, y, off, squared, total, own) in enumerate(ready):
            e = x @ w
            z = y * (e @ e.T - b[place])
            value += 0.5 * (off * numpy.logaddexp(0.0, -z)).sum() / total
            g = -off * y * expit(-z) / total
            slope = slope + x.T @ (g @ e)
            slope_b[place] = -0.5 * g.sum()
            value += own / total * LAMBDA_2 * numpy.trace(w @ w.T @ squared)
            slope = slope + own / total * LAMBDA_2 * 2 * squared @ w
        return value, numpy.concatenate([slope.ravel(), slope_b])

    best = None
    for start in range(3):
        generator = numpy.random.default_rng(start)
        flat = numpy.concatenate([0.3 * generator.normal(size=FEATURES * RANK), numpy.ones(len(ready))])
        for epsilon in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5]:
            found = minimize(function, flat, args=(epsilon,), jac=True, method="L-BFGS-B",
                             options={"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-10})
            flat = found.x
        if best is None or found.fun < best.fun:
            best = found
    return best.x[:-len(ready)].reshape(FEATURES, RANK)


def classed(training, codes, held_out, rule):
    """The share of the second class among the nearest."""
    if rule == "inner_product":
        nearest = numpy.argsort(-(held_out @ training.T), axis=1, kind="stable")[:, :NEIGHBOURS]
        return codes[nearest].mean(axis=1)
    model = KNeighborsClassifier(n_neighbors=NEIGHBOURS, algorithm="brute").fit(training, codes)
    return model.predict_proba(held_out)[:, 1]


def figures(out):
    sites = read(out)
    whole = [(x, codes) for x, codes, _ in sites]
    shares = {rule: [numpy.full(len(x), numpy.nan) for x, _, _ in sites] for rule in ("distance", "inner_product", "euclidean")}
    for fold in range(1, sites[0][2].max() + 1):
        w = learned([(x[folds != fold], codes[folds != fold]) for x, codes, folds in sites], whole)
        for place, (x, codes, folds) in enumerate(sites):
            held = folds == fold
            for rule, found in shares.items():
                compared = x if rule == "euclidean" else x @ w
                found[place][held] = classed(compared[~held], codes[~held], compared[held], rule)
    codes = numpy.concatenate([codes for _, codes, _ in sites])
    rules = {}
    for rule, found in shares.items():
        share = numpy.concatenate(found)
        predicted = (share > 0.5).astype(int)
        rules[rule] = {
            "wrong": int((predicted != codes).sum()),
            "confusion": [[int(((codes == i) & (predicted == j)).sum()) for j in (0, 1)] for i in (0, 1)],
            "scores": [[int(((codes == i) & (numpy.round(share * NEIGHBOURS) == b)).sum())
                        for b in range(NEIGHBOURS + 1)] for i in (0, 1)],
            "balanced_accuracy": balanced_accuracy_score(codes, predicted),
            "auc": roc_auc_score(codes, share),
        }
    return {
        "made_by": f"numpy {numpy.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}",
        "folds": {name: folds.tolist() for name, (_, _, folds) in zip(SITES, sites)},
        "patients": len(codes),
        "majority": float(numpy.bincount(codes).max() / len(codes)),
        "rules": rules,
    }


folder = pathlib.Path(sys.argv[2])
if sys.argv[1] == "patients":
    write_patients(folder)
else:
    json.dump(figures(folder), sys.stdout)
    print()
