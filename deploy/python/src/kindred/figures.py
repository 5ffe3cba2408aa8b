"""Figures in one style. Each draws on `axes`, or on a new figure, and gives its axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes

# Okabe and Ito's colours, which readers with any colour vision distinguish.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]

_STYLE: Any = {
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "font.size": 10.0,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


@contextmanager
def _axes(axes: Axes | None, rows: int = 12) -> Iterator[Axes]:
    # No other setting is restored: the backend of a notebook sets its own with the first figure.
    before = {key: plt.rcParams[key] for key in _STYLE}
    plt.rcParams.update(_STYLE)
    try:
        yield plt.subplots(figsize=(6.4, 1.2 + 0.28 * rows))[1] if axes is None else axes
    finally:
        plt.rcParams.update(before)


def bars(values: pd.Series[float], title: str, axes: Axes | None = None, most: int = 20) -> Axes:
    """Draw the largest values as bars, the largest on top."""
    shown = values.sort_values().tail(most)
    with _axes(axes, len(shown)) as drawn:
        drawn.barh([str(name) for name in shown.index], shown.to_numpy(), height=0.6)
        drawn.set_xlabel(title)
        return drawn


def intervals(frame: pd.DataFrame, title: str, zero: float | None, axes: Axes | None = None) -> Axes:
    """Draw `value` with `low` and `high`, one row each, and a line at `zero`, where there is no effect."""
    with _axes(axes, len(frame)) as drawn:
        places = np.arange(len(frame))[::-1]
        away = np.abs(frame[["low", "high"]].to_numpy().T - frame["value"].to_numpy())
        drawn.errorbar(frame["value"].to_numpy(), places, xerr=away, fmt="o", capsize=3)
        if zero is not None:
            drawn.axvline(zero, color="0.6", linewidth=1, zorder=0)
        drawn.set_yticks(places, [str(name) for name in frame.index])
        drawn.set_xlabel(title)
        return drawn


def love(before: pd.Series[float], after: pd.Series[float], axes: Axes | None = None) -> Axes:
    """Draw absolute standardised differences before and after matching."""
    order = before.abs().sort_values().index
    with _axes(axes, len(order)) as drawn:
        for values, name, marker in [(before, "before", "o"), (after, "after", "D")]:
            drawn.plot(values[order].abs().to_numpy(), [str(one) for one in order], marker, label=name)
        drawn.axvline(0.1, color="0.6", linewidth=1, zorder=0)
        drawn.set_xlabel("Absolute standardised difference")
        drawn.legend()
        return drawn


def curves(survival: pd.DataFrame, time: str, axes: Axes | None = None) -> Axes:
    """Draw Kaplan-Meier curves with their intervals, one per group."""
    with _axes(axes) as drawn:
        for name, own in survival.groupby("group", sort=True, observed=True):
            times = np.concatenate([[0.0], own["time"].to_numpy()])
            start = np.ones(1)
            line = drawn.step(
                times, np.concatenate([start, own["survival"].to_numpy()]), where="post", label=str(name)
            )
            low, high = (np.concatenate([start, own[end].to_numpy()]) for end in ("low", "high"))
            drawn.fill_between(
                times, low, high, step="post", alpha=0.15, color=line[0].get_color(), linewidth=0
            )
        drawn.set(xlabel=time, ylabel="Survival", ylim=(0, 1.02))
        drawn.legend()
        return drawn


def shares(frame: pd.DataFrame, title: str, axes: Axes | None = None) -> Axes:
    """Draw shares of each row's patients as stacked bars."""
    with _axes(axes, len(frame)) as drawn:
        left = np.zeros(len(frame))
        for name in frame.columns:
            drawn.barh(
                [str(one) for one in frame.index],
                frame[name].to_numpy(),
                left=left,
                label=str(name),
                height=0.6,
            )
            left += frame[name].to_numpy()
        drawn.set(xlabel=title, xlim=(0, 1))
        drawn.invert_yaxis()
        drawn.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        return drawn
