"""Matches by SciPy (linear_sum_assignment) and R's MatchIt: what ours must equal.

    python matching.py     (calls Rscript)

Distances are made by a formula: of query i and candidate j ((i + 3)^2 * (j + 5) * 7919 + 104729 * j) mod 1000003 / 10000. The
balance table is that of ../regression/patients.csv, patients of the group odd being the queries. versions.txt names what
made matching.json.
"""
import json, pathlib, subprocess, sys
import numpy as np, scipy
from scipy.optimize import linear_sum_assignment

HERE = pathlib.Path(__file__).parent
CSV = HERE.parent / "regression" / "patients.csv"


def distances(queries, candidates):
    i, j = np.arange(queries)[:, None], np.arange(candidates)[None, :]
    return ((i + 3) ** 2 * (j + 5) * 7919 + 104729 * j) % 1000003 / 10000


cases = []
for queries, candidates, ratio, caliper in [(20, 60, 1, None), (20, 60, 2, None), (30, 20, 1, None), (40, 60, 2, None),
                                            (25, 40, 1, 8.0), (25, 60, 3, 20.0), (60, 61, 1, 3.0), (7, 7, 1, None)]:
    d = np.repeat(distances(queries, candidates), ratio, axis=0)
    alone = 1e6
    wide = np.hstack([d if caliper is None else np.where(d <= caliper, d, 2 * alone), np.full((len(d), len(d)), alone)])
    rows, columns = linear_sum_assignment(wide)
    real = columns < candidates
    cases.append({"queries": queries, "candidates": candidates, "ratio": ratio, "caliper": caliper,
                  "matches": int(real.sum()), "sum": float(wide[rows[real], columns[real]].sum())})
script = f"""
library(MatchIt); library(jsonlite); p <- read.csv("{CSV}"); p$odd <- as.integer(p$group == "odd")
q <- sum(p$odd); n <- sum(1 - p$odd); i <- seq_len(q) - 1; j <- seq_len(n) - 1
d <- outer(i, j, function(i, j) ((i + 3)^2 * (j + 5) * 7919 + 104729 * j) %% 1000003 / 10000)
rownames(d) <- rownames(p)[p$odd == 1]; colnames(d) <- rownames(p)[p$odd == 0]
m <- matchit(odd ~ age + marker + ratio + treated, p, distance = d, method = "nearest", ratio = 2, m.order = "data")
w <- matchit(odd ~ age + marker + ratio + treated, p, distance = d, method = "nearest", ratio = 2, replace = TRUE)
place <- match(m$match.matrix, colnames(d)) - 1
keep <- c("Means Treated", "Means Control", "Std. Mean Diff.", "Var. Ratio")
s <- summary(m); t <- summary(w)
cat(toJSON(list(greedy = matrix(place, q), names = rownames(s$sum.all), before = s$sum.all[, keep], after = s$sum.matched[, keep],
  replaced = t$sum.matched[, keep]), digits = NA))
writeLines(paste(R.version.string, "MatchIt", packageVersion("MatchIt")), stderr())
"""
(HERE / "made.R").write_text(script)
run = subprocess.run(["Rscript", str(HERE / "made.R")], capture_output=True, text=True, check=True)
(HERE / "made.R").unlink()
out = {"assignments": cases, "matchit": json.loads(run.stdout)}
(HERE / "matching.json").write_text(json.dumps(out) + "\n")
version = [line for line in run.stderr.splitlines() if line.startswith("R version")][0]
(HERE / "versions.txt").write_text(f"python {sys.version.split()[0]}\nscipy {scipy.__version__}\nnumpy {np.__version__}\n{version}\n")
