"""Theorems: bounds that hold before a run, and the certificate that a run itself proves.

D is the diameter of K, L_f and L_g are Lipschitz constants of the losses and constraints over K (G of both), and some
point of K satisfies every constraint. `bounds` and the certificate are for CLASP with steps that never increase,

    x_{t+1} = P_{K ∩ {g_t ≤ 0}}( x_t − η_t ∇f_t(x_t) );

the other functions are for other algorithms; `dynamic_bounds`, on the regret against a comparator that moves, for all.

Which violation to bound? With T rounds and |g_t| ≤ B over K,

    CCV₁ ≤ √(T · CCV₂)    and    CCV₂ ≤ B · CCV₁,

so a bound on either gives one on the other. CCV₂ = O(log T) is the stronger statement about each round: at most CCV₂/ε²
rounds violate by more than ε, and CCV₁ = O(√(T log T)) follows. CCV₁ = O(√T) is the stronger one about the total, but
from it CCV₂ = O(√T) at best: it allows rare large violations as well as many small ones. Where a violation's
cost grows with its size (heat, debt, overload), CCV₂ is the measure; where it is paid by the unit, CCV₁ is. Both depend
on the scale of g (g → c g makes them |c| CCV₁ and c² CCV₂): put constraints in units in which 1 is a violation that
matters. The violation of round 1 belongs to the start point, not to the method, and can dominate CCV₂.
"""

from cocopt.theory.adagrad import bounds_adagrad
from cocopt.theory.base import Bounds
from cocopt.theory.certificate import Certificate
from cocopt.theory.clasp import bounds
from cocopt.theory.clasp_f import bounds_clasp_f
from cocopt.theory.coldq import bounds_coldq
from cocopt.theory.double_q import bounds_double_q
from cocopt.theory.dynamic import dynamic_bounds
from cocopt.theory.jenatton import bounds_jenatton
from cocopt.theory.mahdavi import bounds_mahdavi
from cocopt.theory.polyak import bounds_polyak
from cocopt.theory.recoo import bounds_recoo
from cocopt.theory.yi2021 import bounds_yi2021
from cocopt.theory.yu_lee_lee import bounds_yu_lee_lee
from cocopt.theory.yu_neely import bounds_yu_neely
from cocopt.theory.yuan_lamperski import bounds_yuan_lamperski

__all__ = [
    "Bounds",
    "Certificate",
    "bounds",
    "bounds_adagrad",
    "bounds_clasp_f",
    "bounds_coldq",
    "bounds_double_q",
    "bounds_jenatton",
    "bounds_mahdavi",
    "bounds_polyak",
    "bounds_recoo",
    "bounds_yi2021",
    "bounds_yu_lee_lee",
    "bounds_yu_neely",
    "bounds_yuan_lamperski",
    "dynamic_bounds",
]
