"""Reads trace files of Perfetto: protocol buffers, by field number as in Perfetto's `trace_packet.proto`.

Written from the description of the encoding, so that it shares nothing with the program that writes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4


@dataclass
class Event:
    """A slice, an instant or a value of a counter; `until` is the end of a slice, `value` the value of a counter."""

    track: str
    name: str | None
    categories: set[str]
    at: int
    kind: int
    arguments: dict[str, int | str]
    value: int | None = None
    until: int | None = None

    @property
    def cycles(self) -> int:
        """The length of a slice."""
        assert self.until is not None, "the slice has an end"
        return self.until - self.at


@dataclass
class TraceFile:
    """The tracks, each with the path of names from its root, and the events."""

    tracks: dict[int, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def of(self, category: str, kind: int = SLICE_BEGIN) -> list[Event]:
        """Returns the events of a category."""
        return [event for event in self.events if event.kind == kind and category in event.categories]

    def on(self, track: str) -> list[Event]:
        """Returns the events of the tracks whose path begins with `track`."""
        return [event for event in self.events if event.track.startswith(track)]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        else:
            assert key & 7 == 2, f"a field of wire type {key & 7}"
            length, at = _varint(data, at)
            yield key >> 3, data[at : at + length]
            at += length
    assert at == len(data), "the last field is cut off"


def _message(data: bytes) -> dict[int, list[int | bytes]]:
    found = defaultdict(list)
    for number, value in _fields(data):
        found[number].append(value)
    return found


def _names(data: list[bytes]) -> dict[int, str]:
    messages = [_message(name) for name in data]
    return {message[1][0]: message[2][0].decode() for message in messages}


def read(data: bytes) -> TraceFile:
    """Reads a file: names first, then tracks, then events in order of time."""
    trace, parents, open_slices, before = TraceFile(), {}, defaultdict(list), 0
    categories = names = arguments = {}
    for number, packet in _fields(data):
        assert number == 1, "a file consists of packets"
        fields = _message(packet)
        if interned := fields.get(12):
            assert fields[13] == [1], "names begin anew"
            given = _message(interned[0])
            categories, names, arguments = (_names(given[number]) for number in (1, 2, 3))
        elif descriptor := fields.get(60):
            track = _message(descriptor[0])
            uuid, name, parent = track[1][0], track[2][0].decode(), track.get(5, [None])[0]
            parents[uuid] = parent
            trace.tracks[uuid] = name if parent is None else f"{trace.tracks[parent]}/{name}"
        else:
            at, event = fields[8][0], _message(fields[11][0])
            assert at >= before, "events are in order of time"
            before, kind, track = at, event[9][0], event[11][0]
            if kind == SLICE_END:
                open_slices[track].pop().until = at
                continue
            given = [_message(argument) for argument in event.get(4, [])]
            read_event = Event(
                track=trace.tracks[track],
                name=names[event[10][0]] if 10 in event else None,
                categories={categories[number] for number in event.get(3, [])},
                at=at,
                kind=kind,
                arguments={arguments[one[1][0]]: _value(one) for one in given},
                value=event[30][0] if kind == COUNTER else None,
            )
            trace.events.append(read_event)
            if kind == SLICE_BEGIN:
                open_slices[track].append(read_event)
    assert not any(open_slices.values()), "all slices have ended"
    return trace


def _value(argument: dict[int, list[int | bytes]]) -> int | str:
    value = next(argument[number][0] for number in (3, 6, 7) if number in argument)
    return value.decode() if isinstance(value, bytes) else value
