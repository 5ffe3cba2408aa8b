"""By how few numbers a common forest can place patients for groups that hospitals have in common: on the pooled patients, and by small groups.

    python forests.py DIR > forests.json

DIR has the four UCI Heart Disease files, and `gbsg2.csv` (a German trial on breast cancer) beside their folder. Beside them: 640 patients made
up with a curved outcome, and scikit-learn's breast cancer data in three parts of 400, 130 and 39. At each hospital scikit-learn grows 125 trees
of terminal nodes of 10 patients or more; a patient's exact place is one 1 a tree over the root of their number (squared distances 2 (1 - P)).
Its projection is onto the subspace of 1,024 patients who are nobody's: each is drawn down a tree to a terminal node, and then anywhere that the
cut points of the forest leave. Told are, by how many numbers, the correlation of squared distances with 2 (1 - P), and the adjusted Rand index of
groups with k-means of the exact places of all rows: `rows` from the rows, `small` from the means of small groups (MDAV, ten or more of one outcome).
"""

import csv
import json
import pathlib
import sys

import numpy
import sklearn
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import adjusted_rand_score

TREES, NOBODY, LEAST, STEPS = 125, 1024, 10, 4
GROUPS, NUMBERS = (2, 3, 4, 5, 6), (2, 4, 8, 16, 32, 128)
FEATURES = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal".split()
draw = numpy.random.default_rng(5)


def number(row, name):
    try:
        value = float(row[name])
    except ValueError:
        return -99.0
    return -99.0 if value == 0 and name in ("trestbps", "chol") else value


def hospitals(folder):
    for name in ("cleveland", "hungarian", "switzerland", "va"):
        with open(pathlib.Path(folder) / f"{name}.csv") as file:
            rows = numpy.array([[int(float(row["num"]) > 0), *(number(row, one) for one in FEATURES)] for row in csv.DictReader(file)])
        yield rows[:, 1:], rows[:, 0]


def trial(folder):
    levels = {"no": 0, "yes": 1, "Pre": 0, "Post": 1, "I": 1, "II": 2, "III": 3}
    with open(pathlib.Path(folder).parent / "gbsg2.csv") as file:
        rows = [[levels.get(value, value) for value in row.values()] for row in csv.DictReader(file)]
        rows = numpy.array(rows, dtype=float)
    # Whether an event was seen, by all but the time.
    rows = draw.permutation(rows)
    for part in numpy.split(rows, (400, 600)):
        yield part[:, 2:], part[:, 1]


def made_up():
    for patients in (260, 180, 120, 80):
        x = draw.normal(size=(patients, 12))
        yield x, (x[:, 0] + x[:, 1] ** 2 - x[:, 2] * x[:, 3] + draw.normal(size=patients) > 1).astype(float)


def breast_cancer():
    x, y = load_breast_cancer(return_X_y=True)
    order = draw.permutation(len(x))
    for part in numpy.split(order, (400, 530)):
        yield x[part], y[part].astype(float)


def nobody(forests, features):
    trees = [tree.tree_ for forest in forests for tree in forest.estimators_]
    cuts = [sorted({float(cut) for tree in trees for cut in tree.threshold[tree.feature == one]}) for one in range(features)]
    rows = numpy.zeros((NOBODY, features))
    for row in rows:
        tree, node = trees[draw.integers(len(trees))], 0
        low, high = [0] * features, [len(one) for one in cuts]
        while tree.children_left[node] >= 0:
            feature, left = tree.feature[node], tree.children_left[node]
            place = cuts[feature].index(float(tree.threshold[node]))
            if draw.random() * tree.n_node_samples[node] < tree.n_node_samples[left]:
                high[feature], node = min(high[feature], place), left
            else:
                low[feature], node = max(low[feature], place + 1), tree.children_right[node]
        for one in range(features):
            chosen = draw.integers(low[one], high[one] + 1)
            row[one] = cuts[one][chosen] if chosen < len(cuts[one]) else 1e30
    return rows


def mdav(rows, left):
    apart = lambda point: ((rows[left] - point) ** 2).sum(axis=1)
    while len(left) >= 2 * LEAST:
        ends = [left[apart(rows[left].mean(axis=0)).argmax()]]
        ends.append(left[apart(rows[ends[0]]).argmax()])
        for end in ends:
            if len(left) >= 2 * LEAST or (end == ends[0]):
                near = left[numpy.argsort(apart(rows[end]), kind="stable")[:LEAST]]
                yield near
                left = numpy.setdiff1d(left, near)
    if len(left) >= LEAST:
        yield left


def measured(sites):
    sites = list(sites)
    x, y = (numpy.concatenate(parts) for parts in zip(*sites))
    site = numpy.repeat(range(len(sites)), [len(own) for own, _ in sites])
    forests = [RandomForestClassifier(TREES, min_samples_leaf=10, random_state=place).fit(*own) for place, own in enumerate(sites)]
    leaves = lambda rows: numpy.hstack([forest.apply(rows.astype(numpy.float32)) for forest in forests])
    own, others = leaves(x), leaves(nobody(forests, x.shape[1]))
    levels = [numpy.unique(numpy.concatenate([own[:, tree], others[:, tree]])) for tree in range(own.shape[1])]
    places = lambda ends: numpy.hstack([ends[:, [tree]] == known for tree, known in enumerate(levels)]) / numpy.sqrt(own.shape[1])
    exact, others = places(own), places(others)
    apart, pairs = 2 - 2 * exact @ exact.T, numpy.triu_indices(len(x), 1)
    wanted = {groups: KMeans(groups, n_init=20, random_state=0).fit_predict(exact) for groups in GROUPS}
    kernel, start = others @ others.T, draw.random((NOBODY, max(NUMBERS))) - 0.5

    def told(numbers):
        turn = start[:, :numbers]
        for _ in range(STEPS):
            turn = numpy.linalg.qr(kernel @ turn)[0]
        factor = numpy.linalg.cholesky(turn.T @ kernel @ turn + 1e-12 * numpy.eye(numbers))
        rows = numpy.linalg.solve(factor, turn.T @ (others @ exact.T)).T
        squares = (rows**2).sum(axis=1)
        found = (squares[:, None] + squares[None] - 2 * rows @ rows.T)[pairs]
        small = [group for place in range(len(sites)) for label in numpy.unique(y) for group in mdav(rows, numpy.flatnonzero((site == place) & (y == label)))]
        means, sizes = numpy.array([rows[group].mean(axis=0) for group in small]), [len(group) for group in small]
        index = {"rows": {}, "small": {}}
        for groups in GROUPS:
            by_rows = KMeans(groups, n_init=20, random_state=0).fit(rows)
            by_small = KMeans(groups, n_init=50, random_state=0).fit(means, sample_weight=sizes)
            index["rows"][groups] = round(adjusted_rand_score(wanted[groups], by_rows.predict(rows)), 2)
            index["small"][groups] = round(adjusted_rand_score(wanted[groups], by_small.predict(rows)), 2)
        return {"correlation": round(float(numpy.corrcoef(found, apart[pairs])[0, 1]), 3), **index}

    return {numbers: told(numbers) for numbers in NUMBERS}


print(json.dumps({
    "made_by": f"numpy {numpy.__version__}, scikit-learn {sklearn.__version__}",
    "four hospitals": measured(hospitals(sys.argv[1])),
    "made up": measured(made_up()),
    "breast cancer": measured(breast_cancer()),
    "gbsg2": measured(trial(sys.argv[1])),
}, indent=1))
