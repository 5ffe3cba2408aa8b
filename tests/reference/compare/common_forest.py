"""Held-out counts by a forest that three sites have in common, from its node tables alone, with NumPy and scikit-learn.

    KINDRED_COMMON_FOREST=trees.json cargo test --workspace --test compare
    python common_forest.py trees.json > common_forest.json

trees.json has of each site its folds, its trees as they are released, and who is in the bag of each of its own trees. Every patient goes
down all trees; of a patient only those trees of its own site count in whose bag it is not, and of the other sites' trees the same places in
turn, so that every site's trees have the shares that they have for a new patient; a patient's turns begin elsewhere in each round of
as many trees as its own site has. The nearest are sought among the patients of the other
folds of its own site: by the share of those trees in which the two end in another node, equal ones in the order of the table. The forest
itself predicts by the mean over those trees of the shares of the classes at their ends.
"""

import csv
import json
import pathlib
import sys

import numpy
import sklearn
from sklearn.neighbors import KNeighborsClassifier

SITES, NEIGHBOURS = ("north", "south", "east"), 5
SOURCE = pathlib.Path(__file__).parent.parent / "validation"


def read(name):
    with open(SOURCE / f"{name}.csv") as file:
        rows = list(csv.reader(file))[1:]
    return numpy.array([[float(value) for value in row[2:]] for row in rows]), numpy.array([int(row[1] == "positive") for row in rows])


def end(tree, patient):
    node = 0
    while len(tree[node]) == 3:
        feature, cut, left = tree[node]
        node = left if patient[feature] <= cut else left + 1
    return node


def vote(classes):
    """The commonest class; among equals that of the nearest."""
    counts = [classes.count(0), classes.count(1)]
    return next(one for one in classes if counts[one] == max(counts))


def counted(codes, predicted, shares):
    table = [[int(((codes == i) & (predicted == j)).sum()) for j in (0, 1)] for i in (0, 1)]
    return {
        "confusion": table,
        "half_squares": float(((shares - codes) ** 2).sum()),
    }


def figures(told):
    forest = [tree for site in told for tree in site["trees"]]
    tables = [read(name) for name in SITES]
    whole = numpy.concatenate([x for x, _ in tables])
    mean, deviation = whole.mean(axis=0), whole.std(axis=0)
    found, first = {}, 0
    for site, (x, codes) in zip(told, tables):
        folds, n = numpy.array(site["folds"]), len(codes)
        ends = numpy.array([[end(tree, patient) for tree in forest] for patient in x])
        out = numpy.array([[patient == "0" for patient in seen] for seen in site["in_bag"]]).T
        own = out.shape[1]
        others = numpy.arange(len(forest) - own)
        golden = numpy.uint64(0x9E3779B97F4A7C15)
        begins = [golden * (patient * (1 + others // own)).astype(numpy.uint64) >> numpy.uint64(32) for patient in range(n)]
        turns = (others + numpy.array(begins).astype(int)) % own
        of_others = numpy.take_along_axis(out, turns, axis=1)
        of_others[~out.any(axis=1)] = True
        unseen = numpy.concatenate([of_others[:, :first], out, of_others[:, first:]], axis=1)
        first += own
        near, share, by_forest, plain, plain_share = (numpy.zeros(n) for _ in range(5))
        z = (x - mean) / deviation
        for patient in range(n):
            trees = numpy.flatnonzero(unseen[patient])
            others = numpy.flatnonzero(folds != folds[patient])
            parted = (ends[others][:, trees] != ends[patient][trees]).sum(axis=1)
            five = [int(codes[other]) for other in others[numpy.argsort(parted, kind="stable")[:NEIGHBOURS]]]
            near[patient], share[patient] = vote(five), sum(five) / NEIGHBOURS
            leaves = [forest[tree][ends[patient, tree]] for tree in trees]
            by_forest[patient] = numpy.mean([leaf[1] / sum(leaf) for leaf in leaves])
            model = KNeighborsClassifier(NEIGHBOURS, algorithm="brute").fit(z[others], codes[others])
            plain_share[patient] = model.predict_proba(z[[patient]])[0, 1]
        found[site["site"]] = {
            "euclidean": counted(codes, (plain_share > 0.5).astype(int), plain_share),
            "common_forest": counted(codes, near, share),
            "common_forest_model": counted(codes, (by_forest > 0.5).astype(int), by_forest),
        }
    return {"made_by": f"numpy {numpy.__version__}, scikit-learn {sklearn.__version__}", "sites": found}


print(json.dumps(figures(json.loads(pathlib.Path(sys.argv[1]).read_text())), indent=1))
