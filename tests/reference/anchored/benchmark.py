"""Distances weighed by a regression on held-out patients, and its ridge: AUC or concordance, and log loss.

Four times five folds, pooled patients. Needs numpy, scipy, scikit-learn, lifelines; DIR is the folder of public data and SURVIVAL one with mgus2.csv
and pbc.csv of R's survival package (write.csv). Usage: benchmark.py DIR SURVIVAL OUT.json [set ...]
"""

import csv
import gzip
import json
import sys
import warnings

import numpy as np
from scipy.optimize import minimize_scalar

warnings.filterwarnings("ignore")
DIR, SURVIVAL, OUT = sys.argv[1:4]
WEIGHTS = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 1e9]
NEIGHBOURS = [15, 51]
REPEATS, FOLDS = 4, 5


# --- patients -------------------------------------------------------------------------------------------------------------------


def rows(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as file:
        return list(csv.DictReader(file))


def number(text):
    return float(text) if text not in ("", "NA") else np.nan


def columns(table, numbers, categories):
    """Numbers as they are, a column for each level but the first; means stand in for missing values."""
    made = []
    for name in numbers:
        made.append([number(row[name]) for row in table])
    for name in categories:
        levels = sorted({row[name] for row in table if row[name] not in ("", "NA")})
        for level in levels[1:]:
            made.append([np.nan if row[name] in ("", "NA") else float(row[name] == level) for row in table])
    x = np.array(made, dtype=float).T
    means = np.nanmean(x, axis=0)
    return np.where(np.isnan(x), means, x)


def heart(names):
    table = [row for name in names for row in rows(f"{DIR}/heart_disease/{name}.csv")]
    for row in table:
        for name in ("chol", "trestbps"):
            row[name] = "" if number(row[name]) == 0 else row[name]
    x = columns(table, ["age", "trestbps", "chol", "thalach", "oldpeak"], ["sex", "cp", "fbs", "restecg", "exang"])
    return "logistic", x, np.array([float(number(row["num"]) > 0) for row in table]), None


def gbsg2():
    table = rows(f"{DIR}/gbsg2.csv")
    x = columns(table, ["age", "tsize", "pnodes", "progrec", "estrec"], ["horTh", "menostat", "tgrade"])
    y = np.array([[number(row["time"]), number(row["cens"])] for row in table])
    return "cox", x, y, None


def mgus2():
    table = rows(f"{SURVIVAL}/mgus2.csv")
    x = columns(table, ["age", "hgb", "creat", "mspike"], ["sex"])
    return "cox", x, np.array([[max(number(row["ptime"]), 0.5), number(row["pstat"])] for row in table]), None


PBC = ["age", "bili", "chol", "albumin", "copper", "alk.phos", "ast", "trig", "platelet", "protime"]


def pbc():
    table = rows(f"{SURVIVAL}/pbc.csv")
    x = columns(table, PBC, ["sex", "ascites", "hepato", "spiders", "edema", "stage"])
    return "cox", x, np.array([[number(row["time"]), float(row["status"] == "2")] for row in table]), None


def pbc_year():
    """Dead within a year; who was followed for less is left out."""
    table = [row for row in rows(f"{SURVIVAL}/pbc.csv") if row["status"] == "2" or number(row["time"]) > 365]
    x = columns(table, PBC, ["sex", "ascites", "hepato", "spiders", "edema", "stage"])
    y = np.array([float(row["status"] == "2" and number(row["time"]) <= 365) for row in table])
    return "logistic", x, y, None


def parkinsons():
    table = rows(f"{DIR}/parkinsons.csv")
    names = [name for name in table[0] if name not in ("name", "status")]
    groups = np.array([row["name"].split("_")[2] for row in table])
    return "logistic", columns(table, names, []), np.array([number(row["status"]) for row in table]), groups


def iris(pair):
    table = rows(f"{DIR}/iris.csv")
    name = [one for one in table[0] if one.lower() in ("species", "class", "target")][0]
    species = sorted({row[name] for row in table})
    kept = [row for row in table if row[name] in (species[pair[0]], species[pair[1]])]
    numbers = [one for one in table[0] if one != name]
    return "logistic", columns(kept, numbers, []), np.array([float(row[name] == species[pair[1]]) for row in kept]), None


def houses():
    table = rows(f"{DIR}/california_housing.csv.gz")
    chosen = np.random.default_rng(1).choice(len(table), 2000, replace=False)
    table = [table[i] for i in chosen]
    target = [one for one in table[0] if "value" in one.lower() or one.lower() in ("target", "medhouseval")][0]
    numbers = [one for one in table[0] if one not in (target, "ocean_proximity")]
    return "linear", columns(table, numbers, ["ocean_proximity"]), np.log([number(row[target]) for row in table]), None


def of_sklearn(name):
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    family = "linear" if name == "diabetes" else "logistic"
    return family, np.asarray(found.data, dtype=float), np.asarray(found.target, dtype=float), None


def few():
    """Synthetic: 600 patients, 20 features of which 6 count, 5 % events."""
    rng = np.random.default_rng(29)
    x = rng.normal(size=(600, 20))
    eta = x[:, :6] @ np.array([0.9, -0.7, 0.5, 0.5, -0.3, 0.3])
    y = (rng.random(600) < 1 / (1 + np.exp(-(eta - 3.7)))).astype(float)
    return "logistic", x, y, None


SETS = {
    "four heart hospitals": lambda: heart(["cleveland", "hungarian", "switzerland", "va"]),
    "Cleveland": lambda: heart(["cleveland"]),
    "Hungary": lambda: heart(["hungarian"]),
    "VA": lambda: heart(["va"]),
    "GBSG2": gbsg2,
    "breast cancer (collinear)": lambda: of_sklearn("breast_cancer"),
    "Parkinson's, by subject (collinear)": parkinsons,
    "iris, two species": lambda: iris((1, 2)),
    "iris, separable": lambda: iris((0, 1)),
    "diabetes (number)": lambda: of_sklearn("diabetes"),
    "houses (number)": houses,
    "PBC": pbc,
    "PBC, dead within a year (few events)": pbc_year,
    "MGUS, progression (few events)": mgus2,
    "synthetic (few events)": few,
}


# --- regressions ----------------------------------------------------------------------------------------------------------------


def sums(family, x, y, b):
    """Log-likelihood, gradient, information; x has ones first but for Cox, which is Breslow's."""
    if family == "linear":
        r = y - x @ b
        return -0.5 * r @ r, x.T @ r, x.T @ x
    eta = x @ b
    if family == "logistic":
        p = 1 / (1 + np.exp(-np.clip(eta, -500, 500)))
        value = np.sum(y * eta - np.logaddexp(0, eta))
        return value, x.T @ (y - p), (x * (p * (1 - p))[:, None]).T @ x
    time, event = y[:, 0], y[:, 1]
    order = np.argsort(-time, kind="stable")
    x, eta, time, event = x[order], eta[order], time[order], event[order]
    shift = eta.max()
    w = np.exp(eta - shift)
    last = np.searchsorted(-time, -time, side="right") - 1
    s0 = np.cumsum(w)[last]
    s1 = np.cumsum(w[:, None] * x, axis=0)[last]
    s2 = np.cumsum(w[:, None, None] * x[:, :, None] * x[:, None, :], axis=0)
    e = event > 0
    mean = s1[e] / s0[e, None]
    value = np.sum(eta[e] - shift - np.log(s0[e]))
    h = np.sum(s2[last[e]] / s0[e, None, None], axis=0) - mean.T @ mean
    return value, np.sum(x[e] - mean, axis=0), h


def newton(family, x, y, penalty, choose=None, steps=60):
    """Newton's method; `choose` gives another penalty at each of the first six evaluations, as the product does."""
    b = np.zeros(x.shape[1])
    value, g, h = sums(family, x, y, b)
    for step in range(steps):
        if choose is not None and step < 6:
            penalty = choose(b, value, g, h)
        move = np.linalg.lstsq(h + np.diag(penalty), g - penalty * b, rcond=None)[0]
        before = value - 0.5 * penalty @ b**2
        for _ in range(30):
            found = sums(family, x, y, b + move)
            if found[0] - 0.5 * penalty @ (b + move) ** 2 >= before - 1e-9 * abs(before):
                break
            move /= 2
        b = b + move
        value, g, h = found
        if np.max(np.abs(move)) < 1e-8 or np.max(np.abs(x @ b)) > 30 and choose is None and penalty.max() == 0:
            break
    return b, penalty, (value, g, h)


def restricted(family, n, unit, b, value, g, h):
    """-2 log restricted likelihood of the quadratic at b, by log ridge."""
    p, q = np.sum(unit > 0), np.sum(unit == 0)

    def of(log_ridge):
        ridge = np.exp(log_ridge)
        a = h + ridge * np.diag(unit)
        sign, determinant = np.linalg.slogdet(a)
        c = np.linalg.solve(a, h @ b + g)
        d = c - b
        twice = ridge * unit @ c**2 - 2 * (value + g @ d - 0.5 * d @ h @ d)
        misfit = (n - q) * np.log(twice) if family == "linear" else twice
        return misfit + determinant - p * log_ridge

    return of


def chosen(family, x, y, unit):
    n = x.shape[0]

    def choose(b, value, g, h):
        of = restricted(family, n, unit, b, value, g, h)
        centre = np.log(np.trace(h[unit > 0][:, unit > 0]) / unit.sum())
        grid = centre + np.log(2) * np.arange(-20, 11)
        best = grid[np.argmin([of(one) for one in grid])]
        found = minimize_scalar(of, bounds=(best - np.log(2), best + np.log(2)), method="bounded")
        return np.exp(found.x) * unit

    b, penalty, _ = newton(family, x, y, unit, choose)
    return b, penalty[unit > 0][0]


def crossed(family, x, y, seed):
    """Ridges 1e-3 to 1e4 by five folds: scikit-learn's, and lifelines' for Cox."""
    if family == "linear":
        from sklearn.linear_model import RidgeCV

        made = RidgeCV(alphas=np.logspace(-3, 4, 29), cv=5, scoring="neg_mean_squared_error").fit(x[:, 1:], y)
        return np.r_[made.intercept_, made.coef_], made.alpha_
    if family == "logistic":
        from sklearn.linear_model import LogisticRegressionCV
        from sklearn.model_selection import StratifiedKFold

        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        made = LogisticRegressionCV(Cs=np.logspace(-4, 3, 29), cv=folds, scoring="neg_log_loss", max_iter=2000)
        made.fit(x[:, 1:], y)
        return np.r_[made.intercept_, made.coef_[0]], 1 / made.C_[0]
    import pandas
    from lifelines import CoxPHFitter
    from lifelines.utils import k_fold_cross_validation

    frame = pandas.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])])
    frame["time"], frame["event"] = y[:, 0], y[:, 1]
    ridges = np.logspace(-1, 3, 9)
    makers = [CoxPHFitter(penalizer=ridge / len(frame)) for ridge in ridges]
    np.random.seed(seed)
    scores = [
        np.mean(k_fold_cross_validation(one, frame, "time", "event", k=5, scoring_method="log_likelihood", seed=seed)) for one in makers
    ]
    best = int(np.argmax(scores))
    return makers[best].fit(frame, "time", "event").params_.to_numpy(), ridges[best]


