"""How often the interval of a published area under a curve holds the area of everybody.

Python 3.11, numpy 2.4.6:  python coverage.py > coverage.txt

Patients of two classes have normal scores, in bins: of votes (their area is that of the bins) or of shares (that of the scores).
Area, rounding and interval are those of `shared/protocol/src/area.rs`, written again.
"""
import math
from statistics import NormalDist

import numpy as np

CLASSES = [(20, 20), (20, 300), (300, 20), (130, 170), (400, 340), (50, 1000)]
AREAS = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99]
BINS = [(6, True), (10, False), (4, True), (16, True)]
DRAWS, EVERYBODY = 1_500, 100_000


def hanley_mcneil(area, others, own):
    two_own, two_others = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    total = area * (1 - area) + (own - 1) * two_own + (others - 1) * two_others
    return np.sqrt(np.maximum(total, 0) / (others * own))


def interval(value, within, others, own):
    nearest = 0.5 + np.sign(value - 0.5) * np.maximum(np.abs(value - 0.5) - within, 0)
    error = np.maximum(hanley_mcneil(nearest, others, own), hanley_mcneil(nearest, own, others))
    half = 1.96 * error + within
    return np.maximum(value - half, 0), np.minimum(value + half, 1)


def area_of(a, b):
    below = np.cumsum(a, -1) - a
    return (b * (below + a / 2)).sum(-1) / (a.sum(-1) * b.sum(-1))


if __name__ == "__main__":
    draw = np.random.default_rng(9)
    found = []
    for others, own in CLASSES:
        for area in AREAS:
            for bins, are_votes in BINS:
                apart = NormalDist().inv_cdf(area) * math.sqrt(2)
                cuts = np.linspace(-1.5, 1.5 + apart, bins - 1)
                classes = [np.searchsorted(cuts, draw.normal(mean, 1, EVERYBODY)) for mean in (0, apart)]
                all_others, all_own = (np.bincount(one, minlength=bins) for one in classes)
                truth = area_of(all_others.astype(float), all_own.astype(float)) if are_votes else area
                a = draw.multinomial(others, all_others / EVERYBODY, DRAWS).astype(float)
                b = draw.multinomial(own, all_own / EVERYBODY, DRAWS).astype(float)
                tied = np.zeros(DRAWS) if are_votes else (a * b).sum(1) / (others * own) / 2
                step = max(1, math.ceil(200 / min(others, own))) / 100
                value, within = np.round(area_of(a, b) / step) * step, step / 2 + tied
                low, high = interval(value, within, others, own)
                found.append((((low <= truth) & (truth <= high)).mean(), (high - low).mean(), others, own, area, bins))
    found.sort()
    covered = [one[0] for one in found]
    print(f"{len(found)} cases of {DRAWS} draws: coverage at least {covered[0]:.3f}, mean {np.mean(covered):.3f}")
    for one in found[:5]:
        print("coverage {:.3f}, width {:.3f}: {} and {} patients, area {}, {} bins".format(*one))
    for value, within, others, own in [(0.93, 0.005, 313, 247), (1.0, 0.05, 20, 300), (0.3, 0.02, 50, 1000)]:
        low, high = interval(np.array(value), np.array(within), others, own)
        print(f"{value} within {within}, {others} and {own} patients: {low:.12f} to {high:.12f}")
