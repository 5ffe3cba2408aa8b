"""The low-rank sparse similarity by CVXPY: objective, G and M on small problems of several shapes.

Run: python low_rank.py > low_rank.json
"""

import json
import sys

import cvxpy
import numpy

CASES = [  # patients, features, classes, lambda_n, lambda_r
    (24, 4, 2, 0.02, 0.01),
    (20, 6, 3, 0.005, 0.12),
    (16, 5, 2, 0.03, 0.0),
    (18, 8, 3, 0.01, 0.002),
]
generator = numpy.random.default_rng(20161212)


def problem(count, features, classes, nuclear, rows):
    codes = numpy.arange(count) % classes
    x = generator.normal(size=(count, features))
    x[:, 0] += 1.5 * codes
    x[:, 1] *= 2.0
    g = cvxpy.Variable((features, features), symmetric=True)
    m = cvxpy.Variable((features, features), PSD=True)
    pairs = [(i, j) for i in range(count) for j in range(i)]
    sign = numpy.array([1.0 if codes[i] == codes[j] else -1.0 for i, j in pairs])
    inner = numpy.array([numpy.outer(x[i], x[j]).ravel() for i, j in pairs])
    away = numpy.array([numpy.outer(x[i] - x[j], x[i] - x[j]).ravel() for i, j in pairs])
    s = inner @ cvxpy.vec(g, order="C") - away @ cvxpy.vec(m, order="C")
    loss = cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(sign, s))) / len(pairs)
    ranks = cvxpy.normNuc(g) + cvxpy.normNuc(m)
    lengths = cvxpy.sum(cvxpy.norm(cvxpy.hstack([g, m]), 2, axis=1))
    asked = cvxpy.Problem(cvxpy.Minimize(loss + nuclear * ranks + rows * lengths))
    asked.solve(solver="CLARABEL", tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    print(asked.status, asked.value, numpy.linalg.norm(numpy.hstack([g.value, m.value]), axis=1), file=sys.stderr)
    return {
        "patients": x.tolist(),
        "codes": codes.tolist(),
        "nuclear": nuclear,
        "rows": rows,
        "objective": asked.value,
        "similarity": g.value.tolist(),
        "distance": m.value.tolist(),
    }


versions = {"cvxpy": cvxpy.__version__, "clarabel": __import__("clarabel").__version__, "numpy": numpy.__version__}
json.dump({"versions": versions, "cases": [problem(*case) for case in CASES]}, sys.stdout)
print()
