"""Vectors of eight numbers: types that numba compiles to vector instructions, of whatever width the machine has.

In compiled code a `Table` is a list or a matrix of vectors in memory: ``load(table, i)`` is one of them, and
``table[i, lane]`` one of its numbers; ``store`` writes a vector. (A table is a bare pointer: the reference counts
of arrays take as long as the work.) Arithmetic and comparisons are as usual, number by number; what would be a branch
is a `where`. (The compiler vectorises loops by itself, but those over coordinates are too short to gain from it, and
those over trials keep every sum in memory: a line search in ten dimensions takes 4 cycles per trial this way, 11 and
more the other.)
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, attr-defined"
from __future__ import annotations

import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, overload, register_model

__all__ = ["WIDTH", "maximum", "minimum"]

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


class Table(types.Type):
    """The type of vectors in memory, addressed by no, one or two indices."""

    def __init__(self):
        super().__init__("table")


_TABLE = Table()


@register_model(Table)
class _TableModel(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("first", types.CPointer(types.float64)), ("columns", types.intp)])


def table(memory, first, columns):
    """The vectors from line ``first`` of memory (lines, WIDTH) on; in rows of ``columns``, for two indices."""


@intrinsic
def _table(typing, memory, first, columns):
    def emit(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        line = builder.mul(arguments[1], ir.Constant(arguments[1].type, WIDTH))
        return cgutils.pack_struct(builder, [builder.gep(data, [line]), arguments[2]])

    return _TABLE(memory, types.intp, types.intp), emit


@overload(table)
def _table_of(memory, first, columns):
    return lambda memory, first, columns: _table(memory, first, columns)


def _pointer(context, builder, table, index):
    """A pointer to the first number of the vector table[index]."""
    own = cgutils.create_struct_proxy(_TABLE)(context, builder, value=table)
    position = ir.Constant(ir.IntType(64), 0)
    for number in index:
        position = builder.add(builder.mul(position, own.columns), number)
    return builder.gep(own.first, [builder.mul(position, ir.Constant(position.type, WIDTH))])


def _vector_pointer(context, builder, table, index):
    """The same as a pointer to the vector."""
    pointer = _pointer(context, builder, table, cgutils.unpack_tuple(builder, index))
    return builder.bitcast(pointer, _NUMBERS.llvm.as_pointer())


def _integers(index):
    return types.StarArgTuple.from_types((types.intp,) * len(index))


@intrinsic
def load(typing, table, *index):
    """The vector table[index]."""

    def emit(context, builder, signature, arguments):
        return builder.load(_vector_pointer(context, builder, *arguments), align=8, typ=_NUMBERS.llvm)

    return _NUMBERS(_TABLE, _integers(index)), emit


@intrinsic
def store(typing, value, table, *index):
    """table[index] = value."""

    def emit(context, builder, signature, arguments):
        builder.store(arguments[0], _vector_pointer(context, builder, *arguments[1:]), align=8)
        return context.get_dummy_value()

    return types.none(_NUMBERS, _TABLE, _integers(index)), emit


def _element(context, builder, signature, arguments):
    """A pointer to one number: the last index is the lane."""
    kind, index = signature.args[1], arguments[1]
    if isinstance(kind, types.BaseTuple):
        numbers = zip(cgutils.unpack_tuple(builder, index), kind.types, strict=True)
        *place, lane = (context.cast(builder, number, own, types.intp) for number, own in numbers)
    else:
        place, lane = [], context.cast(builder, index, kind, types.intp)
    return builder.gep(_pointer(context, builder, arguments[0], place), [lane])


@intrinsic
def _get(typing, table, index):
    def emit(context, builder, signature, arguments):
        return builder.load(_element(context, builder, signature, arguments), typ=ir.DoubleType())

    return types.float64(_TABLE, index), emit


@intrinsic
def _set(typing, table, index, value):
    def emit(context, builder, signature, arguments):
        builder.store(arguments[2], _element(context, builder, signature, arguments))
        return context.get_dummy_value()

    return types.none(_TABLE, index, types.float64), emit


@overload(operator.getitem)
def _get_item(table, index):
    return (lambda table, index: _get(table, index)) if table == _TABLE else None


@overload(operator.setitem)
def _set_item(table, index, value):
    return (lambda table, index, value: _set(table, index, value)) if table == _TABLE else None


@intrinsic
def broadcast(typing, value):
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


def _reduction(comparison, bits):
    """A function that compares the flags, as an integer of eight bits, with another."""

    @intrinsic
    def reduce(typing, flags):
        def emit(context, builder, signature, arguments):
            integer = builder.bitcast(arguments[0], ir.IntType(WIDTH))
            return builder.icmp_unsigned(comparison, integer, ir.Constant(integer.type, bits))

        return types.boolean(_FLAGS), emit

    return reduce


any_lane, all_lanes = _reduction("!=", 0), _reduction("==", -1)


def _function(name):
    """A function of one number, by its name in LLVM."""

    @intrinsic
    def call(typing, value):
        def emit(context, builder, signature, arguments):
            kind = ir.FunctionType(_NUMBERS.llvm, [_NUMBERS.llvm])
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
            return builder.call(function, arguments)

        return _NUMBERS(_NUMBERS), emit

    return call


sqrt, absolute = _function("sqrt"), _function("fabs")


def _operator(symbol, emit, result=None):
    """What an operator does with two vectors, or with a vector and one number."""

    @intrinsic
    def call(typing, first, second):
        return (result or first)(first, first), lambda context, builder, signature, arguments: emit(builder, *arguments)

    @overload(symbol)
    def implementation(first, second):
        if isinstance(first, Vector) and first == second:
            return lambda first, second: call(first, second)
        if first == _NUMBERS and isinstance(second, types.Float):
            return lambda first, second: call(first, broadcast(second))
        if second == _NUMBERS and isinstance(first, types.Float):
            return lambda first, second: call(broadcast(first), second)
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


def minimum(first, second):
    """The smaller of two, number by number."""


def maximum(first, second):
    """The larger of two, number by number."""


@overload(minimum)
def _minimum(first, second):
    return lambda first, second: where(first < second, first, second)


@overload(maximum)
def _maximum(first, second):
    return lambda first, second: where(first > second, first, second)
