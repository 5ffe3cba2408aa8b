"""Concordance of neighbours' Kaplan-Meier curves, with lifelines, scikit-learn and NumPy alone.

    python survival.py days > days.csv                       (the patients, of whom none is anyone)
    KINDRED_FOLDS=folds.json cargo test --workspace --test compare
    python survival.py folds.json > survival.json

Every patient is predicted by the five nearest of the other folds: by the horizon less the restricted mean survival time of their
Kaplan-Meier curve up to the last event of all, or to the horizon of the job where that is earlier. A curve stays where it is after its
last point. Pairs are those of Harrell's concordance.
"""

import csv
import json
import pathlib
import sys

import lifelines
import numpy
import sklearn
from lifelines import KaplanMeierFitter
from lifelines.utils import concordance_index, restricted_mean_survival_time
from sklearn.neighbors import NearestNeighbors

PATIENTS, NEIGHBOURS = 140, 5
HERE = pathlib.Path(__file__).parent


def days():
    draw = numpy.random.default_rng(3)
    x = draw.normal(size=(PATIENTS, 4))
    risk = 0.9 * x[:, 0] - 0.6 * x[:, 1]
    event = draw.exponential(300 * numpy.exp(-risk))
    lost = draw.exponential(700, size=PATIENTS)
    # Whole days, so that some are tied; nobody is followed for 0.
    time = numpy.maximum(1, numpy.round(numpy.minimum(event, lost)))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["patient", "days", "seen", "x0", "x1", "x2", "x3"])
    for row in range(PATIENTS):
        writer.writerow([f"days-{row}", int(time[row]), int(event[row] <= lost[row]), *(f"{value:.6f}" for value in x[row])])


def lost_time(time, seen, end):
    curve = KaplanMeierFitter().fit(time, seen)
    return end - restricted_mean_survival_time(curve, t=end)


def figures(folds):
    with open(HERE / "days.csv") as file:
        rows = list(csv.reader(file))[1:]
    time, seen = (numpy.array([float(row[place]) for row in rows]) for place in (1, 2))
    x = numpy.array([[float(value) for value in row[3:]] for row in rows])
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    folds = numpy.array(folds)
    found = {}
    for horizon in (None, 400.0):
        end = min(horizon or numpy.inf, time[seen == 1].max())
        families = {}
        for family, metric in (("euclidean", "euclidean"), ("cosine", "cosine")):
            lost = numpy.zeros(len(time))
            for fold in set(folds):
                others, held = numpy.flatnonzero(folds != fold), numpy.flatnonzero(folds == fold)
                near = NearestNeighbors(n_neighbors=NEIGHBOURS, metric=metric, algorithm="brute").fit(z[others])
                for patient, five in zip(held, near.kneighbors(z[held], return_distance=False)):
                    # Two of the same times differ in the last bits where the same numbers are added in another order.
                    lost[patient] = round(lost_time(time[others[five]], seen[others[five]], end), 6)
            families[family] = {"concordance": concordance_index(time, -lost, seen)}
        found["without" if horizon is None else "with"] = families
    return {"made_by": f"numpy {numpy.__version__}, scikit-learn {sklearn.__version__}, lifelines {lifelines.__version__}", **found}


if sys.argv[1] == "days":
    days()
else:
    print(json.dumps(figures(json.loads(pathlib.Path(sys.argv[1]).read_text()))))
