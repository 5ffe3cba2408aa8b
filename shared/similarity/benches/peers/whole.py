"""Whole runs beside pooled L-BFGS in NumPy and SciPy on the same objective, in one run.

Run from the workspace: python shared/similarity/benches/peers/whole.py target/release
(the folder of the two programs); with `million` behind it one site of 1,000,000, and with `genes` one of 100,000 x 2,000 in Parquet, without
the peer. Kindred's time is that of `kindred-coordinator simulate`: processes, TLS, masks, evaluation of all
patients and files included. The peer holds all patients in one place; it searches W from one random start on a norm smoothed by 1e-6,
with a gradient of its own (dense products by site; of drawn pairs a sparse matrix), until the objective is within 1e-5 of Kindred's, and
evaluates nobody. Drawn pairs are its own draw: their objective differs by the draw, so there it stops where it improves by 1e-6 no more.
"""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import scipy
import scipy.sparse
from scipy.optimize import minimize

RANK, LAMBDA_1, LAMBDA_2, SMOOTHING = 8, 0.003, 0.0003, 1e-6
POLICY = 'operators = ["*"]\nmethods = ["*"]\nsecond_moments = true\nexact_sums = true\n'


class Done(Exception):
    pass


def cohort(sizes, features, seed):
    random = numpy.random.default_rng(seed)
    weights = numpy.zeros(features)
    weights[:6] = [1.0, 0.8, -0.7, 0.6, -0.5, 0.4]
    sites = {}
    for place, (name, count) in enumerate(sizes.items()):
        x = random.normal(size=(count, features)) + 0.3 * random.normal(size=features)
        share = 1.0 / (1.0 + numpy.exp(-(x @ weights - 0.2 * (place % 3))))
        sites[name] = (x, (random.random(count) < share).astype(int))
    return sites


def standardised(sites):
    within = sum(((x - x.mean(0)) ** 2).sum(0) for x, _ in sites.values())
    within = numpy.sqrt(within / sum(len(x) for x, _ in sites.values()))
    return [((x - x.mean(0)) / within, y) for x, y in sites.values()]


class Dense:
    """All pairs of a site."""

    def __init__(self, x, y):
        self.x, self.pairs = x, len(x) * (len(x) - 1) / 2
        self.y = numpy.where(y[:, None] == y[None, :], 1.0, -1.0)
        numpy.fill_diagonal(self.y, 0.0)

    def similarity(self, e):
        return e @ e.T

    def gradient(self, e, a):
        return self.x.T @ (a @ e)

    half = 0.5


class Drawn:
    """`partners` of each patient."""

    def __init__(self, x, y, partners, random):
        self.x = x
        one = numpy.repeat(numpy.arange(len(x)), partners)
        other = random.integers(0, len(x) - 1, size=one.size)
        other += other >= one
        self.one, self.other, self.pairs = one, other, one.size
        self.y = numpy.where(y[one] == y[other], 1.0, -1.0)

    def similarity(self, e):
        return numpy.einsum("ij,ij->i", e[self.one], e[self.other])

    def gradient(self, e, a):
        sparse = scipy.sparse.csr_matrix((a, (self.one, self.other)), shape=(len(self.x),) * 2)
        return self.x.T @ (sparse @ e + sparse.T @ e)

    half = 1.0


def best_threshold(s, y, b):
    for _ in range(50):
        w = numpy.where(y == 0.0, 0.0, scipy.special.expit(-y * (s - b)))
        step = (y * w).sum() / (w * (1.0 - w)).sum()
        b -= step
        if abs(step) < 1e-9:
            return b
    return b


