"""What covering a vector costs a client of Flower's SecAgg+, by its own functions and default settings, beside `cargo bench -p privacy`.

Run from the workspace, after it: python shared/privacy/benches/masks.py   (needs flwr; tried with 1.41.0 and NumPy 2.4). The steps are those of
`_collect_masked_vectors`: quantize to 22 bits, add a mask of the client's own, and add or subtract one for each neighbour (agreement of
keys included). SecAgg+ covers 32-bit integers modulo 2^32, rounded at random; ours are exact words of 128 bits.
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import parameters_addition, parameters_subtraction
from flwr.common.secure_aggregation.quantization import quantize
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
from flwr.supercore.primitives.asymmetric import (
    bytes_to_private_key,
    bytes_to_public_key,
    generate_key_pairs,
    private_key_to_bytes,
    public_key_to_bytes,
)

CLIPPING, TARGET, MODULUS = 8.0, 1 << 22, 1 << 32
CASES = [(3, 1_000_000), (4, 1_000), (50, 10_000), (50, 10_100), (4, 320_000)]


def covered(numbers, own, others):
    began = time.perf_counter()
    words = quantize([numbers], CLIPPING, TARGET)
    quantized = time.perf_counter()
    shape = [numbers.shape]
    words = parameters_addition(words, pseudo_rand_gen(os.urandom(32), MODULUS, shape))
    for place, other in enumerate(others):
        key = generate_shared_key(bytes_to_private_key(own), bytes_to_public_key(other))
        step = parameters_addition if place % 2 else parameters_subtraction
        words = step(words, pseudo_rand_gen(key, MODULUS, shape))
    return quantized - began, time.perf_counter() - quantized


print("sites    numbers   quantize      cover      (milliseconds, best of five)")
for sites, count in CASES:
    numbers = numpy.arange(count) / 1024.0 % 8
    own = private_key_to_bytes(generate_key_pairs()[0])
    others = [public_key_to_bytes(generate_key_pairs()[1]) for _ in range(sites - 1)]
    best = numpy.min([covered(numbers, own, others) for _ in range(5)], axis=0) * 1e3
    print(f"{sites:5}  {count:9}  {best[0]:9.2f}  {best[1]:9.2f}")
