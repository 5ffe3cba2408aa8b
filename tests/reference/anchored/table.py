"""Writes the tables of README.md from benchmark.json: table.py benchmark.json"""

import json
import sys

found = json.load(open(sys.argv[1]))
WAYS = ["Euclid", "weighted plain", "weighted chosen", "anchored chosen 0.3"]


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def told(values, key):
    return f"{values[key]:.3f}" if key in values else "-"


row("patients", "events", *[f"{way}, {k}" for k in (51, 15) for way in ("Euclid", "weighted", "chosen ridge", "anchored")], "plain regression", "regression, chosen ridge")
row(*["---"] * 12)
for name, one in found.items():
    c = one["concordance"]
    events = "-" if one["events"] is None else str(one["events"])
    near = [told(c, f"{way} {k}") for k in (51, 15) for way in WAYS]
    row(f"{name}, {one['patients']}", events, *near, told(c, "model plain"), told(c, "model chosen"))
print()
row("patients", *[f"{what}, {how}" for what in ("loss", "AUC") for how in ("plain", "chosen", "cross-validated")], "ridge, chosen", "ridge, cross-validated")
row(*["---"] * 9)
for name, one in found.items():
    loss, c, ridge = one["loss"], one["concordance"], one["ridge"]
    hows = ("plain", "chosen", "crossed")
    row(name, *[f"{loss[how]:.4g}" for how in hows], *[told(c, f"model {how}") for how in hows], *[f"{ridge[how][1]:.3g}" for how in hows[1:]])
print()
row("a", *["0", "0.05", "0.1", "0.2", "0.3", "0.5", "1", "2", "without the risk"])
row(*["---"] * 10)
for k in (51, 15):
    cells = []
    for a in ("0", "0.05", "0.1", "0.2", "0.3", "0.5", "1", "2", "1e+09"):
        values = [one["concordance"].get(f"anchored chosen {a} {k}") for one in found.values()]
        values = [value for value in values if value is not None]
        cells.append(f"{sum(values) / len(values):.4f}")
    row(f"{k} neighbours, mean", *cells)
