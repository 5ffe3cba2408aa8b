"""Nearest neighbours by NumPy (blocks and argpartition) and by scikit-learn: the peers of `neighbours.rs`.

python neighbours.py        (NumPy and scikit-learn with OpenBLAS, two threads)
"""
import time

import numpy as np
from sklearn.neighbors import NearestNeighbors

NEIGHBOURS, REPEATS, BLOCK = 5, 3, 512


def best(work):
    least = float("inf")
    for _ in range(REPEATS):
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
for rows, columns, queries in (1_000_000, 64, 1), (1_000_000, 64, 1_000), (20_000, 8, 20_000), (20_000, 68, 20_000):
    stored, asked = random.standard_normal((rows, columns)), random.standard_normal((queries, columns))
    squares = (stored ** 2).sum(1)
    by_numpy = best(lambda: numpy_search(stored, squares, asked)) if rows * min(queries, BLOCK) < 1e8 else float("nan")
    brute = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute").fit(stored)
    by_sklearn = best(lambda: brute.kneighbors(asked))
    print(f"{queries:>6} queries of {rows} x {columns}: NumPy {by_numpy:.3f} s, scikit-learn {by_sklearn:.3f} s")
