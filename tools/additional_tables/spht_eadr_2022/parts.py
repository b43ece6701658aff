"""Additional tables for SPHT-eADR: waits of threads, small caches, heaps beyond the DRAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.additional_tables.comparison import Command, Documents, Part, Rows
from tools.additional_tables.spht_eadr_2022.runs import ALL, LINKS, PEAK, run, run_of

# Figure 3.1: waits of flushes and of threads. With media of zero latency only the path to them and the threads remain.
WAITING = ("htm-sgl", "nv-htm", "spht", "spht-eadr")
MEDIA: dict[str, tuple[str, ...]] = {
    "of the preset": (),
    "without latency": (
        "--set",
        "pmem.media={kind='fixed',read_latency_ns=1,write_latency_ns=1,banks=1024,bandwidth_mb_per_s=1000000}",
    ),
}
FEW = (1, PEAK)
# During population a commit follows each pass of a replayer, so a backward replayer never sleeps and continues in the
# measured region. A forward replayer, as under SPHT, sleeps, and nothing is replayed in the region.
FORWARD = {"nv-htm": ("--arg", "replay=forward")}


def _of_media(design: str, media: str, threads: int) -> str:
    return f"waits.{design}.{media.replace(' ', '-')}.{threads}"


def _wait_runs() -> dict[str, Command]:
    return {
        _of_media(design, media, threads): run(design, "5w5r", threads, *FORWARD.get(design, ()), *settings)
        for media, settings in MEDIA.items()
        for design in WAITING
        for threads in FEW
    }


def _waits(documents: Documents) -> Rows:
    """Throughput, the time and instructions of a transaction in its thread, and what was replayed meanwhile."""
    found = []
    for media in MEDIA:
        for design in WAITING:
            for threads in FEW:
                document = documents[_of_media(design, media, threads)]
                throughput = document["throughput_ops_per_us"]
                found.append(
                    {
                        "media": media,
                        "design": design,
                        "threads": str(threads),
                        "throughput_ops_per_us": f"{throughput:.2f}",
                        "ns_per_tx": f"{1000 * threads / throughput:.0f}",
                        "instructions_per_tx": f"{document['roi']['instructions'] / document['ops']:.0f}",
                        "replayed": str((document.get("replay") or {}).get("transactions", 0)),
                    }
                )
    return found


# Logs that fill the caches: caches of one sixteenth of the size.
SMALL = ("--set", "llc.size_bytes=1179648", "--set", "l2.size_bytes=81920")
ALONE = ("--set", "threads_per_core=1")
LONG_OPS = 48000
FLUSHING = ("spht-eadr", "spht-eadr-flush")
# Figure 4.13: the number of threads with which SPHT-eADR is then fastest.
PEAK_THREADS, PEAK_OPS = (1, 8, PEAK, ALL), 2000


def _small_runs() -> dict[str, Command]:
    return {f"small.{design}": run(design, "5w5r", PEAK, *SMALL, *ALONE, ops=LONG_OPS) for design in FLUSHING}


def _small_peak_runs() -> dict[str, Command]:
    return {
        f"small-peak.{design}.{threads}": run(design, "9w1r", threads, *SMALL, ops=threads * PEAK_OPS)
        for design in FLUSHING
        for threads in PEAK_THREADS
    }


def _of_small(document: Mapping[str, Any]) -> dict[str, str]:
    return {
        "throughput_ops_per_us": f"{document['throughput_ops_per_us']:.2f}",
        "media_write_bytes": str(document["pmem_write_bytes"]["total"]),
    }


def _small(documents: Documents) -> Rows:
    return [{"design": design} | _of_small(documents[f"small.{design}"]) for design in FLUSHING]


def _small_peak(documents: Documents) -> Rows:
    return [
        {"design": design, "threads": str(threads)} | _of_small(documents[f"small-peak.{design}.{threads}"])
        for design in FLUSHING
        for threads in PEAK_THREADS
    ]


# Section 5.2: limit of the shadow in DRAM, in MiB, by heap: the workload and its populated size.
MIB = 1 << 20
SHADOW_OPS, SHADOW_LOG_BYTES = 6000, 1 * MIB
HEAPS: dict[str, tuple[str, int, tuple[int | None, ...]]] = {
    "private words, 16 MiB": ("spht-5w5r", 262144, (None, 15, 12, 8)),
    "YCSB": ("ycsb", 100000, (None, 8, 4, 2)),
}


def _shadow_run(workload: str, populate: int, limit_mib: int | None) -> Command:
    more = ["--arg", f"populate={populate}"]
    more += [] if limit_mib is None else ["--arg", f"shadow-bytes={limit_mib * MIB}"]
    return run_of("spht-eadr", workload, PEAK, SHADOW_OPS, SHADOW_LOG_BYTES, *more)


def _shadow_runs() -> dict[str, Command]:
    return {
        f"shadow.{workload}.{limit}": _shadow_run(workload, populate, limit)
        for workload, populate, limits in HEAPS.values()
        for limit in limits
    }


def _shadow_row(heap: str, limit: int | None, document: Mapping[str, Any]) -> dict[str, str]:
    tx, replay = document["tx"], document["replay"]
    return {
        "heap": heap,
        "shadow_in_dram": "all" if limit is None else f"{limit} MiB",
        "throughput_ops_per_us": f"{document['throughput_ops_per_us']:.2f}",
        "sgl_committed": str(tx["sgl_committed"]),
        "aborted_by_trap": str(tx["aborted_by"]["trap"]),
        "page_outs": str(replay["page_outs"]),
        "page_out_cycles": str(replay["page_out_cycles"]),
    }


def _shadow(documents: Documents) -> Rows:
    return [
        _shadow_row(heap, limit, documents[f"shadow.{workload}.{limit}"])
        for heap, (workload, _, limits) in HEAPS.items()
        for limit in limits
    ]


# Section 2.4.2: savings of replay from links. Logs of a few thousand words, which do not fill if replay keeps up.
REPLAY_THREADS, REPLAY_OPS, REPLAY_LOG_BYTES = 8, 16000, 65536
WAYS: dict[str, tuple[str, ...]] = {"none": ()} | LINKS
REPLAYERS = (1, 2, 4)


def _of_links(links: str, replayers: int) -> str:
    return f"replay.{links}.{replayers}"


def _replay_runs() -> dict[str, Command]:
    return {
        _of_links(links, replayers): run_of(
            "spht", "spht-5w5r", REPLAY_THREADS, REPLAY_OPS, REPLAY_LOG_BYTES, "--arg", f"replayers={replayers}", *more
        )
        for links, more in WAYS.items()
        for replayers in REPLAYERS
    }


def _replay(documents: Documents) -> Rows:
    found = []
    for links in WAYS:
        for replayers in REPLAYERS:
            document = documents[_of_links(links, replayers)]
            replay = document["replay"]
            found.append(
                {
                    "links": links,
                    "replayers": str(replayers),
                    "throughput_ops_per_us": f"{document['throughput_ops_per_us']:.2f}",
                    "transactions_replayed": str(replay["transactions"]),
                    "lag_max": str(replay["lag_max"]),
                    "latency_p50_ns": f"{document['latency_ns']['p50']:.0f}",
                    "latency_max_us": f"{document['latency_ns']['max'] / 1000:.0f}",
                }
            )
    return found


# Figures 4.3 and 4.4: interrupts, which abort hardware transactions independent of their accesses. They are more
# frequent than those of an operating system, so that a run of some hundred microseconds has some.
INTERRUPT_CYCLES = 100000
INTERRUPTED = ("spht", "spht-eadr", "spht-eadr-flush")
INTERRUPTED_THREADS = (1, PEAK, ALL)


def _interrupt_runs() -> dict[str, Command]:
    setting = ("--set", f"timer_interrupt_cycles={INTERRUPT_CYCLES}")
    return {
        f"interrupts.{design}.{threads}": run(design, "5w5r", threads, *setting)
        for design in INTERRUPTED
        for threads in INTERRUPTED_THREADS
    }


def _interrupts(documents: Documents) -> Rows:
    found = []
    for design in INTERRUPTED:
        for threads in INTERRUPTED_THREADS:
            document = documents[f"interrupts.{design}.{threads}"]
            tx = document["tx"]
            aborts = sum(tx["aborted_by"].values())
            row = {"design": design, "threads": str(threads)}
            row["throughput_ops_per_us"] = f"{document['throughput_ops_per_us']:.2f}"
            row["aborts"] = str(aborts)
            found.append(row | {"abort_rate_percent": f"{100 * aborts / (aborts + tx['committed']):.2f}"})
    return found


PARTS: dict[str, Part] = {
    "replay": (_replay_runs(), _replay),
    "waits": (_wait_runs(), _waits),
    "small-caches": (_small_runs(), _small),
    "small-caches-threads": (_small_peak_runs(), _small_peak),
    "shadow": (_shadow_runs(), _shadow),
    "interrupts": (_interrupt_runs(), _interrupts),
}
