"""A nested choice of C and k: neighbours under weights of a logistic regression, from scikit-learn alone.

For each fold the choice is made among patients of the other folds, by weights that were fitted without both.

Run: python nested.py > nested.json
"""

import itertools
import json
import sys

import numpy
import sklearn
from sklearn import metrics
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

FOLDS = 4
STRENGTHS = [0.003, 0.03, 1.0]
NEIGHBOURS = [3, 9]

generator = numpy.random.default_rng(20261125)
codes = (generator.random(80) < 0.4).astype(int)
x = generator.normal(size=(80, 6))
x[:, 0] += 0.8 * codes
x[:, 1] -= 0.5 * codes
fold = numpy.arange(80) % FOLDS


def weights(training, strength):
    model = LogisticRegression(C=strength).fit(x[training], codes[training])
    return numpy.abs(model.coef_[0])


def judged(training, held_out, w, k):
    model = KNeighborsClassifier(n_neighbors=k, algorithm="brute")
    model.fit(x[training] * w, codes[training])
    votes = k * model.predict_proba(x[held_out] * w)
    prior = (numpy.bincount(codes[training], minlength=2) + 1) / (training.sum() + 2)
    loss = metrics.log_loss(codes[held_out], (votes + prior) / (k + 1), normalize=False)
    right = (model.predict(x[held_out] * w) == codes[held_out]).sum()
    return int(right), float(loss)


two = [(one, other) for other in range(FOLDS) for one in range(other)]
fitted = {
    (pair, strength): weights(~numpy.isin(fold, pair), strength)
    for pair in two
    for strength in STRENGTHS
}
folds = []
for outer in range(FOLDS):
    sums = []
    for strength in STRENGTHS:
        own = []
        for k in NEIGHBOURS:
            scores = []
            for inner in set(range(FOLDS)) - {outer}:
                pair = (min(inner, outer), max(inner, outer))
                training = ~numpy.isin(fold, pair)
                scores.append(judged(training, fold == inner, fitted[pair, strength], k))
            own.append([sum(right for right, _ in scores), sum(loss for _, loss in scores)])
        sums.append(own)
    candidates = list(itertools.product(range(len(STRENGTHS)), range(len(NEIGHBOURS))))
    best = min(candidates, key=lambda at: sums[at[0]][at[1]][1])
    folds.append({"sums": sums, "chosen": [int(place) for place in best]})

json.dump(
    {
        "made_by": f"numpy {numpy.__version__}, scikit-learn {sklearn.__version__}",
        "neighbours": NEIGHBOURS,
        "patients": x.tolist(),
        "codes": codes.tolist(),
        "fold": fold.tolist(),
        "weights": [[fitted[pair, strength].tolist() for pair in two] for strength in STRENGTHS],
        "folds": folds,
    },
    sys.stdout,
)
print()
