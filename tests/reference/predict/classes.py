"""What `kindred-site-agent predict` is checked against where the outcome has three classes: scikit-learn's logistic regression in the
coordinates of the kernel, one class against the rest, shares divided by their sum; by every width and penalty of the grid, for which is
chosen goes by folds of our own.

    python classes.py     (needs scikit-learn)

Writes classes.csv, classes_new.csv and classes.json; versions.txt names what made it.
"""
import json, pathlib
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.multiclass import OneVsRestClassifier

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(21)
n, m = 150, 12
x = np.round(rng.normal(size=(n + m, 3)) * [1, 5, 0.2] + [0, 50, 1], 3)
score = np.sin(x[:, 0] * 1.5) * 2 + (x[:, 1] - 50) / 5 * (x[:, 2] - 1) / 0.2 + 0.5 * rng.normal(size=n + m)
levels = np.array(["mild", "moderate", "severe"])
grade = levels[np.digitize(score, [-0.8, 1.1])]
rows = [f"p{i:03}," + ",".join(f"{v:g}" for v in x[i]) + f",{grade[i]}" for i in range(n)]
(HERE / "classes.csv").write_text("patient,a,b,c,grade\n" + "\n".join(rows) + "\n")
new = [f"n{i:02}," + ",".join(f"{v:g}" for v in x[n + i]) for i in range(m)]
(HERE / "classes_new.csv").write_text("patient,a,b,c\n" + "\n".join(new) + "\n")
x = np.array([[float(f"{v:g}") for v in row] for row in x])

mean, deviation = x[:n].mean(0), x[:n].std(0)
known, query = (x[:n] - mean) / deviation, (x[n:] - mean) / deviation
d, cross = euclidean_distances(known), euclidean_distances(query, known)
median = np.sort(d[np.triu_indices(n, 1)])[n * (n - 1) // 4]
cells = []
for times in (0.25, 0.5, 1, 2, 4):
    sigma = times * median
    root = np.linalg.cholesky(np.exp(-d / sigma))
    placed = np.linalg.solve(root, np.exp(-cross / sigma).T).T
    for penalty in (0.03, 0.1, 0.3, 1.0, 3.0):
        one = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=100_000, solver="newton-cg")
        shares = OneVsRestClassifier(one).fit(root, grade[:n]).predict_proba(placed)
        cells.append({"sigma": sigma, "penalty": penalty, "chances": shares.round(9).tolist()})
(HERE / "classes.json").write_text(json.dumps({"levels": levels.tolist(), "cells": cells}) + "\n")
