"""A small matrix as NumPy writes it. Run in this folder: python matrix.py, with NumPy 2.4.6."""

import numpy

numpy.save("matrix.npy", numpy.array([[0.0, -1.5, 1e300], [numpy.inf, 0.1, 2.0]]))
