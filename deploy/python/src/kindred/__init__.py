"""Kindred's runs as data frames, figures and scikit-learn estimators. Nothing is sent anywhere by reading."""

from .cases import Answer, cluster, match, predict, similar
from .forest import Forest
from .job import Job
from .metric import Metric
from .programs import KindredError, local, simulate, submit, synthesise
from .regression import Cox, Regression
from .run import Absent, Outcome, Run, Site, load, schema
from .study import Study
from .survival import kaplan_meier

__all__ = [
    "Absent",
    "Answer",
    "Cox",
    "Forest",
    "Job",
    "KindredError",
    "Metric",
    "Outcome",
    "Regression",
    "Run",
    "Site",
    "Study",
    "cluster",
    "kaplan_meier",
    "load",
    "local",
    "match",
    "predict",
    "schema",
    "similar",
    "simulate",
    "submit",
    "synthesise",
]
