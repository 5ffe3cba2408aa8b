"""How a common forest is judged by patients whom its trees have not seen: by which trees, so that it is what a new patient gets.

    python evenly.py DIR > evenly.json

DIR has the four UCI Heart Disease files. At each hospital scikit-learn grows 125 trees of terminal nodes of 10 patients or more, as a
common forest has them; of three seeds the share of all patients who are classed rightly:
  refitted   by forests that all hospitals grew without the patient's fold, one of five: what a new patient gets
  all        by all trees of the other hospitals and those of the own in whose bag the patient is not
  evenly     by those of the own in whose bag the patient is not, and as many of every other hospital, by turns that begin elsewhere for each
             patient and hospital (`InBag::within_evenly`)
"""

import csv
import json
import pathlib
import sys

import numpy
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.ensemble._forest import _generate_sample_indices
from sklearn.model_selection import StratifiedKFold

SITES, TREES, SEEDS = ("cleveland", "hungarian", "switzerland", "va"), 125, 3
FEATURES = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal".split()


def number(row, name):
    try:
        value = float(row[name])
    except ValueError:
        return numpy.nan
    return numpy.nan if value == 0 and name in ("trestbps", "chol") else value


def read(folder):
    x, y, site = [], [], []
    for place, name in enumerate(SITES):
        with open(pathlib.Path(folder) / f"{name}.csv") as file:
            for row in csv.DictReader(file):
                x.append([number(row, feature) for feature in FEATURES])
                y.append(int(float(row["num"]) > 0))
                site.append(place)
    return numpy.nan_to_num(numpy.array(x), nan=-99), numpy.array(y), numpy.array(site)


def grown(x, y, site, seed):
    def own(place):
        forest = RandomForestClassifier(TREES, min_samples_leaf=10, random_state=10 * seed + place)
        return forest.fit(x[site == place], y[site == place])
    return [own(place) for place in range(len(SITES))]


def shares(forests, x):
    return numpy.stack([tree.predict_proba(x)[:, 1] for forest in forests for tree in forest.estimators_], axis=1)


def right(x, y, site, seed):
    refitted = numpy.zeros(len(y))
    for others, held in StratifiedKFold(5, shuffle=True, random_state=seed).split(x, len(SITES) * y + site):
        refitted[held] = shares(grown(x[others], y[others], site[others], seed), x[held]).mean(axis=1)
    forests = grown(x, y, site, seed)
    of_all = shares(forests, x)
    seen = {"all": numpy.ones(of_all.shape), "evenly": numpy.ones(of_all.shape)}
    for place, forest in enumerate(forests):
        rows = numpy.flatnonzero(site == place)
        out = numpy.ones((len(rows), TREES))
        for tree, one in enumerate(forest.estimators_):
            out[numpy.unique(_generate_sample_indices(one.random_state, len(rows), len(rows), None)), tree] = 0
        seen["all"][numpy.ix_(rows, numpy.arange(TREES * place, TREES * (place + 1)))] = out
        begins = numpy.random.default_rng(seed).integers(TREES, size=(len(SITES) - 1, len(rows), 1))
        others = [numpy.take_along_axis(out, (numpy.arange(TREES) + begin) % TREES, axis=1) for begin in begins]
        seen["evenly"][rows] = numpy.concatenate([*others[:place], out, *others[place:]], axis=1)
    found = {rule: (of_all * counts).sum(axis=1) / counts.sum(axis=1) for rule, counts in seen.items()}
    found["refitted"] = refitted
    return {rule: float(((share > 0.5) == y).mean()) for rule, share in found.items()}


tables = read(sys.argv[1])
told = [right(*tables, seed) for seed in range(SEEDS)]
mean = {rule: round(float(numpy.mean([one[rule] for one in told])), 4) for rule in told[0]}
print(json.dumps({"made_by": f"numpy {numpy.__version__}, scikit-learn {sklearn.__version__}", "mean": mean, "seeds": told}))
