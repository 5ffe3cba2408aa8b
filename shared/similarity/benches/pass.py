"""The arithmetic of pass.rs in NumPy: median seconds of one pass over the pairs of a site.

Run: OPENBLAS_NUM_THREADS=1 python pass.py; then with 2.
"""

import os
import time

import numpy

RANK = 8


def sides(patients):
    codes = numpy.arange(patients) % 2
    y = numpy.where(codes[:, None] == codes[None, :], 1.0, -1.0)
    numpy.fill_diagonal(y, 0.0)
    return y


def best_threshold(s, y, sign):
    """b at which the loss is least, by Newton's method."""
    b = 0.0
    for _ in range(50):
        w = 1.0 / (1.0 + numpy.exp(sign * y * (s - b)))
        w[y == 0.0] = 0.0
        first, second = sign * (y * w).sum(), (w * (1.0 - w)).sum()
        step = first / second
        b -= step
        if abs(step) < 1e-10:
            break
    return b


def passed(x, w, y, form):
    e = x @ w
    s = e @ e.T
    sign = 1.0
    if form == "Distance":
        squares = numpy.diag(s).copy()
        s = squares[:, None] + squares[None, :] - 2.0 * s
        sign = -1.0
    b = best_threshold(s, y, sign)
    z = sign * y * (s - b)
    share = numpy.exp(-numpy.abs(z))
    loss = 0.5 * (numpy.maximum(-z, 0.0) + numpy.log1p(share))[y != 0.0].sum()
    v = numpy.where(z >= 0.0, share, 1.0) / (1.0 + share)
    v[y == 0.0] = 0.0
    h = v * (1.0 - v)
    a = -y * v
    u = h.mean(axis=1) / numpy.sqrt(h.mean())
    if form == "Distance":
        a = -(numpy.diag(a.sum(axis=1)) - a)
        mean = (u[:, None] * x).sum(axis=0) / u.sum()
        x_u = x - mean
        return loss, x.T @ (a @ x), x_u.T @ (u[:, None] * x_u)
    return loss, x.T @ (a @ x), x.T @ (u[:, None] * x)


def products(x, w, a):
    e = x @ w
    e @ e.T
    x.T @ (a @ x)


def median(function, *arguments):
    times = []
    for _ in range(7):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
print(f"numpy {numpy.__version__}, {threads} threads")
generator = numpy.random.default_rng(1)
for patients, features in [(735, 15), (2000, 50), (2000, 200)]:
    x = generator.normal(size=(patients, features))
    w = generator.normal(size=(features, RANK)) / numpy.sqrt(features * RANK)
    y = sides(patients)
    for form in ["InnerProduct", "Distance"]:
        print(f"{patients} x {features}, {form} {median(passed, x, w, y, form) * 1e3:8.2f} ms")
    print(f"{patients} x {features}, products alone {median(products, x, w, y) * 1e3:8.2f} ms")
