"""Survival where some follow-up ends at time 0: R's survival and scikit-survival count it like any other time.

Run: python time_zero.py > time_zero.json   (Rscript with survival must be on the path)
"""

import json
import subprocess
import sys

import numpy as np
import sksurv
from sksurv.metrics import concordance_index_censored
from sksurv.nonparametric import nelson_aalen_estimator

TIME = [0, 0, 0, 1, 2, 2, 3, 5]
EVENT = [1, 0, 1, 1, 0, 1, 1, 0]
RISK = [8, 1, 6, 7, 2, 5, 4, 3]
R = f"""
library(survival)
d <- data.frame(t = c({str(TIME)[1:-1]}), e = c({str(EVENT)[1:-1]}), r = c({str(RISK)[1:-1]}))
f <- survfit(Surv(t, e) ~ 1, d, stype = 2, ctype = 1)
cat(sprintf("%.17g", f$cumhaz[f$n.event > 0]), "\\n")
cat(sprintf("%.17g", concordance(Surv(t, e) ~ r, d, reverse = TRUE)$concordance), "\\n")
cat(as.character(packageVersion("survival")), "\\n")
"""
answer = subprocess.run(["Rscript", "-e", R], check=True, capture_output=True, text=True).stdout.splitlines()
time, event = np.array(TIME, float), np.array(EVENT, bool)
times, hazard = nelson_aalen_estimator(event, time)
steps = np.isin(times, time[event])
json.dump({"versions": {"numpy": np.__version__, "scikit-survival": sksurv.__version__, "survival": answer[2].strip()},
           "time": TIME, "event": EVENT, "risk": RISK, "times": times[steps].tolist(),
           "hazard": hazard[steps].tolist(), "hazard_r": [float(x) for x in answer[0].split()],
           "concordance": float(concordance_index_censored(event, time, np.array(RISK, float))[0]),
           "concordance_r": float(answer[1])}, sys.stdout)
print()