# --- judging --------------------------------------------------------------------------------------------------------------------


def concordance(family, score, y):
    """Pairs in order: of classes the AUC, of a survival time Harrell's."""
    if family == "cox":
        time, event = y[:, 0], y[:, 1]
        before = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    else:
        before = y[:, None] > y[None, :]
    higher = (score[:, None] > score[None, :]) + 0.5 * (score[:, None] == score[None, :])
    return np.sum(before * higher), np.sum(before)


def by_neighbours(family, d, y, k):
    near = np.argpartition(d, k, axis=1)[:, :k]
    if family != "cox":
        return y[near].mean(axis=1)
    scores = []
    for one in near:
        time, event = y[one, 0], y[one, 1]
        order = np.argsort(time, kind="stable")
        scores.append(np.sum(event[order] / np.arange(len(one), 0, -1)))
    return np.array(scores)


def manhattan(a, b):
    return np.sum(np.abs(a[:, None, :] - b[None, :, :]), axis=2)


def held_out_loss(family, x, y, b):
    """Mean log loss, squared error, or minus the partial likelihood an event."""
    if family == "linear":
        return np.mean((y - x @ b) ** 2)
    if family == "logistic":
        eta = x @ b
        return np.mean(np.logaddexp(0, eta) - y * eta)
    return -sums(family, x, y, b)[0] / max(1.0, y[:, 1].sum())


