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
rates = [{"events": e, "time": time, "low": chi2.ppf(0.025, 2 * e) / 2 / time if e else 0.0,
          "high": chi2.ppf(0.975, 2 * e + 2) / 2 / time} for e, time in ((0, 100.0), (1, 50.0), (31, 4200.5), (214, 690.0))]
values = draw.normal(50, 8, size=30).round(3)
half = t.ppf(0.975, 29) * values.std(ddof=1) / 30 ** 0.5
mean = {"n": 30, "sum": float(values.sum()), "squares": float((values ** 2).sum()),
        "mean": float(values.mean()), "low": float(values.mean() - half), "high": float(values.mean() + half)}
(HERE / "microaggregation.json").write_text(json.dumps({"cases": cases, "rates": rates, "mean": mean}) + "\n")
(HERE / "versions.txt").write_text(f"python {platform.python_version()}\nnumpy {numpy.__version__}\nscipy {scipy.__version__}\n")
