"""Promise: Kaplan-Meier curves are those of R's survfit."""

import io

import numpy as np
import pandas as pd
from conftest import run_r

import kindred


def test_four_patients_by_hand():
    curve = kindred.kaplan_meier(pd.Series([1, 2, 2, 4]), pd.Series([1, 1, 0, 0]))
    assert curve["survival"].tolist() == [0.75, 0.5, 0.5]
    assert curve["at_risk"].tolist() == [4, 3, 1]


def test_curves_by_group_are_rs(mixed, home):
    frame = mixed.dropna(subset=["ward"])
    curves = kindred.kaplan_meier(frame["days"], frame["died"], frame["ward"])
    frame.to_csv(home / "curves.csv", index=False)
    script = """
library(survival)
frame <- read.csv("curves.csv")
fit <- survfit(Surv(days, died) ~ ward, frame, conf.type = "log-log")
write.csv(data.frame(summary(fit, censored = TRUE)[c("time", "n.risk", "n.event", "surv", "lower", "upper")]),
          row.names = FALSE)
"""
    theirs = pd.read_csv(io.StringIO(run_r(script, home)))
    found = curves[["time", "at_risk", "events", "survival", "low", "high"]].to_numpy(dtype=float)
    assert found.shape == theirs.shape
    np.testing.assert_allclose(found, theirs.to_numpy(), rtol=0, atol=1e-12)