def search(parts, kinship, features, wanted):
    """Seconds until the objective is there, and the objective."""
    total = sum(part.pairs for part in parts)
    penalty = sum(part.pairs / total * squared for part, squared in zip(parts, kinship))
    thresholds = [0.0] * len(parts)
    best = [numpy.inf, 0]

    def evaluate(flat):
        w = flat.reshape(features, RANK)
        gradient = 2.0 * LAMBDA_2 * penalty @ w
        value = LAMBDA_2 * (w * (penalty @ w)).sum()
        for place, part in enumerate(parts):
            e = part.x @ w
            s = part.similarity(e)
            b = thresholds[place] = best_threshold(s, part.y, thresholds[place])
            z = part.y * (s - b)
            known = part.y != 0.0
            value += part.half * numpy.logaddexp(0.0, -z)[known].sum() / total
            gradient += part.gradient(e, -part.y * scipy.special.expit(-z)) / total
        norms = numpy.sqrt((w * w).sum(1) + SMOOTHING**2)
        value += LAMBDA_1 * norms.sum()
        gradient += LAMBDA_1 * w / norms[:, None]
        best[1] += 1
        if wanted is not None and value <= wanted * (1.0 + 1e-5):
            best[0] = min(best[0], value)
            raise Done
        best[0] = min(best[0], value)
        return value, gradient.ravel()

    start = numpy.random.default_rng(1).normal(size=(features, RANK)) / numpy.sqrt(features)
    began = time.perf_counter()
    try:
        minimize(evaluate, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-6, "maxfun": 5000}
                 if wanted is None else {"maxiter": 5000, "ftol": 0.0, "gtol": 0.0, "maxfun": 10000})
    except Done:
        pass
    return time.perf_counter() - began, best[0], best[1]


def run(programs, name, sites, features, pairs, *settings):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for site, (x, y) in sites.items():
            columns = {"patient": [f"{site}{at}" for at in range(len(x))]}
            columns |= {f"x{k}": x[:, k] for k in range(features)}
            table = pyarrow.table(columns | {"class": numpy.where(y == 1, "positive", "negative")})
            match name:
                case "genes":
                    pyarrow.parquet.write_table(table, folder / f"{site}.parquet", use_dictionary=["class"])
                case _:
                    pyarrow.csv.write_csv(table, folder / f"{site}.csv")
        job = [f'name = "{name}"', 'method = "unpsl"', f"sites = {json.dumps(list(sites))}", *settings, "[outcome]",
               'column = "class"', 'kind = "binary"', 'positive = ["positive"]', 'negative = ["negative"]', "[unpsl]", "rank = 8",
               'neighbours = 15', f'lambda_sparsity = {LAMBDA_1}', f'lambda_correlation = {LAMBDA_2}',
               *([f"pairs = {pairs}"] if pairs else [])]
        job += [f'[[features]]\nname = "x{k}"\nkind = "numeric"' for k in range(features)]
        (folder / "job.toml").write_text("\n".join(job))
        (folder / "policy.toml").write_text(POLICY)
        began = time.perf_counter()
        subprocess.run([programs / "kindred-coordinator", "simulate", folder / "job.toml", "--data", folder, "--id", "patient", "--policy",
                        folder / "policy.toml", "--out", folder / "out"], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        result = json.loads((folder / "out/result.json").read_text())
    return seconds, result["rounds"], result["objective"]


def main():
    programs = pathlib.Path(sys.argv[1])
    print(f"numpy {numpy.__version__}, scipy {scipy.__version__}")
    fifteen = {f"site{place:02}": 735 for place in range(15)}
    large = {"north": 50_000, "south": 30_000, "east": 15_000, "west": 5_000}
    cases = [("fifteen", fifteen, 15, None), ("large", large, 68, 20)]
    alone = {
        "million": ("million", {"north": 1_000_000, "south": 5_000, "east": 5_000}, 68, 20),
        "genes": ("genes", {"north": 100_000, "south": 5_000, "east": 5_000}, 2_000, 20),
    }
    if sys.argv[2:]:
        cases = [alone[name] for name in sys.argv[2:]]
    for name, sizes, features, pairs in cases:
        sites = cohort(sizes, features, 7)
        seconds, rounds, objective = run(programs, name, sites, features, pairs)
        if name in alone:
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(f"{name}: simulate {seconds:.1f} s, {rounds} rounds, objective {objective:.7f}; the largest process {memory:.0f} MB resident")
            continue
        ready = standardised(sites)
        random = numpy.random.default_rng(3)
        parts = [Drawn(x, y, pairs, random) if pairs else Dense(x, y) for x, y in ready]
        if not pairs:
            # What rounded sums say of the objective is off by more than the peer may be.
            objective = run(programs, name, sites, features, pairs, 'precision = "exact"')[2]
        kinship = [numpy.corrcoef(x.T) ** 2 for x, _ in ready]
        own, found, evaluations = search(parts, kinship, features, None if pairs else objective)
        print(f"{name}: simulate {seconds:.1f} s, {rounds} rounds, objective {objective:.7f}; "
              f"NumPy {own:.1f} s, {evaluations} evaluations, {found:.7f}; ratio {own / seconds:.1f}")


main()
