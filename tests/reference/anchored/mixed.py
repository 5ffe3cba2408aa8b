"""The risk-anchored distance with some of the Euclidean distance in it, on the sets of benchmark.py: AUC or concordance.

Two ways: w of the mean coefficient added to each feature's weight ("floor"), and w |b| / sqrt(p) times the Euclidean distance ("euclid").
Usage: mixed.py DIR SURVIVAL OUT.json [set ...], as benchmark.py; mixed.py DIR SURVIVAL OUT.json --table prints the table of README.md.
"""

import json
import sys

import numpy as np
from benchmark import NEIGHBOURS, OUT, SETS, by_neighbours, chosen, concordance, manhattan, parted

FLOORS, EUCLIDS = [0, 0.5, 2], [0.25, 1]


def run(name):
    family, x, y, groups = SETS[name]()
    pairs = {}
    for _, train, test, z, design, unit in parted(family, x, y, groups):
        b = chosen(family, design[train], y[train], unit)[0]
        b = b if family == "cox" else b[1:]
        eta = np.abs((z[test] @ b)[:, None] - (z[train] @ b)[None, :])
        reasons, plain = manhattan(z[test] * b, z[train] * b), manhattan(z[test], z[train])
        euclid = np.sqrt(np.maximum(0, np.sum((z[test][:, None, :] - z[train][None, :, :]) ** 2, axis=2)))
        ways = {"Euclid": euclid}
        ways |= {f"floor {w}": eta + 0.3 * (reasons + w * np.mean(np.abs(b)) * plain) for w in FLOORS}
        ways |= {f"euclid {w}": eta + 0.3 * reasons + w * np.sqrt(np.mean(b**2)) * euclid for w in EUCLIDS}
        for way, d in ways.items():
            for k in NEIGHBOURS:
                found = concordance(family, by_neighbours(family, d, y[train], k), y[test])
                so_far = pairs.setdefault(f"{way} {k}", [0.0, 0.0])
                so_far[0] += found[0]
                so_far[1] += found[1]
    return {key: value[0] / value[1] for key, value in pairs.items()}


def table(found):
    ways = ["Euclid", *(f"floor {w}" for w in FLOORS), *(f"euclid {w}" for w in EUCLIDS)]
    print("| patients | " + " | ".join(ways) + " |")
    print("|" + " --- |" * (1 + len(ways)))
    for name, one in found.items():
        print(f"| {name} | " + " | ".join(f"{one[f'{way} 51']:.3f}" for way in ways) + " |")


if __name__ == "__main__":
    if "--table" in sys.argv:
        table(json.load(open(OUT)))
        sys.exit()
    found = {}
    for name in sys.argv[4:] or list(SETS):
        found[name] = run(name)
        with open(OUT, "w") as file:
            json.dump(found, file, indent=1)
