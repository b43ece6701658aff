"""Constraints of a study: conditions over the values of a point, such as `llc >= 2 * l2`."""

from __future__ import annotations

import ast
import operator
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from durasim import _core
from durasim.documents.toml_files import read_toml
from durasim.errors import ConfigError, refusal, unknown_name
from durasim.runs.parameters import parameters_of_machine
from durasim.runs.scenario import machine_names
from durasim.runs.settings import size_in_bytes

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_LENGTH_MAX = 1000


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition.

    Attributes:
        text: Its text.
        tree: The parsed text.
    """

    text: str
    tree: ast.expr

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the values of a point meet the condition.

        Raises:
            ConfigError: A name is unknown, or values cannot be compared.
        """
        try:
            return bool(self._of(self.tree, values))
        except (TypeError, ZeroDivisionError) as error:
            raise refusal("constraints", f"'{self.text}': {error}") from None

    def _of(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        match node:
            case ast.BoolOp():
                parts = (self._of(part, values) for part in node.values)
                return all(parts) if isinstance(node.op, ast.And) else any(parts)
            case ast.UnaryOp(op=ast.Not()):
                return not self._of(node.operand, values)
            case ast.UnaryOp(op=ast.USub()):
                return -self._of(node.operand, values)
            case ast.Compare():
                found = [self._of(part, values) for part in (node.left, *node.comparators)]
                pairs = zip(node.ops, found, found[1:], strict=False)
                return all(_COMPARISONS[type(op)](a, b) for op, a, b in pairs)
            case ast.BinOp():
                return _ARITHMETIC[type(node.op)](self._of(node.left, values), self._of(node.right, values))
            case ast.Constant():
                return size_in_bytes("constant_bytes", node.value) if _is_size(node.value) else node.value
            case _:
                return self._value(ast.unparse(node), values)

    def _value(self, name: str, values: Mapping[str, Any]) -> Any:
        """Returns the value of a name: a key, the size of a cache, or the only key that ends with the name."""
        for key in (name, f"{name}.size_bytes"):
            if key in values:
                return values[key]
        ends = [key for key in values if key.endswith(f".{name}")]
        if len(ends) == 1:
            return values[ends[0]]
        if ends:
            raise refusal("constraints", f"'{name}' in '{self.text}' may be {' or '.join(sorted(ends))}")
        raise unknown_name("constraints", name, values, "durasim machines NAME")


def constraint_of(text: str) -> Constraint:
    """Parses a condition.

    Raises:
        ConfigError: It is no comparison of keys, numbers and texts.
    """
    try:
        # A longer text could exhaust the stack of the parser.
        tree = ast.parse(text if len(text) <= _LENGTH_MAX else "?", mode="eval").body
    except (SyntaxError, ValueError):
        raise refusal("constraints", f"'{text[:_LENGTH_MAX]}' is not a condition such as 'llc >= l2'") from None
    _check(tree, text)
    if not isinstance(tree, ast.Compare | ast.BoolOp | ast.UnaryOp):
        raise refusal("constraints", f"'{text}' compares nothing")
    return Constraint(text, tree)


def _check(node: ast.expr, text: str) -> None:
    match node:
        case ast.BoolOp():
            below = node.values
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            below = [node.operand]
        case ast.Compare() if all(type(op) in _COMPARISONS for op in node.ops):
            below = [node.left, *node.comparators]
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            below = [node.left, node.right]
        case ast.Constant(value=bool() | int() | float() | str()) | ast.Name():
            below = []
        case ast.Attribute(value=ast.Name() | ast.Attribute()):
            below = [node.value]
        case _:
            part = ast.unparse(node)
            raise refusal("constraints", f"'{part}' in '{text}' is neither a key, a number, a text nor an operator")
    for part in below:
        _check(part, text)


def _is_size(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return isinstance(size_in_bytes("constant_bytes", value), int)
    except ConfigError:
        return False


@cache
def machine_values(machine: str) -> Mapping[str, Any]:
    """Returns the parameters of a preset or machine file by name."""
    if machine in machine_names():
        tables = tomllib.loads(_core.machine_toml(machine))
    else:
        tables = read_toml(Path(machine), "machine")
    return {parameter.name: parameter.value for parameter in parameters_of_machine(tables)}
