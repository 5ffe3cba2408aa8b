"""What `kindred-site-agent predict` is checked against: scikit-learn's kernel ridge regression and Gaussian process of the same patients,
with the width and the penalty that leaving one out prefers, chosen here anew.

    python predict.py     (needs scikit-learn)

Writes patients.csv, new.csv and expected.json; versions.txt names what made it.
"""
import json, pathlib
from importlib.metadata import version
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import euclidean_distances

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(8)
n, m = 120, 12
x = np.round(rng.normal(size=(n + m, 4)) * [1, 5, 0.2, 30] + [0, 50, 1, 200], 3)
y = np.round(np.sin(x[:, 0]) * 3 + (x[:, 1] - 50) / 5 * (x[:, 2] - 1) / 0.2 + 0.4 * rng.normal(size=n + m), 4)
names = ["a", "b", "c", "d"]
rows = [f"p{i:03}," + ",".join(f"{v:g}" for v in x[i]) + f",{y[i]:.4f}" for i in range(n)]
(HERE / "patients.csv").write_text("patient,a,b,c,d,score\n" + "\n".join(rows) + "\n")
new = [f"n{i:02}," + ",".join(f"{v:g}" for v in x[n + i]) for i in range(m)]
(HERE / "new.csv").write_text("patient,a,b,c,d\n" + "\n".join(new) + "\n")
x = np.array([[float(f"{v:g}") for v in row] for row in x])

mean, deviation = x[:n].mean(0), x[:n].std(0)
known, query = (x[:n] - mean) / deviation, (x[n:] - mean) / deviation
target, centre = y[:n], y[:n].mean()
d = euclidean_distances(known)
median = np.sort(d[np.triu_indices(n, 1)])[n * (n - 1) // 4]
def left_out(times):
    """The least leave-one-out error under a width, and its penalty."""
    K = np.exp(-d / (times * median))
    largest = np.linalg.eigvalsh(K)[-1]
    found = []
    for step in range(-32, 13):
        lam = largest / n * 10 ** (step / 4)
        inverse = np.linalg.inv(K + lam * np.eye(n))
        found.append((np.mean((inverse @ (target - centre) / np.diag(inverse)) ** 2), lam))
    return min(found)

tried = {times: left_out(times) for times in (0.25, 0.5, 1, 2, 4)}
for _ in range(4):  # on beyond an end that is the best by more than a hundredth
    best = min(tried, key=tried.get)
    beyond = best / 2 if best == min(tried) else best * 2 if best == max(tried) else None
    if beyond and tried[best][0] < 0.99 * tried[best * best / beyond][0]:
        tried[beyond] = left_out(beyond)
(_, lam), sigma = tried[min(tried, key=tried.get)], min(tried, key=tried.get) * median
print({times: error for times, (error, _) in sorted(tried.items())})
K, cross = np.exp(-d / sigma), np.exp(-euclidean_distances(query, known) / sigma)
ridge = KernelRidge(alpha=lam, kernel="precomputed").fit(K, target - centre)
process = GaussianProcessRegressor(Matern(sigma, nu=0.5), alpha=lam, optimizer=None).fit(known, target - centre)
predicted, spread = process.predict(query, return_std=True)
scale = (target - centre) @ process.alpha_ / n
half = 1.959963984540054 * np.sqrt(scale * (spread**2 + lam))
assert np.allclose(predicted, ridge.predict(cross))
out = {"sigma": sigma, "penalty": lam, "predicted": (ridge.predict(cross) + centre).tolist(),
       "low": (predicted + centre - half).tolist(), "high": (predicted + centre + half).tolist()}
(HERE / "expected.json").write_text(json.dumps(out, indent=1) + "\n")
(HERE / "versions.txt").write_text("".join(f"{p} {version(p)}\n" for p in ("numpy", "scikit-learn")))
