"""How near the clusters that sites have in common are to clusters of the pooled rows: adjusted Rand index.

    python measure.py HOME > heart_disease.json

HOME is a federation of one machine: a coordinator, an agent for each site with its folder below sites/, and what an operator got: `job submit
--wait --out learned` of deploy/jobs/heart-disease.toml on the four hospitals (class_patients_min = 6) or of deploy/jobs/demo.toml on
`synthesise --sites north=260,south=180,east=120,west=80 --seed 1`, then `job cluster --least K --most K --out kK` for K from 2 to 6. Read are
learned/metric.npy, below sites/<site>/runs/ the run that learned (matrix.npy, the standardised patients), and the runs that looked for groups
(clusters.csv, of which group each patient is).
"""
import csv, json, pathlib, sys
from importlib.metadata import version

import kmedoids
import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

home = pathlib.Path(sys.argv[1])
learned = json.loads((home / "learned/result.json").read_text())
metric = np.load(home / "learned/metric.npy")
sites = [site["name"] for site in learned["sites"]]
rows = [np.load(home / f"sites/{site}/runs/{learned['run']}/matrix.npy") @ metric for site in sites]
pooled = np.concatenate(rows)
found = []
for folder in sorted(home.glob("k[0-9]")):
    run = json.loads((folder / "clusters.json").read_text())
    groups = len(run["groups"])
    if not groups:
        continue
    ours = []
    for site in sites:
        with open(home / f"sites/{site}/runs/{run['run']}/clusters.csv") as table:
            ours += [int(row["group"]) for row in csv.DictReader(table)]
    ours = np.array(ours)
    assert len(ours) == len(pooled)
    rows_alone = KMeans(groups, n_init=100, random_state=0).fit(pooled)
    centres = np.array(run["centres"])
    nearest = cdist(pooled, centres, "sqeuclidean")
    medoids = kmedoids.fasterpam(cdist(pooled, pooled), groups, random_state=0, n_cpu=1)
    for start in range(1, 20):
        other = kmedoids.fasterpam(cdist(pooled, pooled), groups, random_state=start, n_cpu=1)
        medoids = other if other.loss < medoids.loss else medoids
    found.append({
        "groups": groups,
        "patients": len(pooled),
        "k-means of the pooled rows": round(adjusted_rand_score(rows_alone.labels_, ours), 3),
        "FasterPAM of the pooled rows": round(adjusted_rand_score(medoids.labels, ours), 3),
        "k-means and FasterPAM of the pooled rows": round(adjusted_rand_score(rows_alone.labels_, medoids.labels), 3),
        "inertia beside that of k-means": round(float(nearest.min(axis=1).sum() / rows_alone.inertia_), 4),
    })
print(json.dumps({
    "coordinates": pooled.shape[1],
    "found": found,
    "versions": {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "kmedoids")},
}, indent=1))
