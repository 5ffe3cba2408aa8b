"""What kernel learners are checked against: scikit-learn, Clarabel (an interior-point solver of quadratic programs) and
scikit-survival.

    python kernel.py     (needs scikit-learn, clarabel, scikit-survival, scipy)

Writes kernel.json; versions.txt names what made it.
"""
import json, pathlib, sys
from importlib.metadata import version
import clarabel, numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVR
from sksurv.metrics import concordance_index_censored

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(3)
n, m = 60, 15
x = np.round(rng.normal(size=(n + m, 4)), 3)
y = np.round(np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.2 * rng.normal(size=n + m), 4)
train, test = slice(0, n), slice(n, None)
laplace = lambda a, b: np.exp(-cdist(a, b) / 2.0)  # the norm L2, sigma 2
K, cross = laplace(x[train], x[train]), laplace(x[test], x[train])
out = {"x": x.tolist(), "y": y.tolist(), "train": n, "sigma": 2.0}

out["ridge"] = []
for lam in (1e-3, 0.1, 5.0):
    centre = y[train].mean()
    fit = KernelRidge(alpha=lam, kernel="precomputed").fit(K, y[train] - centre)
    left = []
    for i in range(n):
        keep = np.arange(n) != i
        one = KernelRidge(alpha=lam, kernel="precomputed").fit(K[np.ix_(keep, keep)], y[train][keep] - centre)
        left.append(float(one.predict(K[i : i + 1, keep])[0] + centre))
    out["ridge"].append({"lambda": lam, "predicted": (fit.predict(cross) + centre).tolist(), "left_out": left})
out["paper"] = KernelRidge(alpha=0, kernel="precomputed").fit(K, y[train]).predict(cross).tolist()

positive = y[train] > 0.2
root = np.linalg.cholesky(K + 1e-12 * np.eye(n))
fit = LogisticRegression(C=1 / 0.7, tol=1e-12, max_iter=100000, solver="newton-cg").fit(root, positive)
out["logistic"] = {"lambda": 0.7, "positive": positive.tolist(),
                   "chance": fit.predict_proba(np.linalg.solve(root, cross.T).T)[:, 1].tolist()}

# A process of known scale 1: the deviations are scikit-learn's times the root of ours.
rbf = RBF(1.7)
fit = GaussianProcessRegressor(rbf, alpha=0.1, optimizer=None).fit(x[train], y[train] - y[train].mean())
mean, deviation = fit.predict(x[test], return_std=True)
out["gaussian"] = {"length": 1.7, "noise": 0.1, "mean": (mean + y[train].mean()).tolist(), "deviation": deviation.tolist(),
                   "log_likelihood": float(fit.log_marginal_likelihood_value_)}

time = np.round(1 + rng.exponential(2 + np.exp(x[train, 0])), 2)
out["time"] = time.tolist()
fit = SVR(kernel="precomputed", C=0.8, epsilon=0.0, tol=1e-10, max_iter=-1).fit(K, time)
out["uncensored"] = {"C": 0.8, "predicted": fit.predict(cross).tolist()}
out["survival"] = []
for share, C in ((0.3, 0.5), (0.6, 3.0)):
    event = rng.random(n) > share
    # The full primal: w in the span, with slacks. min 1/2 a'Ka + C 1's, s >= Y - Ka - c; of events also s >= Ka + c - Y.
    P = sparse.block_diag([sparse.csc_matrix((K + K.T) / 2), sparse.csc_matrix((1 + n, 1 + n))], format="csc")
    q = np.r_[np.zeros(n + 1), np.full(n, C)]
    early = np.hstack([K, np.ones((n, 1)), np.eye(n)])
    late = np.hstack([-K, -np.ones((n, 1)), np.eye(n)])[event]
    slack = np.hstack([np.zeros((n, n + 1)), np.eye(n)])
    A = sparse.csc_matrix(np.vstack([early, late, slack]))
    lower = np.r_[time, -time[event], np.zeros(n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solved = clarabel.DefaultSolver(sparse.triu(P, format="csc"), q, -A, -lower, [clarabel.NonnegativeConeT(lower.size)], settings).solve()
    assert str(solved.status) == "Solved", solved.status
    x_hat = np.array(solved.x)
    predicted = cross @ x_hat[:n] + x_hat[n]
    own = K @ x_hat[:n] + x_hat[n]
    out["survival"].append({"C": C, "event": event.tolist(), "cost": solved.obj_val, "predicted": predicted.tolist(),
                            "concordance": float(concordance_index_censored(event, time, -own)[0])})

rows = [3, 11, 24, 30, 41, 55]
small = laplace(x[train], x[train][rows])
root = small @ np.linalg.pinv(K[np.ix_(rows, rows)]) @ small.T
out["landmarks"] = {"rows": rows, "kernel": root.tolist()}
(HERE / "kernel.json").write_text(json.dumps(out) + "\n")
names = ("scikit-learn", "clarabel", "scikit-survival", "scipy", "numpy")
(HERE / "versions.txt").write_text("".join([f"python {sys.version.split()[0]}\n"] + [f"{name} {version(name)}\n" for name in names]))
