"""Writes or reads the files of read_cohort.rs with pandas: read_cohort.py FOLDER [write]."""

import pathlib
import resource
import sys
import time

import numpy
import pandas

ROWS, FEATURES = 1_000_000, 100
folder = pathlib.Path(sys.argv[1])

if sys.argv[2:] == ["write"]:
    generator = numpy.random.default_rng(1)
    columns = {"id": numpy.arange(ROWS)}
    for feature in range(FEATURES):
        values = numpy.round(generator.lognormal(3, 1, ROWS), 3)
        values[generator.random(ROWS) < 0.05] = numpy.nan
        columns[f"x{feature:02}"] = values
    columns["outcome"] = generator.integers(0, 2, ROWS)
    table = pandas.DataFrame(columns)
    table.to_csv(folder / "patients.csv", index=False)
    table.to_parquet(folder / "patients.parquet", index=False)
else:
    for name, read in (("csv", pandas.read_csv), ("parquet", pandas.read_parquet)):
        start = time.perf_counter()
        rows = len(read(folder / f"patients.{name}"))
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"{name}: pandas {pandas.__version__}, {rows} rows, {seconds:.2f} s, "
            f"{rows / seconds:.0f} rows/s, at most {memory} MiB"
        )
