"""Held-out counts of several similarities from NumPy, SciPy and scikit-learn alone, on the patients and folds of ../validation.

    python compare.py > expected.json

All patients are standardised by the means and standard deviations of all sites together. Every patient is classed by the five
nearest of its own site's other folds: by the Euclidean distance, the cosine, Mahalanobis' distance (the covariance of the other
folds of the site), and the distance that a logistic regression of the other folds of all sites weighs, with and without its risk as an anchor; and by that regression itself.
"""

import csv
import json
import pathlib

import numpy
import scipy
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

SITES, FOLDS, NEIGHBOURS = ("north", "south", "east"), 5, 5
# Half of it times the sum of the squared coefficients is taken from the log-likelihood. Without it some fold parts the classes so steeply
# that hospitals do not answer.
RIDGE = 3
SOURCE = pathlib.Path(__file__).parent.parent / "validation"


def read(name):
    with open(SOURCE / f"{name}.csv") as file:
        rows = list(csv.reader(file))[1:]
    codes = numpy.array([int(row[1] == "positive") for row in rows])
    return numpy.array([[float(value) for value in row[2:]] for row in rows]), codes


def neighbours(training, codes, held_out, **how):
    model = KNeighborsClassifier(n_neighbors=NEIGHBOURS, algorithm="brute", **how).fit(training, codes)
    return model.predict_proba(held_out)[:, 1]


def anchored(patients, weighted):
    """0.3 of what each feature adds to the log odds, and their sum."""
    parts = patients * weighted
    return numpy.column_stack([0.3 * parts, parts.sum(axis=1)])


def shares():
    """Of every family the share of the second class, site by site, and the codes."""
    sites = [read(name) for name in SITES]
    known = json.loads((SOURCE / "expected.json").read_text())["folds"]
    folds = [numpy.array(known[name]) for name in SITES]
    whole = numpy.concatenate([x for x, _ in sites])
    mean, deviation = whole.mean(axis=0), whole.std(axis=0)
    sites = [((x - mean) / deviation, codes) for x, codes in sites]
    families = ("euclidean", "cosine", "mahalanobis", "regression", "anchored", "regression_model")
    found = {family: [numpy.full(len(x), numpy.nan) for x, _ in sites] for family in families}
    for fold in range(1, FOLDS + 1):
        others = numpy.concatenate([x[f != fold] for (x, _), f in zip(sites, folds)])
        their = numpy.concatenate([codes[f != fold] for (_, codes), f in zip(sites, folds)])
        regression = LogisticRegression(C=1 / RIDGE, tol=1e-12, max_iter=10_000).fit(others, their)
        for place, ((x, codes), of) in enumerate(zip(sites, folds)):
            held = of == fold
            training, own, asked = x[~held], codes[~held], x[held]
            covariance = numpy.linalg.inv(numpy.cov(training.T))
            weighted = regression.coef_[0]
            told = {
                "euclidean": neighbours(training, own, asked),
                "cosine": neighbours(training, own, asked, metric="cosine"),
                "mahalanobis": neighbours(training, own, asked, metric="mahalanobis", metric_params={"VI": covariance}),
                "regression": neighbours(training * weighted, own, asked * weighted, metric="manhattan"),
                "anchored": neighbours(anchored(training, weighted), own, anchored(asked, weighted), metric="manhattan"),
                "regression_model": regression.predict_proba(asked)[:, 1],
            }
            for family, share in told.items():
                found[family][place][held] = share
    codes = numpy.concatenate([codes for _, codes in sites])
    places = numpy.concatenate([numpy.full(len(x), place) for place, (x, _) in enumerate(sites)])
    return {family: numpy.concatenate(parts) for family, parts in found.items()}, codes, places


def area_gain(plain, share, codes, places):
    """Of pairs within sites, with the error by the infinitesimal jackknife over patients."""
    def right(scores):
        ahead = numpy.sign(scores[:, None] - scores[None, :]) * 0.5 + 0.5
        return numpy.where(codes[:, None] == 1, ahead, 1 - ahead)
    pairs = (codes[:, None] != codes[None, :]) & (places[:, None] == places[None, :])
    gained = ((right(share) - right(plain)) * pairs).sum(axis=1)
    weights = [(codes[places == place] == 1).sum() * (codes[places == place] == 0).sum() for place in set(places)]
    of_site = lambda scores: [roc_auc_score(codes[places == place], scores[places == place]) for place in set(places)]
    value = numpy.average(of_site(share), weights=weights) - numpy.average(of_site(plain), weights=weights)
    error = numpy.sqrt(((gained - value * pairs.sum(axis=1)) ** 2).sum()) / (pairs.sum() / 2)
    return [float(value), float(error)]


def brier_gain(plain, share, codes):
    gained = (plain - codes) ** 2 - (share - codes) ** 2
    return [float(gained.mean()), float(gained.std() / numpy.sqrt(len(codes)))]


def figures():
    found, codes, places = shares()
    families = {}
    for family, share in found.items():
        predicted = (share > 0.5).astype(int)
        families[family] = {
            "confusion": [[int(((codes == i) & (predicted == j)).sum()) for j in (0, 1)] for i in (0, 1)],
            "accuracy": float((predicted == codes).mean()),
            "balanced_accuracy": float(balanced_accuracy_score(codes, predicted)),
            "auc": float(roc_auc_score(codes, share)),
            "brier": float(((share - codes) ** 2).mean()),
            "area_gain": area_gain(found["euclidean"], share, codes, places),
            "brier_gain": brier_gain(found["euclidean"], share, codes),
        }
    return {
        "made_by": f"numpy {numpy.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}",
        "patients": len(codes),
        "families": families,
    }


print(json.dumps(figures(), indent=1))
