"""What is known about an algorithm: rates, needs, the work per round, and how sure its update is.

Every registered algorithm of the package has such a record, `Learner.facts`. ``cocopt list algorithms``, the docs and
the comparison of measured with promised growth all read it.
"""

from __future__ import annotations

from fractions import Fraction
from math import isclose
from typing import Literal, NamedTuple

__all__ = ["Facts", "Rate", "Rates"]

_SUPERSCRIPT = {Fraction(1, 2): "√T", Fraction(1): "T", Fraction(0): ""}


class Rate(NamedTuple):
    """O(T^power (log T)^logs).

    Examples
    --------
    >>> from cocopt.algorithms.facts import Rate
    >>> print(Rate(0.5), Rate(0.75, 1), Rate(0, 1), Rate(0), Rate(0.5, 0.5))
    √T T^(3/4) log T log T 1 √(T log T)
    """

    power: float
    logs: float = 0.0

    def __str__(self) -> str:
        if self == (0.5, 0.5):
            return "√(T log T)"
        share = Fraction(self.power).limit_denominator(60)
        exact = isclose(share, self.power, abs_tol=1e-9)
        power = _SUPERSCRIPT.get(share, f"T^({share})") if exact else f"T^{self.power:.3g}"
        logs = "" if self.logs == 0 else "log T" if self.logs == 1 else f"(log T)^{self.logs:g}"
        return " ".join(part for part in (power, logs) if part) or "1"


class Rates(NamedTuple):
    """The rates that are proved for each metric; None where nothing is."""

    regret: Rate | None = None
    ccv1: Rate | None = None
    ccv2: Rate | None = None
    ccv_soft: Rate | None = None

    @classmethod
    def from_squares(cls, regret: Rate, ccv2: Rate) -> Rates:
        """With CCV₁ ≤ √(T · CCV₂).

        Examples
        --------
        >>> from cocopt.algorithms.facts import Rate, Rates
        >>> print(Rates.from_squares(Rate(0.5), Rate(0.5)))
        regret √T, CCV₁ T^(3/4), CCV₂ √T
        """
        return cls(regret, Rate((1.0 + ccv2.power) / 2, ccv2.logs / 2), ccv2)

    @classmethod
    def from_sums(cls, regret: Rate, ccv1: Rate) -> Rates:
        """With CCV₂ ≤ B · CCV₁, B the largest value of a constraint on K."""
        return cls(regret, ccv1, ccv1)

    def __str__(self) -> str:
        names = {"regret": "regret", "ccv1": "CCV₁", "ccv2": "CCV₂", "ccv_soft": "soft CCV"}
        return ", ".join(f"{names[key]} {rate}" for key, rate in self._asdict().items() if rate is not None)


class Facts(NamedTuple):
    """A record of what is known about an algorithm with its default options.

    Attributes
    ----------
    year : int
        Of its publication.
    oracle : str
        What a round costs: the operations on K, the loss and the constraint.
    provenance : str
        Where the update and the constants were found, and what is reconstructed here.
    convex, strongly_convex : Rates or None
        What is proved for convex and for strongly convex losses.
    constraints : "dynamic" or "static"
        Whether the constraint may change from round to round.
    assumes : str
        What a theorem needs beyond convexity, a finite diameter and a point that satisfies all constraints.
    """

    year: int
    oracle: str
    provenance: str
    convex: Rates | None = None
    strongly_convex: Rates | None = None
    constraints: Literal["dynamic", "static"] = "dynamic"
    assumes: str = ""
