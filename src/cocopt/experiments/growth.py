"""How a metric grows: the slope of log(mean) against log(T), by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.tolerances import FEASIBILITY

__all__ = ["Growth", "along"]

_POINTS = 12  # of a curve, geometrically spaced, so that late rounds do not outweigh the others


class Growth(NamedTuple):
    """How a metric grows with the horizon.

    Attributes
    ----------
    exponent : float or None
        The slope of log(mean) against log(T); None where the mean is not positive at every horizon.
    text : str
        The exponent, or why there is none.
    """

    exponent: float | None
    text: str

    @classmethod
    def fit(cls, horizons: Sequence[int], means: Sequence[float]) -> Growth:
        """The exponent of these means.

        Examples
        --------
        >>> from cocopt.experiments.growth import Growth
        >>> Growth.fit([100, 400, 1600], [10.0, 20.0, 40.0])
        Growth(exponent=0.5, text='0.50')
        >>> Growth.fit([100, 400, 1600], [10.0, 20.0, -40.0]).text
        'negative'
        """
        if not np.isfinite(means).all():
            return cls(None, "undefined")
        if (np.abs(means) <= FEASIBILITY * np.asarray(horizons)).all():  # what projections are accurate to, per round
            return cls(None, "zero")
        if min(means) <= 0.0:
            return cls(None, "negative" if means[-1] < 0.0 else "changes sign")
        if len(horizons) < 2:
            return cls(None, "undefined")
        exponent = float(np.polyfit(np.log(horizons), np.log(means), 1)[0])
        return cls(exponent, f"{round(exponent, 2) + 0.0:.2f}")  # 0.00, not −0.00


def along(rounds: Array, means: Array) -> Growth:
    """The growth of one curve over the last nine tenths of its rounds: from T/10 to T.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.experiments.growth import along
    >>> t = np.arange(1, 1001)
    >>> along(t, 5.0 * np.sqrt(t)).text
    '0.50'
    """
    late = np.flatnonzero(rounds >= rounds[-1] / 10)
    wanted = np.geomspace(rounds[late[0]], rounds[-1], _POINTS)
    chosen = np.unique(late[np.abs(rounds[late, None] - wanted).argmin(axis=0)])
    return Growth.fit(rounds[chosen].tolist(), means[chosen].tolist())