def forests(x, y, family, train, test):
    """The share of terminal nodes in common, and what the forest predicts."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if family == "logistic" else RandomForestRegressor
    made = kind(300, min_samples_leaf=5, max_features="sqrt", random_state=1, oob_score=True, n_jobs=1).fit(x[train], y[train])
    nodes, new = made.apply(x[train]), made.apply(x[test])
    shared = np.mean(new[:, None, :] == nodes[None, :, :], axis=2)
    own = made.oob_decision_function_[:, 1] if family == "logistic" else made.oob_prediction_
    risk = made.predict_proba(x[test])[:, 1] if family == "logistic" else made.predict(x[test])
    logit = lambda p: np.log(np.clip(p, 0.002, 0.998) / np.clip(1 - p, 0.002, 0.998))
    if family == "logistic":
        own, risk = logit(np.nan_to_num(own, nan=y[train].mean())), logit(risk)
    return np.sqrt(1 - shared), np.abs(risk[:, None] - own[None, :]) / np.std(own), risk


def folds_of(n, groups, y, family, seed):
    rng = np.random.default_rng(seed)
    if groups is not None:
        names = rng.permutation(np.unique(groups))
        place = {name: i % FOLDS for i, name in enumerate(names)}
        return np.array([place[one] for one in groups])
    fold = np.empty(n, dtype=int)
    strata = y if family == "logistic" else (y[:, 1] if family == "cox" else np.zeros(n))
    for stratum in np.unique(strata):
        own = rng.permutation(np.where(strata == stratum)[0])
        fold[own] = np.arange(len(own)) % FOLDS
    return fold


def parted(family, x, y, groups, repeats=REPEATS):
    """Of each fold of each repeat: the repeat, training and held-out patients, all standardised by the training patients, and
    the regression's design with what its penalty counts of each coefficient."""
    n = x.shape[0]
    for repeat in range(repeats):
        fold = folds_of(n, groups, y, family, 100 + repeat)
        for one in range(FOLDS):
            train, test = np.where(fold != one)[0], np.where(fold == one)[0]
            mean, scale = x[train].mean(axis=0), x[train].std(axis=0)
            kept = scale > 1e-12
            z = (x[:, kept] - mean[kept]) / scale[kept]
            design = z if family == "cox" else np.c_[np.ones(n), z]
            unit = np.ones(design.shape[1])
            if family != "cox":
                unit[0] = 0
            yield repeat, train, test, z, design, unit


