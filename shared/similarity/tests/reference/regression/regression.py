"""Regressions of patients.csv by statsmodels, and with a ridge by scikit-learn too: what ours must equal.

    python regression.py

others-versions.txt names what made others.json. The ridge is 25 per squared coefficient and standard deviation, halved.
"""
import json, pathlib, sys
import numpy as np, pandas as pd, sklearn, statsmodels, statsmodels.api as sm
from sklearn.linear_model import LogisticRegression, Ridge
from statsmodels.duration.hazard_regression import PHReg

HERE = pathlib.Path(__file__).parent
table = pd.read_csv(HERE / "patients.csv")
x = pd.DataFrame({"age": table.age, "marker": table.marker, "ratio": table.ratio, "severe": table.group == "severe",
                  "odd": table.group == "odd", "yes": table.treated == "yes"}).astype(float)


def told(fit, log_likelihood, parameters):
    return {"coefficients": list(map(float, fit.params)), "standard_errors": list(map(float, fit.bse)),
            "log_likelihood": float(log_likelihood), "aic": float(2 * parameters - 2 * log_likelihood)}


linear = sm.OLS(table.score, sm.add_constant(x)).fit()
logistic = sm.GLM(table.ill, sm.add_constant(x), family=sm.families.Binomial()).fit(tol=1e-15, maxiter=200)
out = {"linear": told(linear, linear.llf, 8), "logistic": told(logistic, logistic.llf, 7)}
# PHReg is started where its own search ends, on columns of one size, until nothing moves.
scale = x.std(ddof=0)
for ties in ("efron", "breslow"):
    model = PHReg(table.days, x / scale, status=table.event, ties=ties)
    at = np.zeros(x.shape[1])
    for _ in range(30):
        at = at - np.linalg.solve(model.hessian(at), model.score(at))
    errors = np.sqrt(np.diag(np.linalg.inv(-model.hessian(at))))
    value = model.loglike(at)
    out[ties] = {"coefficients": list(at / scale), "standard_errors": list(errors / scale), "log_likelihood": value,
                 "aic": 12 - 2 * value}

moved = (x - x.mean()) / scale
ridge, penalty = {}, 25.0
fit = Ridge(alpha=penalty, solver="cholesky").fit(moved, table.score)
ridge["linear"] = [float(fit.intercept_ - (fit.coef_ * x.mean() / scale).sum()), *(fit.coef_ / scale)]
fit = LogisticRegression(C=1 / penalty, tol=1e-14, max_iter=10000, solver="newton-cholesky").fit(moved, table.ill)
ridge["logistic"] = [float(fit.intercept_[0] - (fit.coef_[0] * x.mean() / scale).sum()), *(fit.coef_[0] / scale)]
model = PHReg(table.days, moved, status=table.event, ties="efron")
at = np.zeros(x.shape[1])
for _ in range(50):
    at = at - np.linalg.solve(model.hessian(at) - penalty * np.eye(len(at)), model.score(at) - penalty * at)
ridge["cox"] = list(at / scale)
out["ridge"] = ridge
(HERE / "others.json").write_text(json.dumps(out, indent=1) + "\n")
(HERE / "others-versions.txt").write_text(
    f"python {sys.version.split()[0]}\nstatsmodels {statsmodels.__version__}\nscikit-learn {sklearn.__version__}\n"
    f"pandas {pd.__version__}\nnumpy {np.__version__}\n")
