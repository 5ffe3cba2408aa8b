"""How well any one squared distance can tell similar synthetic pairs (section 5.2 of the paper) from others: the generator's own M,
with the best threshold of the training pairs, on the pairs of test patients. Five data sets of each d.

As run with Python 3.11, NumPy 2.4 and SciPy 1.17:

    d = 20: 0.752 by the distance under the true M, 0.998 by its cosine; half of the pairs are similar (0.512)
    d = 40: 0.745, 0.999; 0.505
    d = 60: 0.749, 1.000; 0.503
"""
import numpy as np
from scipy.spatial.distance import pdist, squareform

PATIENTS, TRAINING, REPEATS = 400, 200, 5


def threshold(values, similar):
    """The limit below which pairs are called similar, best on these pairs."""
    order = np.argsort(values)
    gain = np.cumsum(np.where(similar[order], 1, -1))
    return values[order][np.argmax(gain)]


def accuracy(measure, projected):
    pairs = np.triu_indices(TRAINING, 1)
    parts = projected[:TRAINING], projected[TRAINING:]
    (values, similar), (asked, truth) = [(measure(part)[pairs], (part @ part.T >= 1)[pairs]) for part in parts]
    return np.mean((asked <= threshold(values, similar)) == truth), truth.mean()


def distance(part):
    return squareform(pdist(part, "sqeuclidean"))


def opposite_cosine(part):
    unit = part / np.linalg.norm(part, axis=1, keepdims=True)
    return -unit @ unit.T


random = np.random.default_rng(5)
for base in (20, 40, 60):
    found = []
    for _ in range(REPEATS):
        first, second = random.normal(size=(2, PATIENTS, base))
        third = 0.5 * (first + second) + random.normal(-0.1, np.sqrt(0.1), size=(PATIENTS, base))
        metric = np.zeros((3 * base, 3 * base))
        metric[: 2 * base] = random.uniform(-0.5, 0.5, size=(2 * base, 3 * base))
        projected = np.hstack([first, second, third]) @ metric
        by_distance, similar = accuracy(distance, projected)
        found.append((by_distance, accuracy(opposite_cosine, projected)[0], max(similar, 1 - similar)))
    print(f"d = {base}: distance {{:.3f}}, cosine {{:.3f}}, majority {{:.3f}}".format(*np.mean(found, axis=0)))
