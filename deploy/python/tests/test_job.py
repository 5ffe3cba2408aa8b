"""Promise: values are read as the programs read them, and no error shows one."""

import datetime

import numpy as np
import pandas as pd
import pytest
from conftest import job

from kindred import Job

SAMPLE = pd.DataFrame(
    {
        "born": ["1960-02-29", None],
        "sex": ["m", "f"],
        "stage": ["III", "I"],
        "crp": [1.5, 41.0],
        "bp": [-9.0, 120.0],
        "ward": ["c", np.nan],
    }
)


def test_each_kind_of_feature_becomes_a_number():
    found = Job.read(job("forest", "class")).table(SAMPLE)
    age = (datetime.date(2020, 12, 31) - datetime.date(1960, 2, 29)).days / 365.2425
    wanted = [[age, 1, 2, np.log1p(1.5), np.nan, 2], [np.nan, 0, 0, np.nan, 120, np.nan]]
    np.testing.assert_array_equal(found, wanted)


def test_whole_numbers_are_the_levels_that_they_spell():
    text = job("forest", "class").replace('["a", "b", "c"]', '["1", "2", "3"]')
    frame = SAMPLE.assign(ward=[2, np.nan], born=pd.to_datetime(SAMPLE["born"]))
    found = Job.read(text).table(frame)
    assert found[0, 5] == 1
    spelt = Job.read(text).table(SAMPLE.assign(ward=["2.0", None], bp=["-9.00", 1]))
    np.testing.assert_array_equal(spelt[0, 4:], [np.nan, 1])
    assert found[0, 0] == Job.read(text).table(SAMPLE.assign(ward=["2", ""]))[0, 0]


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        ("bp", "secret", "numbers"),
        ("crp", "nan secret", "numbers"),
        ("ward", "secret", "levels"),
        ("born", "secret", "dates"),
        ("sex", "secret", "levels"),
    ],
)
def test_a_value_that_cannot_be_read_is_counted_and_not_shown(column, value, wanted):
    frame = SAMPLE.astype(object)
    frame.loc[0, column] = value
    with pytest.raises(ValueError, match=wanted) as error:
        Job.read(job("forest", "class")).table(frame)
    assert f"column {column}: 1 values" in str(error.value)
    assert "secret" not in str(error.value)


def test_tables_with_other_columns_are_refused_by_name():
    read = Job.read(job("forest", "class"))
    with pytest.raises(ValueError, match="no column crp, ward"):
        read.table(SAMPLE.drop(columns=["crp", "ward"]))
    with pytest.raises(ValueError, match=r"shape \(2, 3\), wanted \(n, 6\)"):
        read.table(np.zeros((2, 3)))


def test_a_job_of_a_study_takes_outcome_and_features_from_it():
    study = 'name = "s"\n[[outcomes]]\nname = "y"\ncolumn = "c"\nkind = "numeric"\n'
    study += "".join(f'[[features]]\nname = "{name}"\nkind = "numeric"\n' for name in "abc")
    follows = "\n# The study, as its hospitals approved it:\n"
    own = 'name = "j"\nmethod = "forest"\nstudy = "s"\noutcome = "y"\n'
    assert Job.read(own + follows + study).names == ["a", "b", "c"]
    some = Job.read(own + 'features = ["c", "a"]\n' + follows + study)
    assert (some.names, some.outcome["column"]) == (["a", "c"], "c")


def test_labels_are_those_that_people_read():
    labels = Job.read(job("forest", "class")).labels()
    assert (labels["born"], labels["bp"], labels["ward=a"]) == ("Age", "bp (mmHg)", "ward: surgery")
    assert labels["bp=missing"] == "bp (mmHg): missing"


def test_followed_patients_have_a_time_and_an_event():
    frame = pd.DataFrame({"days": [3.5, np.nan], "died": [1, 0]})
    found = Job.read(job("forest", "survival")).followed(frame)
    assert found["event"].tolist() == [1.0, 0.0]
    assert found["time"].isna().tolist() == [False, True]
    with pytest.raises(ValueError, match="outcome is binary"):
        Job.read(job("forest", "class")).followed(frame)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_number_is_finite(value):
    with pytest.raises(ValueError, match="column bp: 1 values are not numbers"):
        Job.read(job("forest", "class")).table(SAMPLE.astype(object).assign(bp=[value, 1]))
