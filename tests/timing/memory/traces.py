#!/usr/bin/env python3
"""Makes the request traces. Every line is `<clock> <R|W> <line>`: the memory clock at which a request arrives, what it
is, and the number of the 64-byte line. The generator is splitmix64, so any language makes the same traces."""

import argparse
import itertools
import math
import pathlib

MASK = (1 << 64) - 1
COLUMNS = 128  # lines of a row of 8 KB
LINES = 1 << 24  # 1 GiB


class Rng:
    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n):
        return self.next() % n


def folded(row, banks):
    bits, out = banks.bit_length() - 1, 0
    while bits and row:
        out ^= row & (banks - 1)
        row >>= bits
    return out


def place(line, mapping, ranks, banks, permute=True):
    """(rank, bank, row, column) of a line, as crates/memory/src/media/ddr.rs has it."""
    if mapping == "row":  # row-rank-bank-column
        column, rest = line % COLUMNS, line // COLUMNS
        bank, rest = rest % banks, rest // banks
        rank, row = rest % ranks, rest // ranks
    else:  # row-column-rank-bank
        bank, rest = line % banks, line // banks
        rank, rest = rest % ranks, rest // ranks
        column, row = rest % COLUMNS, rest // COLUMNS
    return rank, bank ^ (folded(row, banks) if permute else 0), row, column


def gap(rng, mean):
    """Clocks until the next arrival, geometric with this mean: at most one arrival in a clock."""
    if mean <= 1:
        return 1
    u = ((rng.next() >> 11) + 0.5) / (1 << 53)
    return 1 + math.floor(math.log(u) / math.log(1 - 1 / mean))


def sequential():
    """One sequential reader."""
    for n in itertools.count():
        yield "R", n % LINES


def random_lines(rng, is_write):
    """Lines anywhere."""
    while True:
        yield ("W" if is_write() else "R"), rng.below(LINES)


def two_read_one_written(rng, is_aligned):
    """Two streams are read, one is written, as in a = b + c.

    Aligned: with the row mapping, the written stream and one of those read are in different rows of one bank all the
    time. Else where each stream begins is drawn.
    """
    third = LINES // 3 // 2048 * 2048
    starts = [s * (third + (640 if is_aligned else 0)) for s in range(3)]
    if not is_aligned:
        starts = [start + rng.below(1 << 16) for start in starts]
    for n in itertools.count():
        yield ("W" if n % 3 == 2 else "R"), (starts[n % 3] + n // 3) % LINES


def streams(rng):
    """Eight sequential readers, who comes next is drawn."""
    at = [s * (LINES // 8) + rng.below(1 << 16) for s in range(8)]
    while True:
        s = rng.below(8)
        yield "R", at[s]
        at[s] += 1


def blocks(rng):
    """16 readers, each reads four adjacent lines at a random place, then goes elsewhere."""
    at, left = [0] * 16, [0] * 16
    while True:
        s = rng.below(16)
        if left[s] == 0:
            at[s], left[s] = rng.below(LINES // 4) * 4, 4
        yield "R", at[s]
        at[s] += 1
        left[s] -= 1


# Endless (op, line), from a generator of random numbers.
PATTERNS = {
    "seq-read": lambda _: sequential(),
    "rand-read": lambda rng: random_lines(rng, lambda: False),
    "rand-write": lambda rng: random_lines(rng, lambda: True),
    "rand-2r1w": lambda rng: random_lines(rng, lambda: rng.below(3) == 0),
    "seq-2r1w": lambda rng: two_read_one_written(rng, is_aligned=False),
    "aligned-2r1w": lambda rng: two_read_one_written(rng, is_aligned=True),
    "streams8": streams,
    "blocks4": blocks,
}


def idle(kind, ranks, banks, mapping):
    """One request every 200 clocks, all before the first refresh (7.8 us)."""
    at, clock = [], 40
    by_place = {}
    for row in range(64):
        for bank in range(banks):
            for column in range(8):
                line = (
                    ((row * ranks) * banks + bank) * COLUMNS + column
                    if mapping == "row"
                    else (row * COLUMNS + column) * ranks * banks + bank
                )
                by_place[place(line, mapping, ranks, banks)] = line
    if kind == "idle-hit":
        lines = [by_place[(0, 3, 0, c % 8)] for c in range(24)]
    elif kind == "idle-miss":
        lines = [by_place[(0, b, 0, 0)] for b in range(min(banks, 16))]
    else:
        lines = [by_place[(0, 3, r, 0)] for r in range(24)]
    for line in lines:
        at.append((clock, "R", line))
        clock += 200
    return at


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--requests", type=int, default=20000)
    p.add_argument("--line-clocks", type=int, default=4, help="clocks of the data bus for a line")
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--banks", type=int, default=16)
    p.add_argument(
        "--patterns", default="seq-read,rand-read,rand-2r1w,seq-2r1w,aligned-2r1w,streams8,blocks4,rand-write"
    )
    p.add_argument("--loads", default="5,10,20,30,40,50,60,70,80,90,95,max")
    a = p.parse_args()
    out = pathlib.Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    for mapping in ("row", "line"):
        for kind in ("idle-hit", "idle-miss", "idle-conflict"):
            rows = idle(kind, a.ranks, a.banks, mapping)
            (out / f"{kind}@{mapping}.trace").write_text("".join(f"{clock} {op} {line}\n" for clock, op, line in rows))
    for number, name in enumerate(a.patterns.split(",")):
        for load in a.loads.split(","):
            # `max`: one request a clock, so that the queues are full all the time.
            mean = 1 if load == "max" else a.line_clocks * 100 / int(load)
            rng = Rng(1000 * (number + 1) + (0 if load == "max" else int(load)))
            requests, clock, rows = PATTERNS[name](rng), 40, []
            for _ in range(a.requests):
                op, line = next(requests)
                rows.append(f"{clock} {op} {line}\n")
                clock += gap(rng, mean)
            (out / f"{name}-{load}.trace").write_text("".join(rows))


if __name__ == "__main__":
    main()
