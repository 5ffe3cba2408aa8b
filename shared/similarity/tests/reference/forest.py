"""Expected numbers for the forest tests: scikit-learn, scikit-survival, lifelines, NumPy, and R's survival and ranger.

Run: python forest.py > forest.json   (Rscript with survival, ranger and jsonlite must be on the path)
"""

import json
import subprocess
import sys
import tempfile

import lifelines
import numpy as np
import sklearn
import sksurv
from lifelines.statistics import logrank_test
from lifelines.utils import concordance_index
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sksurv.tree import SurvivalTree
from sksurv.util import Surv

R_SURVIVAL = """
library(survival); library(ranger); library(jsonlite)
d <- fromJSON("FILE")
x <- as.data.frame(d$x); names(x) <- paste0("x", seq_along(x) - 1)
x$time <- d$fine_time; x$event <- as.integer(d$event)
groups <- as.data.frame(d$groups)
chisq <- sapply(groups, function(g) survdiff(Surv(d$time, event) ~ g, data = x)$chisq)
c_error <- sapply(1:20, function(s) ranger(Surv(time, event) ~ ., data = x, num.trees = 500, mtry = 2,
    min.node.size = 1, seed = s, num.threads = 2)$prediction.error)
cat(toJSON(list(chisq = unname(chisq), error = c_error, ranger = as.character(packageVersion("ranger")),
    survival = as.character(packageVersion("survival"))), digits = 15, auto_unbox = TRUE))
"""


def canonical(leaves):
    """Terminal nodes numbered by first appearance."""
    seen = {}
    return [seen.setdefault(int(leaf), len(seen)) for leaf in leaves]


def friedman(rng, n, p):
    x = np.round(rng.random((n, p)), 5).astype(np.float32).astype(float)
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, np.round(y + rng.normal(size=n), 6)


def trees(rng):
    x, y = friedman(rng, 150, 5)
    cases = []
    for leaf in (1, 7):
        tree = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0).fit(x, y)
        cases.append({"leaf": leaf, "nodes": canonical(tree.apply(x)), "predicted": tree.predict(x).tolist()})
    classes = []
    for count in (2, 4):
        # scikit-learn breaks ties between splits at random: draw until no two partitions differ.
        while True:
            score = x[:, 3] * 2 + x[:, 4] + 0.15 * rng.normal(size=150)
            label = np.searchsorted(np.quantile(score, np.arange(1, count) / count), score)
            fits = [DecisionTreeClassifier(max_depth=3, min_samples_leaf=9, random_state=s).fit(x, label)
                    for s in range(20)]
            if len({tuple(canonical(tree.apply(x))) for tree in fits}) == 1:
                break
        tree = fits[0]
        classes.append({"classes": count, "label": label.tolist(), "nodes": canonical(tree.apply(x)),
                        "predicted": tree.predict_proba(x).tolist()})
    return {"x": x.T.tolist(), "y": y.tolist(), "regression": cases, "classification": classes}


def out_of_bag(rng):
    x, y = friedman(rng, 300, 8)
    mse, wrong = [], []
    iris = load_iris()
    for seed in range(20):
        forest = RandomForestRegressor(500, max_features=2, oob_score=True, random_state=seed, n_jobs=2).fit(x, y)
        mse.append(float(np.mean((forest.oob_prediction_ - y) ** 2)))
        forest = RandomForestClassifier(500, max_features=2, oob_score=True, random_state=seed, n_jobs=2)
        wrong.append(1 - forest.fit(iris.data, iris.target).oob_score_)
    return {"x": x.T.tolist(), "y": y.tolist(), "mse": mse, "iris": iris.data.T.tolist(),
            "iris_class": iris.target.tolist(), "iris_error": wrong}


