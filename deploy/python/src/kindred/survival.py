"""Kaplan-Meier curves by group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

# The 97.5th percentile of a standard normal distribution.
_Z = 1.959963984540054


def kaplan_meier(
    time: pd.Series[Any], event: pd.Series[Any], group: pd.Series[Any] | None = None
) -> pd.DataFrame:
    """Give the survival of each group at its times, with log-log intervals of 95 %.

    The columns are those of R's `survfit(Surv(time, event) ~ group, conf.type = "log-log")`.
    """
    groups = pd.Series("all", index=time.index) if group is None else group
    frame = pd.DataFrame({"group": groups, "time": time.astype(float), "event": event.astype(float)})
    curves = [_curve(name, own) for name, own in frame.groupby("group", sort=True, observed=True)]
    return pd.concat(curves, ignore_index=True)


def _curve(name: Any, own: pd.DataFrame) -> pd.DataFrame:
    counts = own.groupby("time")["event"].agg(["size", "sum"])
    ended, events = counts["size"].to_numpy(), counts["sum"].to_numpy()
    at_risk = len(own) - np.concatenate([[0], np.cumsum(ended)[:-1]])
    survival = np.cumprod(1 - events / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = np.sqrt(np.cumsum(events / (at_risk * (at_risk - events))))
        width = _Z * greenwood / np.log(survival)
        low, high = survival ** np.exp(-width), survival ** np.exp(width)
    inside = (survival > 0) & (survival < 1)
    return pd.DataFrame(
        {
            "group": name,
            "time": counts.index.to_numpy(),
            "at_risk": at_risk,
            "events": events.astype(int),
            "survival": survival,
            "low": np.where(inside, low, np.where(survival == 1, 1.0, np.nan)),
            "high": np.where(inside, high, np.where(survival == 1, 1.0, np.nan)),
        }
    )
