"""Distances between the patients of ../regression/patients.csv by SciPy, and by R's cluster (daisy): what ours must equal.

    python comparison.py     (calls Rscript)

Columns are standardised by mean and population standard deviation, a column for each level. Kept are the distances of
patients 1, 4 and 7 from the first twelve. For Gower's distance patient 4 has no age, patient 7 no group.
versions.txt names what made comparison.json.
"""
import json, pathlib, subprocess, sys
import numpy as np, pandas as pd, scipy
from scipy.spatial.distance import cdist

HERE = pathlib.Path(__file__).parent
CSV = HERE.parent / "regression" / "patients.csv"
table = pd.read_csv(CSV)
columns = [table.age, table.marker, table.ratio] + [table.group == level for level in ("mild", "severe", "odd")] + [
    table.treated == level for level in ("no", "yes")]
x = np.column_stack([np.asarray(column, float) for column in columns])
x = (x - x.mean(0)) / x.std(0)
query, some = x[[0, 3, 6]], x[:12]
out = {name: cdist(query, some, name).tolist() for name in ("euclidean", "cityblock", "cosine")}
# Of the levels all but the first: those are not collinear, and say the same.
free = x[:, [0, 1, 2, 4, 5, 7]]
inverse = np.linalg.inv(np.cov(free.T))
out["mahalanobis"] = cdist(free[[0, 3, 6]], free[:12], "mahalanobis", VI=inverse).tolist()
script = f"""
library(cluster); p <- read.csv("{CSV}")
p$group <- factor(p$group); p$treated <- factor(p$treated)
p <- p[, c("age", "marker", "ratio", "group", "treated")]
p$age[4] <- NA; p$group[7] <- NA
d <- as.matrix(daisy(p, metric = "gower"))[c(1, 4, 7), 1:12]
write.table(d, col.names = FALSE, row.names = FALSE)
writeLines(paste("R", getRversion(), "cluster", packageVersion("cluster")), stderr())
"""
run = subprocess.run(["Rscript", "-e", "options(digits = 15); " + script.replace("\n", ";").strip("; ").replace(";;", ";")],
                     capture_output=True, text=True, check=True)
out["gower"] = [[float(cell) for cell in line.split()] for line in run.stdout.strip().splitlines()]
(HERE / "comparison.json").write_text(json.dumps(out, indent=1) + "\n")
version = [line for line in run.stderr.splitlines() if line.startswith("R ")][0]
(HERE / "versions.txt").write_text(
    f"python {sys.version.split()[0]}\nscipy {scipy.__version__}\nnumpy {np.__version__}\n{version}\n")
