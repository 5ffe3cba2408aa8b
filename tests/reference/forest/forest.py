"""Out-of-bag errors of scikit-learn's forests on synthetic patients: what local forests must come near.

    kindred-site-agent synthesise --sites north=260,south=180 --seed 1 --outcome class  --out DIR/class
    kindred-site-agent synthesise --sites north=260,south=180 --seed 1 --outcome number --out DIR/number
    python forest.py DIR

Means over ten seeds, with the standard deviation over seeds. Levels are one-hot, missing values stay
missing (the trees send them left or right as ours do). versions.txt names what made errors.json.
"""
import json, pathlib, sys
import numpy as np, pandas as pd, sklearn
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

HERE, data = pathlib.Path(__file__).parent, pathlib.Path(sys.argv[1])
errors = {}
for outcome, column in (("class", "class"), ("number", "score")):
    for site in ("north", "south"):
        table = pd.read_csv(data / outcome / f"{site}.csv")
        target = table.pop(column)
        features = pd.get_dummies(table.drop(columns="patient"), columns=["grade"], dtype=float)
        found = []
        for seed in range(10):
            common = dict(n_estimators=500, oob_score=True, random_state=seed, n_jobs=2)
            if outcome == "class":
                forest = RandomForestClassifier(max_features="sqrt", **common).fit(features, target)
                found.append(1 - forest.oob_score_)
            else:
                third = max(1, (table.shape[1] - 1) // 3)
                forest = RandomForestRegressor(max_features=third, min_samples_leaf=5, **common)
                forest.fit(features, target)
                found.append(float(np.mean((forest.oob_prediction_ - target) ** 2)))
        errors[f"{outcome}/{site}"] = {"mean": float(np.mean(found)), "deviation": float(np.std(found))}
(HERE / "errors.json").write_text(json.dumps(errors, indent=1) + "\n")
(HERE / "versions.txt").write_text(
    f"python {sys.version.split()[0]}\nscikit-learn {sklearn.__version__}\npandas {pd.__version__}\nnumpy {np.__version__}\n")
