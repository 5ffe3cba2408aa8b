"""How often intervals of survival curves and their medians hold the truth.

    python coverage.py > coverage.txt

Intervals of log(-log S) with Greenwood's variance, as `judge::survival` has them: before the first event the lower end is Clopper and
Pearson's of those at risk, and at 0 the upper end is that of the point before. Patients have Weibull times and uniform censoring; a curve
counts where somebody is still followed. Cells: share that holds the truth, over 4,000 draws.
"""

import numpy

DRAWS, Z = 4000, 1.959963984540054


def points(time, event):
    order = numpy.argsort(time, kind="stable")
    time, event = time[order], event[order]
    share, greenwood, high = 1.0, 0.0, 1.0
    found = []
    for at, (when, seen) in enumerate(zip(time, event)):
        n = len(time) - at
        if not seen:
            continue
        share *= 1 - 1 / n
        if n == 1:
            found.append((when, 0.0, 0.0, high))
            continue
        greenwood += 1 / (n * (n - 1))
        half = Z * numpy.sqrt(greenwood) / abs(numpy.log(share))
        low, high = share ** numpy.exp(half), share ** numpy.exp(-half)
        found.append((when, share, low, high))
    return found


def at(found, time, when):
    at_risk = int((time >= when).sum())
    known = [point for point in found if point[0] <= when]
    if not known:
        return None if at_risk == 0 else (0.025 ** (1 / at_risk), 1.0)
    if at_risk == 0 and known[-1][1] > 0:
        return None
    return known[-1][2:]


def first(found, place):
    return next((point[0] for point in found if point[place] <= 0.5), numpy.inf)


def main():
    draw = numpy.random.default_rng(11)
    print(f"{'patients':>8} {'censored':>8} {'S = 0.9':>8} {'0.7':>6} {'0.5':>6} {'0.3':>6} {'median':>7}")
    for patients in (10, 20, 50, 200):
        for longest in (numpy.inf, 3.0, 1.5):
            held = {0.9: [], 0.7: [], 0.5: [], 0.3: []}
            median, censored = [], []
            for _ in range(DRAWS):
                shape = 1.3
                hidden = draw.weibull(shape, size=patients)
                lost = draw.uniform(0.2, longest, size=patients) if longest < numpy.inf else numpy.full(patients, numpy.inf)
                time, event = numpy.minimum(hidden, lost), hidden <= lost
                censored.append(1 - event.mean())
                found = points(time, event)
                for share in held:
                    ends = at(found, time, (-numpy.log(share)) ** (1 / shape))
                    if ends is not None:
                        held[share].append(ends[0] <= share <= ends[1])
                low, high = first(found, 2), first(found, 3)
                median.append(low <= numpy.log(2) ** (1 / shape) <= high)
            cells = [f"{numpy.mean(held[share]):.3f}" if len(held[share]) > DRAWS / 4 else "-" for share in held]
            print(f"{patients:>8} {numpy.mean(censored):>8.2f} {cells[0]:>8} {cells[1]:>6} {cells[2]:>6} {cells[3]:>6} {numpy.mean(median):>7.3f}")


main()