def survival(rng):
    n = 250
    x = np.round(rng.normal(size=(n, 5)), 4).astype(np.float32).astype(float)
    hazard = np.exp(0.9 * x[:, 0] - 0.6 * np.abs(x[:, 1]))
    event_time = rng.exponential(1 / hazard)
    censor = rng.exponential(2.0, n)
    # Tied times for the statistics; nearly untied ones for ranger, whose concordance counts an event and a
    # censoring at one time as discordant.
    fine_time = np.round(np.minimum(event_time, censor) * 20, 6)
    time = np.ceil(fine_time)
    event = event_time <= censor
    groups = [(x[:, 0] > 0.1).astype(int), (x[:, 3] > -0.7).astype(int), (x[:, 1] > 1.2).astype(int)]
    found = [logrank_test(time[g == 1], time[g == 0], event[g == 1], event[g == 0]).test_statistic for g in groups]
    fitter = lifelines.NelsonAalenFitter(nelson_aalen_smoothing=False).fit(time, event)
    times = np.unique(time[event])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"x": x.T.tolist(), "time": time.tolist(), "fine_time": fine_time.tolist(),
                   "event": event.tolist(), "groups": [g.tolist() for g in groups]}, file)
        file.flush()
        script = R_SURVIVAL.replace("FILE", file.name)
        script = script.replace("as.data.frame(d$x)", "as.data.frame(t(d$x))")
        script = script.replace("as.data.frame(d$groups)", "as.data.frame(t(d$groups))")
        answer = subprocess.run(["Rscript", "-e", script], check=True, capture_output=True, text=True).stdout
    r = json.loads(answer)
    part = SurvivalTree(max_depth=3, min_samples_leaf=15, random_state=0)
    part.fit(x, Surv.from_arrays(event, fine_time))
    return {"x": x.T.tolist(), "time": time.tolist(), "event": event.tolist(), "fine_time": fine_time.tolist(),
            "nodes": canonical(part.apply(x.astype(np.float32))), "groups": [g.tolist() for g in groups],
            "log_rank_lifelines": found, "log_rank_r": r["chisq"], "ranger_error": r["error"],
            "ranger": r["ranger"], "r_survival": r["survival"], "times": times.tolist(),
            "hazard": fitter.cumulative_hazard_at_times(times).tolist(),
            "risk_concordance": concordance_index(time, -x[:, 0], event)}


def proximities():
    wine = load_wine()
    forest = RandomForestClassifier(40, min_samples_leaf=8, random_state=0).fit(wine.data, wine.target)
    leaves = forest.apply(wine.data)
    p = (leaves[:, None, :] == leaves[None, :, :]).mean(axis=2)
    n = len(p)
    centring = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-centring @ (1 - p) @ centring / 2)
    coordinates = vectors[:, ::-1][:, :2] * np.sqrt(values[::-1][:2])
    for column in range(2):
        if coordinates[np.argmax(np.abs(coordinates[:, column])), column] < 0:
            coordinates[:, column] *= -1
    outlier = np.zeros(n)
    for label in range(3):
        members = np.flatnonzero(wine.target == label)
        raw = n / (p[np.ix_(members, members)] ** 2).sum(axis=1)
        centre = np.median(raw)
        outlier[members] = (raw - centre) / np.median(np.abs(raw - centre))
    sums = np.stack([p[:, wine.target == label].sum(axis=1) for label in range(3)], axis=1)
    return {"leaves": leaves.tolist(), "classes": wine.target.tolist(), "proximity_row": p[60].tolist(),
            "eigenvalues": values[::-1][:2].tolist(), "coordinates": coordinates.tolist(),
            "outlier": outlier.tolist(), "sums": sums.tolist()}


rng = np.random.default_rng(20)
json.dump({"versions": {"python": sys.version.split()[0], "numpy": np.__version__, "sklearn": sklearn.__version__,
                        "lifelines": lifelines.__version__, "scikit-survival": sksurv.__version__},
           "trees": trees(rng), "out_of_bag": out_of_bag(rng), "survival": survival(rng),
           "proximities": proximities()}, sys.stdout, allow_nan=False)
