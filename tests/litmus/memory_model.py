"""Possible results of a few accesses by several threads, computed by trying every order.

Total store order as Owens, Sarkar and Sewell define it (x86-TSO, TPHOLs 2009): a store goes into the buffer of its
thread and leaves it in order at any later time; a load looks into the buffer of its own thread first; a fence waits
until the buffer is empty. Sequential consistency is this model without buffers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STORE = re.compile(r"([xy])=(\d)")
_LOAD = re.compile(r"(r\d)=([xy])")


@dataclass(frozen=True)
class _State:
    positions: tuple[int, ...]
    buffers: tuple[tuple[tuple[str, int], ...], ...]
    memory: tuple[tuple[str, int], ...]
    registers: tuple[tuple[str, int], ...]


def outcomes(program: str, *, buffered: bool) -> set[str]:
    """Returns the results of a program such as `x=1 F r0=y | y=1 F r1=x > r0 r1`, as `0,1`.

    F is a fence. After > are registers, and cells for their final values; the initial values are 0.
    """
    text, _, shown = program.partition(">")
    threads = [part.split() for part in text.split("|")]
    start = _State((0,) * len(threads), ((),) * len(threads), (("x", 0), ("y", 0)), ())
    seen, todo, results = {start}, [start], set()
    while todo:
        state = todo.pop()
        following = _following(state, threads, buffered)
        if not following:
            values = dict(state.memory) | dict(state.registers)
            results.add(",".join(str(values[name]) for name in shown.split()))
        todo += following - seen
        seen |= following
    return results


def _following(state: _State, threads: list[list[str]], buffered: bool) -> set[_State]:
    found = set()
    for number, accesses in enumerate(threads):
        buffer = state.buffers[number]
        if buffer:
            cell, value = buffer[0]
            drained = _replaced(state.buffers, number, buffer[1:])
            found.add(_State(state.positions, drained, _written(state.memory, cell, value), state.registers))
        if state.positions[number] == len(accesses):
            continue
        access = accesses[state.positions[number]]
        positions = _replaced(state.positions, number, state.positions[number] + 1)
        if access == "F":
            if not buffer:
                found.add(_State(positions, state.buffers, state.memory, state.registers))
        elif store := _STORE.fullmatch(access):
            cell, value = store[1], int(store[2])
            if buffered:
                buffers = _replaced(state.buffers, number, (*buffer, (cell, value)))
                found.add(_State(positions, buffers, state.memory, state.registers))
            else:
                found.add(_State(positions, state.buffers, _written(state.memory, cell, value), state.registers))
        elif load := _LOAD.fullmatch(access):
            value = dict((*state.memory, *buffer))[load[2]]
            found.add(_State(positions, state.buffers, state.memory, _written(state.registers, load[1], value)))
        else:
            raise ValueError(f"{access!r} is no access")
    return found


def _replaced(items: tuple, number: int, item: object) -> tuple:
    return (*items[:number], item, *items[number + 1 :])


def _written(places: tuple[tuple[str, int], ...], name: str, value: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((dict(places) | {name: value}).items()))