def run(name):
    family, x, y, groups = SETS[name]()
    n = x.shape[0]
    pairs, losses, ridges = {}, {}, {}

    def add(key, found):
        so_far = pairs.setdefault(key, [0.0, 0.0])
        so_far[0] += found[0]
        so_far[1] += found[1]

    for repeat, train, test, z, design, unit in parted(family, x, y, groups):
        fits = {"plain": newton(family, design[train], y[train], 0 * unit)[0]}
        fits["chosen"], ridge = chosen(family, design[train], y[train], unit)
        fits["crossed"], other = crossed(family, design[train], y[train], repeat)
        ridges.setdefault("chosen", []).append(ridge)
        ridges.setdefault("crossed", []).append(other)
        ks = [k for k in NEIGHBOURS if k < len(train)]
        euclid = np.sqrt(np.maximum(0, np.sum((z[test][:, None, :] - z[train][None, :, :]) ** 2, axis=2)))
        for k in ks:
            add(f"Euclid {k}", concordance(family, by_neighbours(family, euclid, y[train], k), y[test]))
        for how, b in fits.items():
            losses.setdefault(how, []).append(held_out_loss(family, design[test], y[test], b))
            add(f"model {how}", concordance(family, design[test] @ b, y[test]))
            own = b if family == "cox" else b[1:]
            parts = manhattan(z[test] * own, z[train] * own)
            eta = np.abs((z[test] @ own)[:, None] - (z[train] @ own)[None, :])
            for k in ks:
                add(f"weighted {how} {k}", concordance(family, by_neighbours(family, parts, y[train], k), y[test]))
                for a in WEIGHTS:
                    d = parts if a > 1e6 else eta + a * parts
                    add(f"anchored {how} {a:g} {k}", concordance(family, by_neighbours(family, d, y[train], k), y[test]))
        if family != "cox" and "--forests" in sys.argv:
            proximity, risk, predicted = forests(x, y, family, train, test)
            add("model forest", concordance(family, predicted, y[test]))
            for k in ks:
                for w in [0.0, 0.05, 0.1, 0.2, 0.5]:
                    d = proximity + w * risk
                    add(f"forest {w:g} {k}", concordance(family, by_neighbours(family, d, y[train], k), y[test]))
    return {
        "family": family,
        "patients": n,
        "columns": int(x.shape[1]),
        "events": None if family == "linear" else int(y[:, 1].sum() if family == "cox" else y.sum()),
        "concordance": {key: value[0] / value[1] for key, value in pairs.items()},
        "loss": {key: float(np.mean(value)) for key, value in losses.items()},
        "ridge": {key: [float(np.min(value)), float(np.median(value)), float(np.max(value))] for key, value in ridges.items()},
    }


def main():
    named = [name for name in sys.argv[4:] if not name.startswith("--")] or list(SETS)
    found = {}
    for name in named:
        found[name] = run(name)
        c = found[name]["concordance"]
        kept = {key: round(value, 4) for key, value in c.items()}
        print(name, json.dumps({**found[name], "concordance": kept}), flush=True)
        with open(OUT, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
