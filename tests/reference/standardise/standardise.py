"""Expected mean, scale, imputed value and standardised columns of every treatment, from NumPy alone.

Run in this folder: python standardise.py
It writes one table a site (north, south, east) and expected.json. The expected numbers are of all
patients stacked in one table, which no site of a federation has.
"""

import csv
import json
import sys

import numpy

PATIENTS = {"north": 90, "south": 70, "east": 80}
COLUMNS = ["disease", "age", "crp", "chol", "bp", "ferritin", "oldpeak", "grade", "thal"]
GRADES = ["low", "mid", "high"]
# The interquartile range of the standard normal distribution.
NORMAL_RANGE = 1.3489795003921634
generator = numpy.random.default_rng(20261121)


def without(values, count):
    """The same values, `count` of them missing."""
    values = values.astype(object)
    values[generator.choice(len(values), count, replace=False)] = None
    return values


def site(count, shift):
    latent = generator.normal(size=count)
    disease = (latent + generator.normal(scale=0.8, size=count) > 0).astype(int)
    bp = numpy.round(generator.normal(130 + shift, 15, count), 0)
    bp[:4] = 290  # a few extreme values, which a robust scale must not follow
    grade = numpy.digitize(latent + generator.normal(size=count), [-0.3, 1.2])
    return {
        "disease": disease.astype(object),
        "age": numpy.round(generator.normal(55 + shift, 9, count), 1).astype(object),
        "crp": without(numpy.round(numpy.exp(generator.normal(1 + latent, 1.2)), 2), 15),
        "chol": without(numpy.round(generator.normal(220 + 5 * shift, 40, count), 1), 12),
        "bp": bp.astype(object),
        "ferritin": without(numpy.round(numpy.exp(generator.normal(4, 1, count)), 1), 14),
        "oldpeak": without(numpy.round(numpy.abs(latent) + generator.normal(1, 0.3, count), 2), 20),
        "grade": without(numpy.array(GRADES)[grade], 11),
        "thal": without(numpy.array(["a", "b", "c"])[generator.integers(0, 3, count)], 13),
    }


sites = {name: site(count, shift) for (name, count), shift in zip(PATIENTS.items(), [0, 4, -3])}
for name, table in sites.items():
    with open(f"{name}.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in zip(*(table[column] for column in COLUMNS)):
            writer.writerow("" if value is None else value for value in row)

stacked = {column: numpy.concatenate([table[column] for table in sites.values()]) for column in COLUMNS}


def numbers(column, logarithm=False):
    values = stacked[column]
    if column == "grade":
        values = [None if value is None else GRADES.index(value) for value in values]
    values = numpy.array([numpy.nan if value is None else value for value in values], dtype=float)
    return numpy.log1p(values) if logarithm else values


def row(name, values, imputed, mean=None, scale=None):
    """Imputes, then scales by what was given, or by mean and standard deviation after imputation."""
    filled = numpy.where(numpy.isnan(values), imputed, values)
    mean = filled.mean() if mean is None else mean
    scale = filled.std() if scale is None else scale
    rows[name] = {"mean": mean, "scale": scale, "imputed": imputed, "x": list((filled - mean) / scale)}


def quartiles(values):
    return [float(q) for q in numpy.nanpercentile(values, [25, 50, 75])]


rows, known = {}, {}
row("age", numbers("age"), numbers("age").mean())
crp = numbers("crp", logarithm=True)
row("crp", crp, numpy.nanmean(crp))
for name, logarithm, impute_median, robust in [
    ("chol", False, True, False),
    ("bp", False, False, True),
    ("ferritin", True, True, True),
    ("grade", False, True, False),
]:
    values = numbers(name, logarithm)
    lower, median, upper = known[name] = quartiles(values)
    imputed = median if impute_median else numpy.nanmean(values)
    if robust:
        row(name, values, imputed, median, (upper - lower) / NORMAL_RANGE)
    else:
        row(name, values, imputed)
oldpeak = numbers("oldpeak")
row("oldpeak", oldpeak, numpy.nanmean(oldpeak))
row("oldpeak=missing", numpy.isnan(oldpeak).astype(float), 1.0)
thal = stacked["thal"]
present = [value for value in thal if value is not None]
mode = max("abc", key=present.count)
for level in "abc":
    values = numpy.array([numpy.nan if value is None else float(value == level) for value in thal])
    row(f"thal={level}", values, float(level == mode))
row("thal=missing", numpy.array([float(value is None) for value in thal]), 1.0)

missing = {
    name: {column: sum(value is None for value in table[column]) / PATIENTS[name] for column in COLUMNS[1:]}
    for name, table in sites.items()
}
with open("expected.json", "w") as file:
    versions = {"python": sys.version.split()[0], "numpy": numpy.__version__}
    json.dump({"versions": versions, "rows": rows, "quartiles": known, "missing": missing}, file, indent=1)
    file.write("\n")
