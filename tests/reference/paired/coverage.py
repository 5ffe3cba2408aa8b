"""How often the interval of a published gain holds the gain of everybody: in the area under a curve, and in Brier's score.

Python 3.11, numpy 2.4.6:  python coverage.py > coverage.txt

Two rules give each patient of two classes votes of 5 neighbours or shares in 21 steps; their errors are correlated. Sums, test and
rounding are those of `shared/similarity/src/judge/paired.rs` and `shared/protocol/src/rounded.rs`, written again.
"""
import math

import numpy as np

# Several hospitals: pairs are within each.
FEDERATIONS = [
    [(20, 480), (480, 20)], [(160, 140), (190, 110), (8, 115), (50, 150)], [(17, 17)] * 12, [(10, 200), (40, 40), (100, 5)],
]
CLASSES = [(20, 20), (20, 300), (60, 60), (130, 170), (400, 340), (50, 1000)]
SHIFTS = [(0.0, 0.0), (0.5, 0.5), (0.5, 1.0), (1.5, 1.5), (1.5, 2.0), (2.5, 2.5)]
STEPS, ALIKE = [6, 21], [0.3, 0.8]
DRAWS, EVERYBODY = 1_000, 200_000


def scores(draw, patients, shifts, alike, steps):
    """Of one class, a row a rule."""
    common, own = draw.normal(size=patients), draw.normal(size=(2, patients))
    latent = math.sqrt(alike) * common + math.sqrt(1 - alike) * own + np.array(shifts)[:, None]
    share = 1 / (1 + np.exp(-(latent - np.mean(shifts) / 2)))
    return np.round(share * (steps - 1)).astype(int)


def places(a, b, steps):
    """Of every patient the share of the other class on the right side, ties half; a row a rule."""
    of_a, of_b = [], []
    for one, other in zip(a, b):
        at_a, at_b = np.bincount(one, minlength=steps), np.bincount(other, minlength=steps)
        below = np.cumsum(at_a) - at_a
        above = len(other) - np.cumsum(at_b)
        of_a.append((above + at_b / 2)[one])
        of_b.append((below + at_a / 2)[other])
    return np.array(of_a), np.array(of_b)


def area_sums(a, b, steps):
    of_a, of_b = places(a, b, steps)
    difference = np.concatenate([of_a[1] - of_a[0], of_b[1] - of_b[0]])
    part = np.concatenate([np.full(a.shape[1], b.shape[1]), np.full(b.shape[1], a.shape[1])]).astype(float)
    return part.sum() / 2, difference.sum() / 2, (difference**2).sum(), (difference * part).sum(), (part**2).sum()


def loss(a, b, steps):
    return np.concatenate([(a / (steps - 1)) ** 2, (1 - b / (steps - 1)) ** 2], axis=1)


def brier_sums(a, b, steps):
    losses = loss(a, b, steps)
    difference = losses[0] - losses[1]
    return len(difference), difference.sum(), (difference**2).sum(), difference.sum(), len(difference)


def tested(total, difference, squares, products, parts):
    value = difference / total
    return value, math.sqrt(max(squares - 2 * value * products + value**2 * parts, 0)) / total


def bounded(sums, hospitals):
    """Without the squares of each patient's pairs, which no hospital sends."""
    largest = max(math.ceil((others + own) / 10) * 10 for others, own in hospitals)
    return [*sums[:4], sums[0] * largest]


def step_of(hospitals, pairs):
    """Of a gain in areas: one patient is in no more pairs than there are of the other class, or others in the largest hospital."""
    most = max(sum(others for others, _ in hospitals), sum(own for _, own in hospitals))
    largest = max(math.ceil((others + own) / 10) * 10 for others, own in hospitals)
    least = 2000 * min(most, largest - 1) / pairs
    decade = 10 ** math.floor(math.log10(max(least, 1)))
    return next((s * decade for s in [1, 1.5, 2, 3, 5, 7] if s * decade >= least), 10 * decade) / 1000


def rounded(value, error, step):
    fine = step / 4
    error = math.ceil((1.959964 * error + step / 2) / 1.959964 / fine) * fine
    return round(value / step) * step, error


if __name__ == "__main__":
    draw = np.random.default_rng(11)
    found = {"AUC": [], "AUC, exact": [], "Brier": [], "Brier, exact": []}
    for others, own in CLASSES:
        for shifts in SHIFTS:
            for steps in STEPS:
                for alike in ALIKE:
                    both = lambda n, m: (scores(draw, n, (0, 0), alike, steps), scores(draw, m, shifts, alike, steps))
                    everybody = both(EVERYBODY, EVERYBODY)
                    truth = {"AUC": tested(*area_sums(*everybody, steps))[0]}
                    losses = [loss(one, one, steps) for one in everybody]
                    means = [(losses[0][:, :EVERYBODY].mean(1)), (losses[1][:, EVERYBODY:].mean(1))]
                    mean = (others * means[0] + own * means[1]) / (others + own)
                    truth["Brier"] = mean[0] - mean[1]
                    held = dict.fromkeys(found, 0)
                    for _ in range(DRAWS):
                        a, b = both(others, own)
                        everyone = others + own
                        for name, sums, step in [
                            ("AUC", area_sums, step_of([(others, own)], others * own)),
                            ("Brier", brier_sums, math.ceil(2000 / everyone) / 1000),
                        ]:
                            exact = sums(a, b, steps)
                            known = bounded(exact, [(others, own)]) if name == "AUC" else exact
                            for key, (at, off) in [(name + ", exact", tested(*exact)), (name, rounded(*tested(*known), step))]:
                                held[key] += abs(at - truth[name]) <= 1.959964 * off + 1e-12
                    for key, count in held.items():
                        found[key].append((count / DRAWS, others, own, shifts, steps, alike))
    for hospitals in FEDERATIONS:
        for shifts in SHIFTS:
            for steps in STEPS:
                for alike in ALIKE:
                    both = lambda n, m: (scores(draw, n, (0, 0), alike, steps), scores(draw, m, shifts, alike, steps))
                    truth = tested(*area_sums(*both(EVERYBODY, EVERYBODY), steps))[0]
                    held = dict.fromkeys(["AUC, hospitals", "AUC, hospitals, exact"], 0)
                    for _ in range(DRAWS):
                        sums = np.sum([area_sums(*both(*hospital), steps) for hospital in hospitals], axis=0)
                        known = tested(*bounded(sums, hospitals))
                        for key, (at, off) in zip(held, [rounded(*known, step_of(hospitals, sums[0])), tested(*sums)]):
                            held[key] += abs(at - truth) <= 1.959964 * off + 1e-12
                    for key, count in held.items():
                        found.setdefault(key, []).append((count / DRAWS, *np.sum(hospitals, axis=0), shifts, steps, alike))
    for key, cases in found.items():
        cases.sort()
        covered = [case[0] for case in cases]
        print(f"{key}: {len(cases)} cases of {DRAWS} draws: coverage at least {covered[0]:.3f}, mean {np.mean(covered):.3f}")
        for case in cases[:4]:
            print("  {:.3f}: {} and {} patients, apart {}, {} steps, alike {}".format(*case))
