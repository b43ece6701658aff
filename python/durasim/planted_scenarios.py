"""The campaigns that planted faults are sent through: short, seeded, on machines so small that rare paths are common.

A design whose traps catch a fault also has to pass them without one; tests hold both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from durasim.campaign import DEFAULT_FAULTS


@dataclass(frozen=True)
class Trap:
    """A crash campaign on the machine `tiny`.

    Attributes:
        workload: Name of the workload.
        arguments: Its arguments.
        threads: Threads of the guest.
        ops: Operations.
        points: Persist events to crash at.
        faults: What goes wrong there.
        settings: Parameters that differ from those of `tiny`.
        domain: Persistence domain, the row's usual one if None.
        seed: Seed of everything random.
        rehearsals: Whether every transaction is taken back once before it commits.
        instructions_max: Instructions after which the program counts as stuck.
    """

    workload: str
    arguments: tuple[tuple[str, str], ...]
    threads: int = 1
    ops: int = 12
    points: int = 100
    faults: tuple[str, ...] = DEFAULT_FAULTS
    settings: tuple[str, ...] = ()
    domain: str | None = None
    seed: int = 1
    rehearsals: bool = False
    instructions_max: int = 20_000_000


def _pairs(**arguments: object) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", "-"), str(value)) for name, value in arguments.items())


_BTREE = _pairs(populate=20, node_bytes=128)
_BIG_BTREE = _pairs(populate=40, node_bytes=1024)
_SWAP = _pairs(populate=12, element_bytes=256)
_BIG_SWAP = _pairs(populate=12, element_bytes=1024)
_SHARED = _pairs(populate=8, shared_lines="true")
_WIDE = _pairs(populate=200, shared_lines="false")
_APART = _pairs(populate=8, shared_lines="false")

_TWO_PLACES = _pairs(populate=2, element_bytes=64)
_FOUR_CONTROLLERS = ("pmem.controllers=4", "pmem.interleave_bytes=64", "pmem.controller.write_queue_entries=1")

# More threads than cores, in slices that end inside transactions.
_SLICES = ("core.time_slice_cycles=2000", "core.context_switch_cycles=0")
# Threads that wait inside transactions while others go through all identifiers.
_PARKED = ("cores=1", "core.time_slice_cycles=20000", "core.context_switch_cycles=0")
_CROWDED = ("l1d.size_bytes=256", "l2.size_bytes=512", "llc.size_bytes=2048")
_TURNS = ("cores=2", *_SLICES)


def _hercules(**values: object) -> tuple[str, ...]:
    return tuple(f"design.hercules.{key}={value}" for key, value in values.items())


def _tc(**values: object) -> tuple[str, ...]:
    return tuple(f"design.tc.{key}={value}" for key, value in values.items())


def _kiln(**values: object) -> tuple[str, ...]:
    return tuple(f"design.kiln.{key}={value}" for key, value in {"llc_size_factor": 1, **values}.items())


def _proteus(**values: object) -> tuple[str, ...]:
    return tuple(f"design.proteus.{key}={value}" for key, value in values.items())


def _fwb(**values: object) -> tuple[str, ...]:
    return tuple(f"design.fwb.{key}={value}" for key, value in values.items())


def _picl(**values: object) -> tuple[str, ...]:
    return tuple(f"design.picl.{key}={value}" for key, value in values.items())


def _hoop(**values: object) -> tuple[str, ...]:
    return tuple(f"design.hoop.{key}={value}" for key, value in values.items())


# Caches of one set of each level, which every transaction overflows.
_SMALL = ("cores=1", "l1d.size_bytes=256", "l2.size_bytes=256", "llc.size_bytes=512")

_FEW = _hercules(ewpq_entries=2, tx_id_bits=4, migration_period_instructions=300)
_SLOW_MIGRATION = _hercules(ewpq_entries=4, tx_id_bits=4, migration_period_instructions=1_000_000)
# A log that is collected all the time, in chunks of two entries.
_EAGER_GC = _hercules(
    ewpq_entries=2, migration_period_instructions=3000, log_gc_trigger_entries=2, log_gc_chunk_entries=2
)
_COLLECTED = _hercules(
    ewpq_entries=4,
    tx_id_bits=4,
    migration_period_instructions=3000,
    log_gc_trigger_entries=8,
    log_gc_chunk_entries=4,
)
# A log of some entries, which is extended by four at a time.
_SHORT_LOG = (
    *_SLOW_MIGRATION,
    *_hercules(log_zone_bytes=6000, log_extension_bytes=4000, log_extension_chunk_entries=4),
)
# An extension area that soon grows by chained blocks.
_CHAINED = _hercules(ewpq_entries=2, ewpq_extension_factor=1, extension_block_entries=8)
# Writes that stay on their way for long.
_SLOW = ("pmem.media.write_latency_ns=3000",)
_CONTROLLER = (*_hercules(tx_len_store="controller", ewpq_entries=4), "pmem.controller.write_queue_entries=1")

_HERCULES = (
    Trap("btree", _BTREE, settings=(*_FEW, *_SMALL)),
    Trap("array-swap", _SWAP, settings=(*_FEW, *_SMALL)),
    Trap("btree", _BTREE, settings=_FEW),
    Trap("array-swap", _SWAP, settings=(*_SLOW_MIGRATION, *_SMALL), ops=40),
    Trap("btree", _BTREE, settings=(*_SLOW_MIGRATION, *_SMALL, "design.hercules.log_zone_bytes=6000"), ops=40),
    Trap("false-sharing", _WIDE, settings=(*_FEW, *_PARKED), threads=8, ops=1500, points=800),
    Trap("btree", _BTREE, settings=(*_CONTROLLER, *_CROWDED, *_SLOW), threads=4, ops=40),
    Trap("array-swap", _SWAP, settings=_CONTROLLER),
    Trap("array-swap", _SWAP, settings=_FEW, rehearsals=True),
    Trap("false-sharing", _SHARED, settings=_FEW, threads=2, ops=30),
    Trap("btree", _BTREE, settings=(*_FEW, *_TURNS), threads=4, ops=30),
    Trap("array-swap", _SWAP, settings=(*_FEW, *_TURNS), threads=4, ops=30),
    Trap("array-swap", _BIG_SWAP, settings=_hercules(ewpq_entries=16, migration_period_instructions=300)),
    # The log is collected again and again.
    Trap("array-swap", _BIG_SWAP, settings=(*_COLLECTED, *_SMALL), ops=20, points=150),
    Trap("btree", _BIG_BTREE, settings=(*_COLLECTED, *_SMALL), ops=40, points=200),
    Trap("array-swap", _SWAP, settings=(*_FEW, *_SMALL), rehearsals=True),
    # TxLens that wait for the controller, and entries that stay in the log.
    Trap("btree", _BIG_BTREE, settings=(*_CONTROLLER, *_SLOW_MIGRATION), threads=2, ops=40, points=300),
    Trap("array-swap", _SWAP, settings=(*_EAGER_GC, *_SMALL), ops=30),
    Trap("btree", _BTREE, settings=(*_EAGER_GC, *_SMALL), ops=40),
    Trap("btree", _BTREE, settings=(*_EAGER_GC, *_CROWDED, *_SLOW), threads=4, ops=40),
    Trap("btree", _BTREE, settings=(*_SHORT_LOG, *_SMALL), ops=40),
    Trap("array-swap", _BIG_SWAP, settings=(*_SHORT_LOG, *_SMALL)),
    Trap("huge", _pairs(populate=60, lines_per_tx=60), settings=(*_CHAINED, *_SMALL), ops=3),
    # Entries that hold two bits of an address: every fourth line looks the same.
    Trap("btree", _BTREE, settings=(*_FEW, *_SMALL, *_hercules(ewpq_home_bits=2))),
)

_TINY_TC = _tc(entries=4, overflow_percent=50)
_TC = (
    Trap("btree", _BTREE, settings=_tc(entries=8)),
    Trap("array-swap", _SWAP, settings=_TINY_TC),
    Trap("btree", _BTREE, settings=_tc(entries=8, coalesce="line")),
    Trap("array-swap", _SWAP, settings=_TINY_TC, rehearsals=True),
    Trap("btree", _BTREE, settings=_tc(entries=64), rehearsals=True),
    Trap("array-swap", _SWAP, settings=_TINY_TC, threads=2, ops=30),
    Trap("false-sharing", _SHARED, settings=_tc(entries=8), threads=4, ops=40),
    Trap("array-swap", _SWAP, settings=(*_TINY_TC, *_TURNS), threads=3, ops=60),
    Trap("btree", _BTREE, settings=_tc(entries=16, overflow_percent=25)),
    Trap("btree", _pairs(populate=30, node_bytes=128), settings=(*_tc(entries=256), *_SMALL, *_SLOW), ops=60),
    # Entries of the last transaction that wait long for the media, while the next one writes the same lines.
    Trap(
        "array-swap", _pairs(populate=2, element_bytes=64), settings=(*_tc(entries=64, coalesce="line"), *_SLOW), ops=40
    ),
    # One identifier for the threads of a core.
    Trap("array-swap", _SWAP, settings=(*_tc(entries=64, tx_id_bits=1), *_TURNS), threads=4, ops=60),
    Trap("btree", (*_BTREE, ("trees", "1")), settings=(*_tc(entries=64), *_CROWDED, *_SLOW), threads=4, ops=60),
)

# A last level that every transaction overflows, behind FIFOs that are large enough; FIFOs of two entries.
_KILN_LLC = (*_kiln(fifo_entries=64), *_SMALL)
_KILN_FIFO = _kiln(fifo_entries=1)
_KILN_SLOW = ("pmem.controller.write_queue_entries=1", *_SLOW)
_KILN_EADR = (
    Trap("btree", _BTREE, settings=_KILN_LLC),
    Trap("array-swap", _SWAP, settings=_KILN_LLC),
    Trap("array-swap", _SWAP, settings=_KILN_LLC, rehearsals=True),
    Trap("btree", _BTREE, settings=_KILN_LLC, rehearsals=True, ops=20),
    Trap("array-swap", _SWAP, settings=_kiln()),
    Trap("btree", _BTREE, settings=_kiln(), rehearsals=True),
    Trap("array-swap", _BIG_SWAP, settings=(*_KILN_LLC, *_KILN_SLOW), points=200),
    Trap("array-swap", _BIG_SWAP, settings=(*_KILN_LLC, *_KILN_SLOW), rehearsals=True, points=200),
    Trap("array-swap", _SWAP, settings=_KILN_LLC, faults=("nested",), points=200),
    Trap("btree", _BTREE, settings=(*_kiln(), *_CROWDED, *_SLOW), threads=4, ops=40),
    Trap("array-swap", _SWAP, settings=(*_kiln(), *_TURNS), threads=4, ops=30),
)
_KILN = (
    *_KILN_EADR,
    Trap("array-swap", _SWAP, settings=_KILN_FIFO),
    Trap("btree", _BTREE, settings=_KILN_FIFO),
    Trap("array-swap", _SWAP, settings=_KILN_FIFO, rehearsals=True),
    Trap("btree", _BTREE, settings=(*_KILN_FIFO, *_KILN_SLOW), rehearsals=True),
    Trap("btree", _BTREE, settings=(*_KILN_FIFO, *_KILN_SLOW), points=200),
    Trap("array-swap", _SWAP, settings=_KILN_FIFO, faults=("nested",), points=200),
    Trap("array-swap", _SWAP, settings=(*_KILN_FIFO, *_TURNS), threads=3, ops=60),
    Trap("btree", _BTREE, settings=(*_KILN_FIFO, *_CROWDED, *_SLOW), threads=4, ops=40),
)
# A log pending queue of two entries, so that most go to the log; a table that soon forgets blocks, which are logged
# again.
_SPILLING = _proteus(lpq_entries=2, llt_entries=4, llt_ways=2)
# A log that comes round.
_SHORT = _proteus(lpq_entries=1, log_entries=64)
_OVERTAKING = _proteus(lpq_entries=1, llt_entries=1, llt_ways=1)
# Acknowledgements that take long, and a queue that takes one write at a time.
_FAR = ("interconnect.hop_cycles=3000", "pmem.controller.write_queue_entries=1", *_SLOW)
_CONTROLLERS = ("pmem.controllers=4", "pmem.interleave_bytes=64")
_PROTEUS = (
    Trap("btree", _BTREE, settings=(*_SPILLING, *_SMALL)),
    Trap("array-swap", _SWAP, settings=(*_SPILLING, *_SMALL)),
    Trap("btree", _BTREE),
    Trap("array-swap", _SWAP, settings=(*_SPILLING, *_SMALL), rehearsals=True),
    Trap("btree", _BTREE, settings=(*_SPILLING, *_CROWDED), rehearsals=True, threads=3, ops=40),
    Trap("array-swap", _SWAP, settings=(*_SPILLING, *_SMALL, *_FAR)),
    Trap("btree", _BTREE, settings=(*_SPILLING, *_CROWDED, *_SLOW), threads=4, ops=40),
    Trap("array-swap", _SWAP, settings=(*_SPILLING, *_TURNS), threads=4, ops=30),
    Trap("array-swap", _SWAP, settings=(*_SHORT, *_CROWDED, *_CONTROLLERS, *_SLOW), threads=4, ops=60, points=300),
    Trap("false-sharing", _APART, settings=_SPILLING, threads=4, ops=40),
    # A table of one block, so that blocks are logged again soon, and entries that overtake each other at full queues.
    Trap("btree", _BTREE, settings=(*_OVERTAKING, *_CROWDED, *_CONTROLLERS, *_FAR), threads=4, ops=40, points=400),
)
# Buffers of two slices, collections all the time, and a region that comes round.
_EAGER_HOOP = _hoop(oop_buffer_bytes=256, gc_period_ns=3000, address_slices=1, block_bytes=512, region_bytes_max=32768)
# Nothing is collected before sixteen commits wait for it.
_LAZY_HOOP = _hoop(gc_period_ns=100_000_000, address_slices=1)
_NARROW = ("pmem.controller.write_queue_entries=1", "interconnect.write_back_buffers=1")
_HOOP = (
    Trap("btree", _BTREE, settings=(*_EAGER_HOOP, *_SMALL), ops=30),
    Trap("array-swap", _SWAP, settings=(*_LAZY_HOOP, *_SMALL), ops=40),
    Trap("btree", _BTREE, settings=(*_LAZY_HOOP, *_SMALL), rehearsals=True),
    Trap("array-swap", _TWO_PLACES, settings=(*_LAZY_HOOP, *_hoop(recovery_threads=3)), ops=40),
    Trap("array-swap", _SWAP, settings=(*_EAGER_HOOP, *_NARROW), threads=2, ops=40),
    Trap("false-sharing", _SHARED, settings=(*_EAGER_HOOP, *_CROWDED), threads=4, ops=60),
    Trap("btree", _BTREE, settings=(*_LAZY_HOOP, *_CROWDED, *_FOUR_CONTROLLERS), threads=4, ops=40, points=300),
    Trap("array-swap", _SWAP, settings=(*_EAGER_HOOP, *_TURNS), threads=3, ops=60, rehearsals=True),
    Trap("btree", _BTREE, settings=(*_EAGER_HOOP, *_SMALL, *_SLOW), rehearsals=True, ops=40, points=300),
)


def _undo(domain_settings: tuple[str, ...] = ()) -> tuple[Trap, ...]:
    # A ring of 41 slots, so that an entry of two comes to lie across its end.
    ring = (("log-bytes", "2688"),)
    # One of 20 slots, where entries of later rounds begin in the slots of earlier ones.
    even_ring = (("log-bytes", "1344"),)
    controllers = ("pmem.controllers=4", "pmem.interleave_bytes=64", "pmem.controller.write_queue_entries=1")
    return (
        Trap("btree", _BTREE, settings=domain_settings),
        Trap("btree", _BTREE + ring, settings=domain_settings, ops=30),
        Trap("array-swap", _SWAP, settings=domain_settings),
        Trap("btree", _BTREE, settings=(*domain_settings, *controllers), ops=20, faults=("reorder",)),
        Trap("array-swap", _SWAP + even_ring, settings=domain_settings, ops=40),
        Trap("false-sharing", (*_SHARED, ("log-granularity", "word")), settings=domain_settings, threads=4, ops=40),
        Trap("btree", _BTREE, settings=domain_settings, rehearsals=True),
        Trap("array-swap", _SWAP, settings=domain_settings, threads=2, ops=30),
        Trap("false-sharing", _APART, settings=domain_settings, threads=4, ops=40),
    )


_RING_OF_20 = (("log-bytes", "1344"),)
# Caches that write nothing back by themselves.
_ROOMY = ("l1d.size_bytes=32768", "l2.size_bytes=65536", "llc.size_bytes=1048576")
_REDO = (
    Trap("btree", _BTREE),
    # A ring of 20 lines, so that transactions come to lie across its end.
    Trap("array-swap", _SWAP + _RING_OF_20, ops=30),
    Trap("array-swap", _SWAP, threads=2, ops=30),
    Trap("btree", _BTREE, settings=_FOUR_CONTROLLERS, ops=20, faults=("reorder",)),
    Trap("btree", _BTREE, rehearsals=True),
    # Threads write to the same words in turn: what a log still holds is no longer the newest.
    Trap("array-swap", _TWO_PLACES, settings=_ROOMY, threads=4, ops=60),
    Trap(
        "array-swap",
        _TWO_PLACES,
        settings=(*_ROOMY, *_FOUR_CONTROLLERS),
        threads=4,
        ops=60,
        points=300,
        faults=("reorder",),
    ),
    # Where no queue survives, a commit record is torn; another core has to do something meanwhile.
    Trap("false-sharing", _APART, domain="media", threads=4, ops=40, points=300, faults=("torn",)),
)

# A log that comes round all the time, scanned in a few cycles.
_SHORT_RING = _fwb(log_bytes=16384, scan_period_cycles=3000, scan_lines_per_cycle=64)
_SHORTER_RING = _fwb(log_bytes=6144, scan_period_cycles=1000, scan_lines_per_cycle=64)
_TINY_BUFFER = _fwb(log_buffer_entries=2)
_FULL_QUEUE = ("pmem.controller.write_queue_entries=1", "pmem.media.write_latency_ns=3000")
_FWB = (
    Trap("btree", _BTREE, settings=_SMALL),
    Trap("array-swap", _SWAP, settings=(*_SHORT_RING, *_SMALL), ops=40),
    Trap("btree", _BTREE, settings=(*_SMALL, *_FULL_QUEUE)),
    Trap("array-swap", _SWAP, settings=(*_SHORTER_RING, *_ROOMY), ops=60, points=200),
    Trap("array-swap", _SWAP, settings=(*_SHORTER_RING, *_SMALL), ops=60, rehearsals=True, points=200),
    Trap("btree", _BTREE, settings=(*_SHORT_RING, *_TINY_BUFFER, *_SMALL), ops=40, points=200),
    Trap("btree", _BTREE, settings=(*_SMALL, *_FULL_QUEUE, *_FOUR_CONTROLLERS), ops=30, points=200),
    Trap("btree", _BTREE, rehearsals=True),
    Trap("false-sharing", _SHARED, settings=(*_SHORT_RING, *_SMALL[1:]), threads=4, ops=60, points=200),
    Trap("hash-table", _pairs(populate=20), settings=(*_SHORT_RING, *_SMALL[1:]), threads=4, ops=60, points=200),
    Trap("array-swap", _SWAP, settings=(*_SHORT_RING, *_FULL_QUEUE, *_ROOMY), threads=4, ops=80, points=300),
    Trap("queue", _pairs(populate=8), settings=(*_SHORT_RING, *_TURNS), threads=4, ops=60, points=200),
    Trap("btree", _BTREE, settings=(*_SHORT_RING, *_ROOMY), ops=60, points=200, rehearsals=True),
    # What a recovery leaves in the log meets the next life; a head and records at controllers of their own.
    Trap("array-swap", _SWAP, settings=(*_SHORTER_RING, *_ROOMY), ops=60, points=300, faults=("clean", "twice")),
    Trap(
        "array-swap",
        _SWAP,
        settings=(*_SHORTER_RING, *_FULL_QUEUE, *_FOUR_CONTROLLERS, *_ROOMY),
        ops=100,
        points=400,
    ),
)

# Epochs of a few transactions, whose identifiers come round.
_SHORT_EPOCHS = _picl(
    log_bytes=1048576, epoch_instructions=3000, eid_bits=3, scan_lines_per_cycle=64, scan_gap_epochs=1
)
_LONG_EPOCHS = _picl(log_bytes=1048576, epoch_instructions=20000, scan_lines_per_cycle=16)
_FEW_PRE_IMAGES = _picl(undo_buffer_entries=2, log_bytes=16384)
_PICL = (
    Trap("btree", _BTREE, settings=(*_SHORT_EPOCHS, *_SMALL), ops=60, points=200),
    Trap("array-swap", _SWAP, settings=(*_SHORT_EPOCHS, *_ROOMY), ops=100, points=200),
    Trap("btree", _BTREE, settings=(*_SHORT_EPOCHS, *_FEW_PRE_IMAGES, *_SMALL), ops=60, points=200),
    Trap("btree", _BTREE, settings=(*_SHORT_EPOCHS, *_SMALL, *_FULL_QUEUE), ops=60, points=200),
    Trap("btree", _BTREE, settings=(*_SHORT_EPOCHS, *_SMALL, *_FULL_QUEUE, *_FOUR_CONTROLLERS), ops=60, points=200),
    Trap("btree", _BTREE, settings=(*_SHORT_EPOCHS, *_SMALL), ops=40, points=200, rehearsals=True),
    Trap("array-swap", _SWAP, settings=(*_LONG_EPOCHS, *_SMALL), ops=100, points=200),
    Trap("false-sharing", _SHARED, settings=(*_SHORT_EPOCHS, *_SMALL[1:]), threads=4, ops=100, points=200),
    Trap("hash-table", _pairs(populate=20), settings=(*_SHORT_EPOCHS, *_ROOMY), threads=4, ops=100, points=200),
    Trap("array-swap", _SWAP, settings=(*_SHORT_EPOCHS, *_FULL_QUEUE, *_ROOMY), threads=4, ops=200, points=300),
    Trap("queue", _pairs(populate=8), settings=(*_SHORT_EPOCHS, *_FEW_PRE_IMAGES, *_TURNS), threads=4, ops=100),
    Trap("btree", _BTREE, settings=(*_SHORT_EPOCHS, *_ROOMY), ops=100, points=300, faults=("clean", "twice")),
    # Bursts that are long on their way to one controller, and lines that leave for others meanwhile.
    Trap(
        "btree",
        _BTREE,
        settings=(*_SHORT_EPOCHS, *_picl(undo_buffer_entries=8), *_SMALL, *_FULL_QUEUE, *_FOUR_CONTROLLERS),
        ops=60,
        points=1500,
    ),
)

_ANY = (
    Trap("btree", _BTREE, settings=_SMALL),
    Trap("array-swap", _SWAP, settings=_SMALL),
    Trap("btree", _BTREE, rehearsals=True),
    Trap("array-swap", _SWAP, settings=_TURNS, threads=4, ops=30),
    Trap("false-sharing", _APART, threads=4, ops=40),
)
_TRAPS: dict[str, Sequence[Trap]] = {
    "hercules": _HERCULES,
    "tc": _TC,
    "kiln": _KILN,
    "kiln-eadr": _KILN_EADR,
    "proteus": _PROTEUS,
    "proteus-eadr": _PROTEUS,
    "hoop": _HOOP,
    "hoop-eadr": _HOOP,
    "swl-flush": _undo(),
    "swl-eadr": _undo(),
    "sp": _REDO,
    "fwb": _FWB,
    "fwb-eadr": _FWB,
    "picl": _PICL,
}


def traps_of(design: str) -> Sequence[Trap]:
    """Gives the campaigns for a row, those that are quick and catch the most first.

    A row without campaigns of its own gets those that need no parameters of a design.
    """
    return _TRAPS.get(design, _ANY)
