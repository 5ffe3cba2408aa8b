"""MDAV by the paper (Domingo-Ferrer and Torra 2005, MDAV-generic), in NumPy, and exact intervals by SciPy.

    python microaggregation.py        (from this folder)
"""
import json, pathlib, platform
import numpy, scipy
from scipy.stats import chi2, t

HERE = pathlib.Path(__file__).parent


def mdav(x, k):
    left, groups = list(range(len(x))), []
    square = lambda rows, point: ((x[rows] - point) ** 2).sum(axis=1)

    def take(point):
        nonlocal left
        order = numpy.argsort(square(left, point), kind="stable")[:k]
        chosen = sorted(left[i] for i in order)
        left = [row for row in left if row not in set(chosen)]
        groups.append(chosen)

    while len(left) >= 3 * k:
        r = x[left[int(numpy.argmax(square(left, x[left].mean(axis=0))))]]
        take(r)
        take(x[left[int(numpy.argmax(square(left, r)))]])
    if len(left) >= 2 * k:
        take(x[left[int(numpy.argmax(square(left, x[left].mean(axis=0))))]])
    if len(left) >= k:
        groups.append(left)
    return groups


draw = numpy.random.default_rng(8)
cases = []
for patients, columns, k in ((120, 3, 10), (97, 5, 10), (64, 2, 7), (23, 4, 10), (19, 1, 10), (9, 2, 10)):
    x = draw.normal(size=(patients, columns)).round(6)
    cases.append({"size": k, "vectors": x.tolist(), "groups": mdav(x, k)})
(HERE / "microaggregation.json").write_text(json.dumps({"cases": cases}) + "\n")
