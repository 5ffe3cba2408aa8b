"""Quartiles of skewed values of four unequal sites, by NumPy: writes quantile.json beside this file."""

import json
import pathlib

import numpy

generator = numpy.random.default_rng(20240501)
sites = [numpy.round(generator.lognormal(1.2, 0.7, size), 4) for size in (260, 180, 120, 40)]
sites = [numpy.minimum(site, 50.0) for site in sites]
reference = {
    "numpy": numpy.__version__,
    "sites": [site.tolist() for site in sites],
    "quartiles": numpy.quantile(numpy.concatenate(sites), [0.25, 0.5, 0.75]).tolist(),
}
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(reference) + "\n")
