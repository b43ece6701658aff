"""The statistics of a run as a tree of leaves with value, unit and description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from durasim.errors import refusal


@dataclass(frozen=True, slots=True)
class Stat:
    """One statistic.

    Attributes:
        value: The value; an `int` if it counts something.
        unit: `count`, `bytes`, `cycles`, `ns` or `ratio`.
        description: One sentence.
    """

    value: int | float
    unit: str
    description: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the statistic as in the JSON of a run."""
        return {"value": self.value, "unit": self.unit, "description": self.description}


class StatTree(Mapping[str, "Stat | StatTree"]):
    """Statistics by path: `stats.l1d.misses.value` and `stats["l1d.misses"].value` are the same number.

    As a mapping it has the names of this level; `walk()` yields all leaves below it with their full paths. A missing
    name raises `KeyError` (or `AttributeError`) with the available names.
    """

    __slots__ = ("_children", "_path")

    def __init__(self, children: Mapping[str, Stat | StatTree], path: str = "") -> None:
        self._children = dict(children)
        self._path = path

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> StatTree:
        """Builds the tree from nested objects, dotted paths, or a mix of both."""
        nested: dict[str, Any] = {}
        for path, node in sorted(_leaves(tree)):
            *folders, name = path.split(".")
            level = nested
            for folder in folders:
                level = level.setdefault(folder, {})
                if isinstance(level, Stat):
                    raise refusal("stats", f"'{path}' is below a statistic")
            if name in level:
                raise refusal("stats", f"'{path}' is defined twice")
            level[name] = node
        return cls._build(nested, "")

    @classmethod
    def _build(cls, nested: Mapping[str, Any], path: str) -> StatTree:
        children: dict[str, Stat | StatTree] = {}
        for name, node in nested.items():
            below = f"{path}.{name}" if path else name
            children[name] = node if isinstance(node, Stat) else cls._build(node, below)
        return cls(children, path)

    def __getitem__(self, path: str) -> Stat | StatTree:
        node: Stat | StatTree = self
        for name in path.split("."):
            if not isinstance(node, StatTree) or name not in node._children:
                known = ", ".join(node._children) if isinstance(node, StatTree) else "nothing"
                raise KeyError(f"no statistic '{path}' below '{self._path or 'stats'}' (available: {known})")
            node = node._children[name]
        return node

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as missing:
            raise AttributeError(missing.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._children)

    def __len__(self) -> int:
        return len(self._children)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._children]

    def __repr__(self) -> str:
        return f"<StatTree {self._path or 'stats'}: {', '.join(self._children)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (StatTree, (self._children, self._path))

    def walk(self) -> Iterator[tuple[str, Stat]]:
        """Yields every leaf with its dotted path from the root, in the order of the paths."""
        for name, node in self._children.items():
            if isinstance(node, Stat):
                yield (f"{self._path}.{name}" if self._path else name), node
            else:
                yield from node.walk()

    def to_dict(self) -> dict[str, Any]:
        """Returns the tree as nested objects, as in the JSON of a run."""
        return {name: node.to_dict() for name, node in self._children.items()}


# Only counts are shown as integers.
_WHOLE_UNITS = frozenset({"count", "bytes", "cycles"})


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Stat]]:
    for name, node in tree.items():
        path = f"{prefix}.{name}" if prefix else name
        if "unit" in node and "value" in node and not isinstance(node["value"], Mapping):
            value = node["value"]
            if node["unit"] in _WHOLE_UNITS and float(value).is_integer():
                value = int(value)
            yield path, Stat(value, node["unit"], node["description"])
        else:
            yield from _leaves(node, path)
