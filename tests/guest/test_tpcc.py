"""TPC-C on the host: the mix of the three transactions, their lengths, and refused arguments."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from guest_programs import ROOT, TOOLCHAIN, NativeBuild, execute

MIX = ["--payment-percent", "43", "--delivery-percent", "5"]


def numbers(text: str) -> dict[str, int]:
    """The counts in the output of a run."""
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}


@pytest.mark.parametrize(
    ("threads", "warehouses"),
    [(1, 1), (1, 3), (4, 0), (5, 2)],  # the last ones share warehouses
)
def test_all_three_transactions(native: NativeBuild, tmp_path: Path, threads: int, warehouses: int) -> None:
    pool = ["--pool-path", tmp_path / "pool"]
    sizes = ["--populate", "700", "--threads", threads, "--warehouses", warehouses, *MIX]
    program = native("tpcc", "markers")
    outcome = execute([program, "run", *pool, *sizes, "--ops", "6000", "--pool-bytes", str(32 << 20)])
    assert outcome.code == 0, outcome
    said = numbers(outcome.text)
    assert abs(said["payments"] - 2580) < 200
    asked = said["orders"] + said["rolled_back"]
    assert abs(asked - 3120) < 200
    assert 0 < said["rolled_back"] < asked // 30  # one in a hundred
    assert said["deliveries"] > 1000
    assert execute([program, "check", *pool]).text == "tpcc: operations=6700 consistent\n"
    # Earlier deliveries and payments are included.
    assert execute([program, "run", *pool, *sizes, "--ops", "500"]).text.endswith(" ok\n")


def test_a_new_order_is_as_long_as_in_the_paper(native: NativeBuild, tmp_path: Path) -> None:
    """10 to 35 lines: five to fifteen pairs of a STOCK and an ORDER-LINE line, and the lines of the order."""
    program = native("tpcc", "undo-flush", hooks="power_failure")

    def entries(ops: int, *more: str) -> int:
        pool = tmp_path / f"pool-{ops}-{'-'.join(more)}"
        command = [program, "run", "--pool-path", pool, "--populate", "500", "--ops", ops, "--no-check", *more]
        return numbers(execute(command).text)["log_entries"]

    loaded = entries(0)
    assert 24 < (entries(400) - loaded) / 400 < 27
    shortest = entries(400, "--order-lines-max", "5") - entries(0, "--order-lines-max", "5")
    assert 14 < shortest / 400 < 17


class Pool:
    """The rows of one warehouse of a pool, in the layout of guest/workloads/tpcc/rows.h."""

    def __init__(self, path: Path, warehouse: int = 0) -> None:
        self.bytes = path.read_bytes()
        root = self.words(self.words(self.place(0x10_0000_1000), 1)[0], 14)
        self.districts, self.customers, steps = root[4], root[5], root[9]
        self.tables = self.words(root[12] + 64 * warehouse, 4)
        self.items = steps

    @staticmethod
    def place(address: int) -> int:
        return address - 0x10_0000_0000

    def words(self, address: int, count: int) -> tuple[int, ...]:
        address = self.place(address) if address >= 0x10_0000_0000 else address
        return struct.unpack_from(f"<{count}Q", self.bytes, address)

    def entries(self, top: int, length: int) -> list[int]:
        """The pointers of a PointerArray, with 8 per node."""
        below, level = 8, [top]
        while below < length:
            below *= 8
        while below > 1:
            below //= 8
            level = [entry for node in level for entry in self.words(node, 8)][: -(-length // below)]
        return level

    def stock(self) -> dict[int, list[int]]:
        """S_QUANTITY, S_YTD, S_ORDER_CNT and S_REMOTE_CNT of each item."""
        found = {}
        for i in range(self.items):
            row = self.place(self.tables[3]) + 320 * i
            item, _, quantity, ytd, orders, remote = struct.unpack_from("<IHHQII", self.bytes, row)
            found[item] = [quantity, ytd, orders, remote]
        return found

    def ordered(self) -> Iterator[tuple[int, int, int, int]]:
        """Date, number, OL_I_ID and OL_QUANTITY of each order line entered by an operation."""
        for number in range(self.districts):
            district = self.place(self.tables[1]) + 128 * number
            (top,) = struct.unpack_from("<Q", self.bytes, district + 8)
            (next_order,) = struct.unpack_from("<I", self.bytes, district + 24)
            for order in self.entries(top, next_order - 1)[self.customers :]:
                entered, _, _, _, _, _, _, lines = struct.unpack_from("<QQIIHHBB", self.bytes, self.place(order))
                for i in range(lines):
                    line = struct.unpack_from("<QIIIHHBBB", self.bytes, self.place(order) + 64 * (i + 1))
                    yield entered, i, line[2], line[8]

    def payments(self) -> Iterator[tuple[int, ...]]:
        """H_C_ID, H_AMOUNT, H_C_D_ID, H_C_W_ID, H_D_ID and H_W_ID after the date of each payment by an operation."""
        for number in range(self.districts):
            district = self.place(self.tables[1]) + 128 * number
            (top,) = struct.unpack_from("<Q", self.bytes, district + 16)
            (rows,) = struct.unpack_from("<I", self.bytes, district + 36)
            blocks = self.entries(top, -(-rows // 8))
            for i in range(self.customers, rows):
                yield struct.unpack_from("<QIIHHHH", self.bytes, self.place(blocks[i // 8]) + i % 8 * 64)

    def customer_data(self) -> dict[tuple[int, int], bytes]:
        """C_DATA of customers with bad credit, by district and number."""
        found = {}
        for i in range(self.districts * self.customers):
            row = self.place(self.tables[2]) + 704 * i
            if self.bytes[row + 52 : row + 54] == b"BC":
                found[i // self.customers + 1, i % self.customers + 1] = self.bytes[row + 192 : row + 692]
        return found


def test_stock_and_bad_credit_follow_the_specification(native: NativeBuild, tmp_path: Path) -> None:
    """Clauses 2.4.2.2 and 2.5.2.2, computed here from the orders and the history of a pool."""
    program, sizes = native("tpcc", "markers"), ["--populate", "400", "--customers", "4", *MIX]
    for name, ops in (("before", "0"), ("after", "3000")):
        command = [program, "run", "--pool-path", tmp_path / name, *sizes, "--ops", ops, "--pool-bytes", str(8 << 20)]
        assert execute(command).code == 0
    before, after = Pool(tmp_path / "before"), Pool(tmp_path / "after")
    stock = before.stock()
    lines = sorted(after.ordered())
    assert len(lines) > 10000
    for _, _, item, quantity in lines:
        row = stock[item]
        row[0] = row[0] - quantity if row[0] - quantity >= 10 else row[0] - quantity + 91
        row[1] += quantity
        row[2] += 1
    assert after.stock() == stock
    data = before.customer_data()
    payments = sorted(after.payments())
    changed = 0
    for _, customer, amount, c_district, c_warehouse, district, warehouse in payments:
        if (c_district, customer) in data:
            text = f"{customer:05} {c_district:02} {c_warehouse:04} {district:02} {warehouse:04} {amount:07}".ljust(32)
            data[c_district, customer] = (text.encode() + data[c_district, customer])[:500]
            changed += 1
    assert after.customer_data() == data
    assert changed > 20


def test_the_mix_of_spht_eadr(native: NativeBuild, tmp_path: Path) -> None:
    """Of 6,000 operations of the member of its suite 95 in a hundred are Payments, 3 Deliveries and 2 New Orders."""
    rows = TOOLCHAIN.read_toml(ROOT / "guest" / "suites" / "spht.toml")["workload"]
    member = next(row for row in rows if row["name"] == "spht-tpcc")
    given = member["given"] | {"ops": 6000, "populate": 1600}
    arguments = [text for name, value in given.items() for text in (f"--{name}", value)]
    program = native(member["program"], "markers")
    said = numbers(execute([program, "run", "--pool-path", tmp_path / "pool", "--threads", "4", *arguments]).text)
    orders = said["orders"] + said["rolled_back"]
    assert abs(said["payments"] - 5700) < 70
    assert abs(orders - 120) < 45
    assert abs(6000 - said["payments"] - orders - 180) < 55


@pytest.mark.parametrize(("workload", "has_all"), [("tpcc", False), ("tpcc-any", True)])
def test_only_terminals_of_all_warehouses_change_theirs(
    native: NativeBuild, tmp_path: Path, workload: str, has_all: bool
) -> None:
    """Warehouses of the Payments of each thread, in order: the date of a Payment identifies its thread."""
    path, warehouses, threads = tmp_path / "pool", 8, 4
    sizes = ["--populate", "400", "--threads", threads, "--warehouses", warehouses, "--ops", "2000"]
    mix = ["--payment-percent", "95", "--delivery-percent", "3"]
    assert execute([native(workload, "markers"), "run", "--pool-path", path, *sizes, *mix]).code == 0
    paid = sorted(payment for number in range(warehouses) for payment in Pool(path, number).payments())
    for thread in range(threads):
        places = [payment[-1] for payment in paid if payment[0] - 2 >> 40 == thread]
        assert len(places) > 400
        changes = sum(before != after for before, after in pairwise(places))
        if has_all:
            assert len(set(places)) == warehouses
            assert changes > 0.8 * len(places)
        else:
            assert (set(places), changes) == ({thread + 1}, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--populate", "0"], "--populate has to be at least 1"),
        (["--payment-percent", "60", "--delivery-percent", "41"], "together are at most 100, not 101"),
        (["--order-lines-max", "4"], "from 5 to 15"),
    ],
)
def test_impossible_arguments(native: NativeBuild, tmp_path: Path, arguments: list[str], words: str) -> None:
    outcome = execute([native("tpcc", "markers"), "run", "--pool-path", tmp_path / "pool", *arguments])
    assert outcome.code == 2
    assert words in outcome.text
    assert outcome.text.count("\n") == 1


def test_a_pool_keeps_its_shape(native: NativeBuild, tmp_path: Path) -> None:
    program, pool = native("tpcc", "markers"), ["--pool-path", tmp_path / "pool"]
    assert execute([program, "run", *pool, "--populate", "20", "--ops", "20"]).code == 0
    for other in ("--warehouses=2", "--districts=9", "--customers=4", "--order-lines-max=9", "--payment-percent=1"):
        outcome = execute([program, "run", *pool, "--populate", "20", other])
        assert outcome.code == 2 and "--warehouses 1 --populate 20 --districts 10 --customers 3" in outcome.text
