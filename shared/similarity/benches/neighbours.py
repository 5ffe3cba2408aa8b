"""Nearest neighbours by NumPy (blocks and argpartition), scikit-learn and FAISS: the peers of `neighbours.rs`.

    python neighbours.py [faiss]        (NumPy, scikit-learn and faiss-cpu, two threads; or FAISS alone)

FAISS compares in 32 bits, all others in 64. Gower's distance of complete numbers is Manhattan's of numbers over their ranges, and that
of a regression is Manhattan's of numbers by their coefficients: they have no peer of their own.
"""
import sys
import time

import faiss
import numpy as np
from sklearn.neighbors import NearestNeighbors

NEIGHBOURS, REPEATS, BLOCK = 5, 3, 512


def best(work, repeats=REPEATS):
    least = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - begun)
    return least


def numpy_search(stored, squares, asked):
    for first in range(0, len(asked), BLOCK):
        scores = squares - 2 * asked[first:first + BLOCK] @ stored.T
        near = np.argpartition(scores, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        np.take_along_axis(near, np.take_along_axis(scores, near, 1).argsort(1), 1)


random = np.random.default_rng(1)
print(f"best of {REPEATS}; of Manhattan and Mahalanobis' with several queries one; FAISS {faiss.__version__}")
stored, asked = random.standard_normal((1_000_000, 64)), random.standard_normal((1_000, 64))
flat = faiss.IndexFlatL2(64)
flat.add(stored.astype(np.float32))
single = asked.astype(np.float32)
for queries in 1, 1_000:
    print(f"{queries:>6} queries, FAISS IndexFlatL2: {best(lambda: flat.search(single[:queries], NEIGHBOURS)):.3f} s")
if sys.argv[1:] == ["faiss"]:
    sys.exit()
whitening = np.linalg.inv(np.cov(stored, rowvar=False))
for metric in "euclidean", "cosine", "manhattan", "mahalanobis":
    more = {"metric_params": {"VI": whitening}} if metric == "mahalanobis" else {}
    brute = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute", metric=metric, n_jobs=2, **more).fit(stored)
    # Of Mahalanobis' a product of 64 x 64 a pair: a thousand queries would take an hour.
    for queries in (1, 20 if metric == "mahalanobis" else 1_000):
        slow = metric in ("manhattan", "mahalanobis") and queries > 1
        took = best(lambda: brute.kneighbors(asked[:queries]), 1 if slow else REPEATS)
        print(f"{queries:>6} queries, scikit-learn {metric}: {took:.3f} s", flush=True)
for rows, columns, queries in (1_000_000, 64, 1), (1_000_000, 64, 1_000), (20_000, 8, 20_000), (20_000, 68, 20_000):
    stored, asked = random.standard_normal((rows, columns)), random.standard_normal((queries, columns))
    squares = (stored ** 2).sum(1)
    by_numpy = best(lambda: numpy_search(stored, squares, asked)) if rows * min(queries, BLOCK) < 1e8 else float("nan")
    brute = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute").fit(stored)
    by_sklearn = best(lambda: brute.kneighbors(asked))
    print(f"{queries:>6} queries of {rows} x {columns}: NumPy {by_numpy:.3f} s, scikit-learn {by_sklearn:.3f} s")
