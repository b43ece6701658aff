"""Formulas of published numbers: arithmetic over named values of runs, such as `gain(geomean(ours / baseline))`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from durasim.errors import refusal, unknown_name
from durasim.papers.cells import Cells, geomean, quotient

_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip
_MEANS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "geomean": geomean,
    "mean": fmean,
    "sum": math.fsum,
    "min": min,
    "max": max,
}
"""Functions of all numbers, or of those along an axis: `mean(x)`, `mean(x, 'workload')`."""
_EACH: Mapping[str, Callable[[float], float]] = {
    "percent": lambda ratio: 100 * ratio,
    "gain": lambda ratio: 100 * (ratio - 1),
    "loss": lambda ratio: 100 * (1 - ratio),
}
"""Functions of each number: a ratio in percent, its excess over 1, and its deficit from 1."""
_OF_AXIS: Mapping[str, Callable[[Cells, str], Cells]] = {
    "argmax": Cells.where_largest,
    "steps": Cells.steps,
}
FUNCTIONS = (*_MEANS, *_EACH, *_OF_AXIS, "at_least", "rate", "smallest_that_keeps")
_LENGTH_MAX = 1000


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula.

    Attributes:
        text: Its text.
        parts: Its expressions: one, or those of a list.
    """

    text: str
    parts: tuple[ast.expr, ...]

    def names(self) -> tuple[str, ...]:
        """Returns the names of the values that it reads."""
        called = {id(node.func) for part in self.parts for node in ast.walk(part) if isinstance(node, ast.Call)}
        nodes = (node for part in self.parts for node in ast.walk(part))
        return tuple(dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in called))

    def functions(self) -> frozenset[str]:
        """Returns the names of the functions that it calls."""
        calls = (node.func for part in self.parts for node in ast.walk(part) if isinstance(node, ast.Call))
        return frozenset(of.id for of in calls if isinstance(of, ast.Name))

    def numbers(self, values: Mapping[str, Cells]) -> tuple[float, ...]:
        """Returns the numbers of the formula, in the order of the axes of the runs.

        Raises:
            ConfigError: Values cannot be paired, or lack an axis.
        """
        return tuple(number for part in self.parts for number in self._of(part, values).numbers.values())

    def cells(self, values: Mapping[str, Cells]) -> Cells:
        """Returns the numbers of a formula that is no list, labelled by the values of the axes of the runs.

        Raises:
            ConfigError: It is a list, or values cannot be paired, or lack an axis.
        """
        if len(self.parts) != 1:
            raise refusal("formula", f"'{self.text}' is a list, and a series draws one formula")
        return self._of(self.parts[0], values)

    def _of(self, node: ast.expr, values: Mapping[str, Cells]) -> Cells:
        match node:
            case ast.Constant():
                return Cells.of(float(node.value))
            case ast.Name():
                return values[node.id]
            case ast.UnaryOp():
                return self._of(node.operand, values).each(operator.neg)
            case ast.BinOp():
                function = _ARITHMETIC.get(type(node.op), quotient)
                return self._of(node.left, values).paired(self._of(node.right, values), function)
            case ast.Call(func=ast.Name(id=name)):
                first, *others = node.args
                return self._call(name, self._of(first, values), others, values)
        raise AssertionError(ast.dump(node))

    def _call(self, name: str, of: Cells, others: list[ast.expr], values: Mapping[str, Cells]) -> Cells:
        constants = [other.value for other in others if isinstance(other, ast.Constant)]
        if name in _MEANS:
            return of.reduced(_MEANS[name], *constants)
        if name in _EACH:
            return of.each(_EACH[name])
        if name in _OF_AXIS:
            return _OF_AXIS[name](of, *constants)
        if name == "at_least":
            return of.each(lambda number: max(number, constants[0]))
        if name == "rate":
            return of.paired(self._of(others[0], values), lambda events, all_: events / all_ if all_ else 0.0)
        return of.smallest_that_keeps(*constants)


def formula_of(text: str, known: Sequence[str]) -> Formula:
    """Parses a formula over values with these names.

    Raises:
        ConfigError: It is no formula; the sentence names the part.
    """
    try:
        tree = ast.parse(text if len(text) <= _LENGTH_MAX else "?", mode="eval").body
    except (SyntaxError, ValueError):
        raise refusal("formula", f"'{text[:_LENGTH_MAX]}' is not a formula such as 'gain(ours / baseline)'") from None
    parts = tuple(tree.elts) if isinstance(tree, ast.List) else (tree,)
    for part in parts:
        _check(part, text, known)
    return Formula(text, parts)


def _check(node: ast.expr, text: str, known: Sequence[str]) -> None:
    below: list[Any] = []
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            pass
        case ast.Name(id=name):
            if name not in known:
                raise unknown_name("formula", name, known)
        case ast.UnaryOp(op=ast.USub()):
            below = [node.operand]
        case ast.BinOp() if type(node.op) in (*_ARITHMETIC, ast.Div):
            below = [node.left, node.right]
        case ast.Call(func=ast.Name(id=name), keywords=[]) if node.args:
            if name not in FUNCTIONS:
                raise unknown_name("formula", name, FUNCTIONS)
            _check_arguments(name, node.args[1:], text)
            below = node.args[: 2 if name == "rate" else 1]
        case _:
            part = ast.unparse(node)
            raise refusal("formula", f"'{part}' in '{text}' is neither a value, a number, a function nor an operator")
    for part in below:
        _check(part, text, known)


def _check_arguments(name: str, others: Sequence[ast.expr], text: str) -> None:
    """Refuses arguments after the first that the function does not take."""
    kinds = [type(other.value) if isinstance(other, ast.Constant) else None for other in others]
    allowed: list[list[Any]] = {
        **{of: [[], [str]] for of in _MEANS},
        **{of: [[]] for of in _EACH},
        **{of: [[str]] for of in _OF_AXIS},
        "at_least": [[int], [float]],
        "smallest_that_keeps": [[str, float]],
    }.get(name, [])
    if name == "rate":
        if len(others) != 1:
            raise refusal("formula", f"rate in '{text}' takes events and attempts")
    elif kinds not in allowed:
        raise refusal("formula", f"{name} in '{text}' has arguments that it does not take")
