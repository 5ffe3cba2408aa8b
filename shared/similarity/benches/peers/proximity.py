"""fgclustering's proximities of the terminal nodes that `cargo bench --bench forest -- FOLDER proximity` wrote.

Run: NUMBA_NUM_THREADS=2 python proximity.py FOLDER   with fgclustering in the environment. Prints wall and processor seconds
of the second of two calls: the first compiles.
"""

import resource
import sys
import time
from importlib.metadata import version

import numpy as np
from fgclustering.distance import DistanceRandomForestProximity

PATIENTS = 10_000
terminals = np.fromfile(f"{sys.argv[1]}/10000x50.terminals.u32", dtype="<u4").reshape(-1, PATIENTS).T
distance = DistanceRandomForestProximity()
distance.terminals = np.ascontiguousarray(terminals.astype(np.int32))
print("fgclustering", version("fgclustering"))
for call in ("compiling", "compiled"):
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    matrix, _ = distance.calculate_distance_matrix(None)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"proximity n={PATIENTS} T={terminals.shape[1]}, {call}: {wall:.3f} s, processor {used:.3f} s, "
          f"corner {1 - matrix[0, 0]:.4f}, mean {1 - matrix.mean():.6f}")
