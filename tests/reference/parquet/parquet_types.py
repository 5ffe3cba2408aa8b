"""Parquet files with a column of every type that a site reads, and of some that it does not, as pyarrow and pandas write them.

Run: python parquet_types.py, with pyarrow 26.0.1 and pandas 3.1.1. Each file has three patients, the last without a value in most
columns; what is wanted stands in site-agent/tests/parquet_types.rs, by hand.
"""

import datetime
import decimal
import pathlib

import numpy
import pandas
import pyarrow
import pyarrow.parquet

FOLDER = pathlib.Path(__file__).parent
DAY = datetime.date(1960, 2, 29)
# A minute before midnight, so that an hour of a zone changes the day.
LATE = datetime.datetime(1960, 2, 29, 23, 59)
LENGTH = datetime.timedelta(days=2)


def column(kind, *values):
    return pyarrow.array([*values, None], kind)


def times(kind):
    return column(kind, LATE, datetime.datetime(2024, 12, 31, 0, 0))


table = pyarrow.table(
    {
        "id": pyarrow.array([11, 12, 13]),
        "outcome": pyarrow.array([0.5, 1.5, 2.5]),
        "int8": column(pyarrow.int8(), -8, 127),
        "int16": column(pyarrow.int16(), -16, 32767),
        "int32": column(pyarrow.int32(), -32, 2**31 - 1),
        "int64": column(pyarrow.int64(), -64, 2**53),
        "uint8": column(pyarrow.uint8(), 8, 255),
        "uint16": column(pyarrow.uint16(), 16, 65535),
        "uint32": column(pyarrow.uint32(), 32, 2**32 - 1),
        "uint64": column(pyarrow.uint64(), 64, 2**64 - 2048),
        "half": column(pyarrow.float16(), numpy.float16(-1.5), numpy.float16(6e-8)),
        "single": column(pyarrow.float32(), 63.1, -0.1),
        "double": column(pyarrow.float64(), 233.5, -1e300),
        "truth": column(pyarrow.bool_(), True, False),
        "decimal_short": column(pyarrow.decimal128(5, 2), decimal.Decimal("-0.05"), decimal.Decimal("123.45")),
        "decimal_long": column(
            pyarrow.decimal128(38, 4), decimal.Decimal("-1.5"), decimal.Decimal("12345678901234567890.1234")
        ),
        "decimal_longest": column(
            pyarrow.decimal256(76, 6), decimal.Decimal("-2.25"), decimal.Decimal("1" + 60 * "0")
        ),
        "text_number": column(pyarrow.string(), "5", "7.25"),
        "text_large": column(pyarrow.large_string(), "5", "7.25"),
        "text_view": column(pyarrow.string_view(), "5", "7.25"),
        "text_dictionary": column(pyarrow.string(), "5", "7.25").dictionary_encode(),
        "number_dictionary": column(pyarrow.int64(), 5, 7).dictionary_encode(),
        "nothing": pyarrow.nulls(3),
        "day": column(pyarrow.date32(), DAY, datetime.date(2024, 12, 31)),
        "day_in_milliseconds": column(pyarrow.date64(), DAY, datetime.date(2024, 12, 31)),
        "seconds": times(pyarrow.timestamp("s")),
        "milliseconds": times(pyarrow.timestamp("ms")),
        "microseconds": times(pyarrow.timestamp("us")),
        "nanoseconds": times(pyarrow.timestamp("ns")),
        "utc": times(pyarrow.timestamp("us", "UTC")),
        "ahead": times(pyarrow.timestamp("us", "+01:00")),
        "behind": times(pyarrow.timestamp("us", "-01:00")),
        "berlin": times(pyarrow.timestamp("us", "Europe/Berlin")),
        "duration": column(pyarrow.duration("ns"), LENGTH, LENGTH),
        "clock": column(pyarrow.time64("us"), datetime.time(8), datetime.time(9)),
        "bytes": column(pyarrow.binary(), b"5", b"7"),
        "list": column(pyarrow.list_(pyarrow.int64()), [1], []),
        "struct": column(pyarrow.struct([("part", pyarrow.int64())]), {"part": 1}, {"part": 2}),
        "map": column(pyarrow.map_(pyarrow.string(), pyarrow.int64()), [("a", 1)], []),
    }
)
pyarrow.parquet.write_table(table, FOLDER / "types.parquet")

# Times of 96 bits, as older programs write them.
old = table.select(["id", "outcome", "microseconds", "ahead"])
pyarrow.parquet.write_table(old, FOLDER / "old_times.parquet", use_deprecated_int96_timestamps=True)

# A data frame as most people write it: in pandas, a duration is a column like any other.
frame = pandas.DataFrame(
    {
        "id": [11, 12, 13],
        "outcome": [0.5, 1.5, 2.5],
        "stay": pandas.to_timedelta([1, 2, 3], unit="D"),
        "level": pandas.Categorical(["5", "7", "5"]),
    }
)
frame.to_parquet(FOLDER / "frame.parquet", index=False)

# The same numbers, in pages of either version, by every codec and encoding that a site reads. Enough rows for several
# batches, row groups and pages.
ROWS = 9_500
rows = numpy.arange(ROWS, dtype=numpy.int32)
number = (rows % 1_000) / 8
many = pyarrow.table(
    {
        "id": rows,
        "outcome": rows % 100 * 0.5,
        "number": pyarrow.array(number, mask=rows % 7 == 0),
        "whole": rows % 50 - 25,
        "word": [str(one) for one in rows % 90],
    }
)
plain = {"use_dictionary": False}
for name, options in {
    "none": {"compression": "NONE"},
    "snappy": {"compression": "SNAPPY"},
    "gzip": {"compression": "GZIP"},
    "zstd": {"compression": "ZSTD"},
    "lz4": {"compression": "LZ4"},
    "delta": {
        "compression": "ZSTD",
        "column_encoding": {
            "id": "DELTA_BINARY_PACKED",
            "outcome": "BYTE_STREAM_SPLIT",
            "number": "BYTE_STREAM_SPLIT",
            "whole": "DELTA_BINARY_PACKED",
            "word": "DELTA_BYTE_ARRAY",
        },
        **plain,
    },
    "second_version": {"compression": "ZSTD", "data_page_version": "2.0"},
    "plain": {"compression": "ZSTD", **plain},
}.items():
    pyarrow.parquet.write_table(
        many, FOLDER / f"many_{name}.parquet", row_group_size=9_000, data_page_size=4_096, **options
    )
