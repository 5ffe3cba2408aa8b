"""Writes or reads the files of read_cohort.rs and approval.rs: read_cohort.py FOLDER [write [ROWS FEATURES [parquet]]]."""

import pathlib
import resource
import sys
import time

import numpy
import pandas
import pyarrow
import pyarrow.parquet

ROWS_AT_ONCE = 1_000_000
folder = pathlib.Path(sys.argv[1])


def write(rows, features, kinds):
    """Tables of numbers, of which 1 in 20 is missing, piece by piece."""
    generator = numpy.random.default_rng(1)
    writer = None
    for first in range(0, rows, ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, rows - first)
        columns = {"id": numpy.arange(first, first + count)}
        for feature in range(features):
            values = numpy.round(generator.lognormal(3, 1, count), 3)
            values[generator.random(count) < 0.05] = numpy.nan
            columns[f"x{feature:02}"] = values
        columns["outcome"] = generator.integers(0, 2, count)
        table = pandas.DataFrame(columns)
        if "csv" in kinds:
            mode, header = ("w", True) if first == 0 else ("a", False)
            table.to_csv(folder / "patients.csv", index=False, mode=mode, header=header)
        piece = pyarrow.Table.from_pandas(table, preserve_index=False)
        if writer is None:
            path = folder / "patients.parquet"
            writer = pyarrow.parquet.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    writer.close()


if sys.argv[2:3] == ["write"]:
    rows, features = (int(word) for word in sys.argv[3:5] or (1_000_000, 100))
    write(rows, features, sys.argv[5:] or ("csv", "parquet"))
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
