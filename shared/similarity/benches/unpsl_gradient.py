"""The arithmetic of unpsl_gradient.rs in NumPy: median seconds of a loss and gradient.

Run: OPENBLAS_NUM_THREADS=1 python unpsl_gradient.py; then with 2.
"""

import os
import time

import numpy

PATIENTS, FEATURES, RANK = 2000, 200, 32
generator = numpy.random.default_rng(1)
x = generator.normal(size=(PATIENTS, FEATURES))
w = generator.normal(size=(FEATURES, RANK)) / numpy.sqrt(FEATURES * RANK)
codes = numpy.arange(PATIENTS) % 2
y = numpy.where(codes[:, None] == codes[None, :], 1.0, -1.0)
numpy.fill_diagonal(y, 0.0)


def value_and_gradient():
    e = x @ w
    z = e @ e.T
    z -= 1.0
    z *= y
    share = numpy.exp(-numpy.abs(z))
    loss = 0.5 * (numpy.maximum(-z, 0.0) + numpy.log1p(share)).sum() - 0.5 * PATIENTS * numpy.log(2)
    g = numpy.where(z >= 0.0, share, 1.0) / (1.0 + share)
    g *= -y
    return loss, x.T @ (g @ e)


def products(g):
    e = x @ w
    e @ e.T
    x.T @ (g @ e)


def median(function, *arguments):
    times = []
    for _ in range(15):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
print(f"numpy {numpy.__version__}, {threads} threads")
print(f"gradient       {median(value_and_gradient) * 1e3:8.2f} ms")
print(f"products alone {median(products, y.copy()) * 1e3:8.2f} ms")
