"""Eight numbers at once: types that numba compiles to vector instructions, of whatever width the machine has.

In compiled code ``load(a, i)`` is line i of an array of shape (lines, WIDTH), as one value, and ``save`` writes one
back. Arithmetic and comparisons are as usual, number by number; what would be a branch is a `where`. (The compiler
makes vectors of loops by itself, but those over coordinates are too short to gain from it, and those over trials keep
every sum in memory: a line search in ten dimensions takes 4 cycles a trial this way, 11 and more the other.)
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
from __future__ import annotations

import operator

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, models, overload, register_model

__all__ = ["WIDTH", "every", "larger", "load", "root", "save", "size", "smaller", "some", "spread", "where"]

WIDTH = 8
_FAST = ("contract", "nsz")


class Vector(types.Type):
    """The type of eight numbers, or of the eight flags that comparing them yields."""

    def __init__(self, name, element):
        super().__init__(name)
        self.llvm = ir.VectorType(element, WIDTH)


_NUMBERS, _FLAGS = Vector("numbers", ir.DoubleType()), Vector("flags", ir.IntType(1))


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, kind.llvm)


def _place(context, builder, kind, array, line):
    """A pointer to a line."""
    data = context.make_array(kind)(context, builder, array).data
    first = builder.mul(line, ir.Constant(line.type, WIDTH))
    return builder.bitcast(builder.gep(data, [first]), _NUMBERS.llvm.as_pointer())


@intrinsic
def load(typing, array, line):
    """The numbers of a line."""

    def emit(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], *arguments)
        return builder.load(place, align=8, typ=_NUMBERS.llvm)

    return _NUMBERS(array, types.intp), emit


@intrinsic
def save(typing, array, line, value):
    """Writes the numbers of a line."""

    def emit(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], place, align=8)
        return context.get_dummy_value()

    return types.none(array, types.intp, _NUMBERS), emit


@intrinsic
def spread(typing, value):
    """The same number eight times."""

    def emit(context, builder, signature, arguments):
        none, first = ir.Constant(_NUMBERS.llvm, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        places = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(builder.insert_element(none, arguments[0], first), none, places)

    return _NUMBERS(types.float64), emit


@intrinsic
def where(typing, flags, first, second):
    """The first where the flag is set, the second elsewhere."""
    return _NUMBERS(_FLAGS, _NUMBERS, _NUMBERS), lambda context, builder, signature, arguments: builder.select(
        *arguments
    )


def _judgement(word, bits):
    """Whether the flags, as bits, are these, or are not."""

    @intrinsic
    def judge(typing, flags):
        def emit(context, builder, signature, arguments):
            own = builder.bitcast(arguments[0], ir.IntType(WIDTH))
            return builder.icmp_unsigned(word, own, ir.Constant(own.type, bits))

        return types.boolean(_FLAGS), emit

    return judge


some, every = _judgement("!=", 0), _judgement("==", -1)


def _function(name):
    """A function of one number, by its name in LLVM."""

    @intrinsic
    def call(typing, value):
        def emit(context, builder, signature, arguments):
            kind = ir.FunctionType(_NUMBERS.llvm, [_NUMBERS.llvm])
            return builder.call(get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64"), arguments)

        return _NUMBERS(_NUMBERS), emit

    return call


root, size = _function("sqrt"), _function("fabs")


def _operator(symbol, emit, result=None):
    """What an operator does with two vectors, or with numbers and one number that all of them meet."""

    @intrinsic
    def call(typing, first, second):
        return (result or first)(first, first), lambda context, builder, signature, arguments: emit(builder, *arguments)

    @overload(symbol)
    def implementation(first, second):
        if isinstance(first, Vector) and first == second:
            return lambda first, second: call(first, second)
        if first == _NUMBERS and isinstance(second, types.Float):
            return lambda first, second: call(first, spread(second))
        if second == _NUMBERS and isinstance(first, types.Float):
            return lambda first, second: call(spread(first), second)
        return None


_operator(operator.add, lambda builder, a, b: builder.fadd(a, b, flags=_FAST))
_operator(operator.sub, lambda builder, a, b: builder.fsub(a, b, flags=_FAST))
_operator(operator.mul, lambda builder, a, b: builder.fmul(a, b, flags=_FAST))
_operator(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))
_operator(operator.and_, lambda builder, a, b: builder.and_(a, b))
_operator(operator.or_, lambda builder, a, b: builder.or_(a, b))
_operator(operator.lt, lambda builder, a, b: builder.fcmp_ordered("<", a, b), _FLAGS)
_operator(operator.le, lambda builder, a, b: builder.fcmp_ordered("<=", a, b), _FLAGS)
_operator(operator.gt, lambda builder, a, b: builder.fcmp_ordered(">", a, b), _FLAGS)
_operator(operator.ge, lambda builder, a, b: builder.fcmp_ordered(">=", a, b), _FLAGS)
_operator(operator.eq, lambda builder, a, b: builder.fcmp_ordered("==", a, b), _FLAGS)


def smaller(first, second):
    """The smaller of two."""


def larger(first, second):
    """The larger of two."""


@overload(smaller)
def _smaller(first, second):
    return lambda first, second: where(first < second, first, second)


@overload(larger)
def _larger(first, second):
    return lambda first, second: where(first > second, first, second)
