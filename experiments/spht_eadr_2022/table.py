"""The experiments of SPHT-eADR (thesis, Lisboa 2022): the synthetic benchmark of sections 3.1.2, 4.2 and 4.3.1.

As in section 3.1.2, SPHT runs with all its flushes on the same machine with durable caches. The programs of STAMP and
TPC-C are a separate experiment, spht_eadr_2022_programs.
"""

from __future__ import annotations

from experiments.comparison import (
    LIMITS,
    Command,
    Documents,
    Experiment,
    Formula,
    Measured,
    attempts,
    geomean,
    limit_key,
    limit_rows,
    measured,
)
from experiments.scoring import Published
from experiments.spht_eadr_2022.parts import PARTS  # noqa: F401 - for tools/published.py
from experiments.spht_eadr_2022.runs import ALL, LINKS, MIXES, PEAK, run

DESIGNS = ("htm-sgl", "spht", "spht-eadr", "spht-eadr-flush")
THREADS = (1, 8, PEAK, ALL)

MEAN = "geometric mean of the six mixes"
# Not measured in the thesis: links between the transactions of SPHT, and a limit on open transactions.
LINKED, LIMITED = ("1w9r", "5w5r", "5w45r"), ("9w1r", "45w5r")


def _commands() -> dict[str, Command]:
    found = {
        f"{mix}.{design}.{threads}": run(design, mix, threads)
        for mix in MIXES
        for design in DESIGNS
        for threads in THREADS
    }
    flush = ("--arg", "log-lines=flush")
    found |= {"5w5r.spht-eadr-flush.lines-flushed": run("spht-eadr-flush", "5w5r", PEAK, *flush)}
    for mix in LINKED:
        for way, arguments in LINKS.items():
            found[f"{mix}.spht.links-{way}"] = run("spht", mix, PEAK, *arguments)
    for mix in LIMITED:
        for limit, arguments in LIMITS.items():
            found[limit_key(f"{mix}.spht-eadr.{ALL}", limit)] = run("spht-eadr", mix, ALL, *arguments)
    return found


COMMANDS = _commands()
EXPERIMENTS: tuple[Experiment, ...] = ()
EXPERIMENT_COMMANDS: dict[str, Command] = {}

ROWS = {"SPHT": "spht", "SPHT-eADR": "spht-eadr", "SPHT-eADR-Flush": "spht-eadr-flush", "HTM+SGL": "htm-sgl"}


def _throughput(documents: Documents, mix: str, design: str, threads: int = PEAK) -> float:
    return float(documents[f"{mix}.{design}.{threads}"]["throughput_ops_per_us"])


def _ratio(documents: Documents, mix: str, pair: tuple[str, str], threads: int = PEAK) -> float:
    ours, baseline = (_throughput(documents, mix, design, threads) for design in pair)
    return ours / baseline


def _mix(number: Published) -> str:
    return number.workload.removeprefix("synthetic ").replace("/", "")


def _times(ours: float, reason: str = "") -> Measured:
    return Measured(f"{ours:.2f} x", (ours,), reason)


def ratio(reason: str = "") -> Formula:
    """Throughput relative to a baseline with a thread on each core."""

    def formula(documents: Documents, number: Published) -> Measured:
        pair = ROWS[number.design], ROWS[number.baseline]
        mixes = tuple(MIXES) if number.workload == "synthetic no-contention" else (_mix(number),)
        return measured(geomean([_ratio(documents, mix, pair) for mix in mixes]), 2, reason)

    return formula


def over_spht_eadr(name: str = "") -> Formula:
    """Throughput of SPHT-eADR-Flush over that of SPHT-eADR with a thread on each core."""

    def formula(documents: Documents, number: Published) -> Measured:
        mix = _mix(number)
        run = f"{mix}.spht-eadr-flush.{name or PEAK}"
        return _times(float(documents[run]["throughput_ops_per_us"]) / _throughput(documents, mix, "spht-eadr"))

    return formula


def low_threads() -> Formula:
    """Throughput of SPHT-eADR-Flush over that of SPHT-eADR with one thread."""

    def formula(documents: Documents, number: Published) -> Measured:
        ours = _ratio(documents, _mix(number), ("spht-eadr-flush", "spht-eadr"), threads=1)
        return _times(ours, "with 1 thread")

    return formula


def over_baseline() -> Formula:
    """Throughput of a design over that of its baseline with a thread on each core."""

    def formula(documents: Documents, number: Published) -> Measured:
        return _times(_ratio(documents, _mix(number), (ROWS[number.design], ROWS[number.baseline])))

    return formula


def fewer_aborts() -> Formula:
    """Aborted attempts of SPHT and of both forms of SPHT-eADR, in percent, with all hardware threads."""

    def formula(documents: Documents, number: Published) -> Measured:
        rates = {}
        for design in ("spht", "spht-eadr", "spht-eadr-flush"):
            tx = documents[f"{_mix(number)}.{design}.{ALL}"]["tx"]
            aborted = sum(tx["aborted_by"].values())
            rates[design] = 100 * aborted / (aborted + tx["htm_committed"])
        ours = ", ".join(f"{rate:.2f} %" for rate in rates.values())
        reason = f"of attempts, {ALL} threads: SPHT, SPHT-eADR, SPHT-eADR-Flush"
        return Measured(ours, tuple(rates.values()), reason)

    return formula


def best() -> Formula:
    """Throughput of a design over that of the fastest other implemented one."""

    def formula(documents: Documents, number: Published) -> Measured:
        found = {design: _throughput(documents, _mix(number), design) for design in DESIGNS}
        own = found.pop(ROWS[number.design])
        second = max(found, key=lambda design: found[design])
        return _times(own / found[second], f"over `{second}`, the fastest other one that is built")

    return formula


def lines_flushed() -> Formula:
    """Throughput with lines cleaned over that with lines flushed."""

    def formula(documents: Documents, _: Published) -> Measured:
        flushed = float(documents["5w5r.spht-eadr-flush.lines-flushed"]["throughput_ops_per_us"])
        return _times(_throughput(documents, "5w5r", "spht-eadr-flush") / flushed)

    return formula


def peak() -> Formula:
    """Number of threads with the highest throughput."""

    def formula(documents: Documents, number: Published) -> Measured:
        run = _mix(number), ROWS[number.design]
        found = max(THREADS, key=lambda threads: _throughput(documents, *run, threads))
        return measured(found, 0, f"of {', '.join(map(str, THREADS))}")

    return formula


def knee() -> Formula:
    """Gain per thread after each core has one, relative to the gain per thread before."""

    def formula(documents: Documents, number: Published) -> Measured:
        mix, later = _mix(number), []
        for design in ("spht-eadr", "spht-eadr-flush"):
            first, peak, everything = (_throughput(documents, mix, design, n) for n in (1, PEAK, ALL))
            later.append((everything - peak) / (ALL - PEAK) / ((peak - first) / (PEAK - 1)))
        ours = ", ".join(f"{gain:.2f}" for gain in later)
        reason = "what a thread beyond 12 adds, relative to one before: SPHT-eADR, SPHT-eADR-Flush"
        return Measured(ours, tuple(later), reason)

    return formula


FORMULAS: dict[tuple[str, str, str, str], Formula] = {
    ("Sec1.1.2", "throughput_ratio", "SPHT-eADR", "synthetic no-contention"): ratio(MEAN),
    ("Fig3.1", "throughput_relation", "SPHT", "synthetic 5w/5r"): over_baseline(),
    ("Fig3.3", "throughput_relation", "SPHT", "synthetic 5w/45r"): over_baseline(),
    ("Fig4.1", "throughput_relation", "SPHT-eADR-Flush (CLFLUSHOPT)", "synthetic 5w/5r"): over_spht_eadr(
        "lines-flushed"
    ),
    ("Fig4.2", "throughput_relation", "SPHT-eADR-Flush (CLWB)", "synthetic 5w/5r"): over_spht_eadr(),
    ("Fig4.1/4.2", "throughput_knee_threads", "SPHT-eADR and SPHT-eADR-Flush", "synthetic 5w/5r"): knee(),
    ("Fig4.1/4.2", "throughput_difference CLWB vs CLFLUSHOPT", "SPHT-eADR-Flush", "synthetic 5w/5r"): lines_flushed(),
    ("Fig4.3/4.4", "abort_rate_relation", "SPHT", "synthetic 5w/5r"): fewer_aborts(),
    ("Fig4.5", "throughput_ratio", "SPHT-eADR", "synthetic 1w/9r"): ratio(),
    ("Fig4.5", "throughput_relation", "SPHT-eADR-Flush", "synthetic 1w/9r"): over_spht_eadr(),
    ("Fig4.6", "throughput_ratio", "SPHT-eADR", "synthetic 5w/45r"): ratio(),
    ("Fig4.6", "throughput_relation", "SPHT-eADR-Flush", "synthetic 5w/45r"): over_spht_eadr(),
    ("Fig4.9", "throughput_ratio", "SPHT-eADR", "synthetic 5w/5r"): ratio(),
    ("Fig4.9", "throughput_ratio", "SPHT-eADR-Flush", "synthetic 5w/5r"): ratio(),
    ("Fig4.9", "throughput_rank", "SPHT-eADR-Flush", "synthetic 5w/5r"): best(),
    ("Fig4.10", "throughput_ratio", "SPHT-eADR", "synthetic 25w/25r"): ratio(),
    ("Fig4.10", "throughput_ratio", "SPHT-eADR-Flush", "synthetic 25w/25r"): ratio(),
    ("Fig4.10", "throughput_rank", "SPHT-eADR-Flush", "synthetic 25w/25r"): best(),
    ("Fig4.13", "peak_throughput_threads", "SPHT-eADR", "synthetic 9w/1r"): peak(),
    ("Fig4.13", "throughput_relation", "SPHT-eADR-Flush", "synthetic 9w/1r"): low_threads(),
    ("Fig4.14", "peak_throughput_threads", "SPHT-eADR", "synthetic 45w/5r"): peak(),
    ("Fig4.14", "throughput_relation", "SPHT-eADR-Flush", "synthetic 45w/5r"): low_threads(),
    ("Sec5.1", "throughput_ratio", "SPHT-eADR", "synthetic no-contention"): ratio(f"{MEAN}; Sec1.1.2 again"),
}


def _threads(documents: Documents) -> list[dict[str, str]]:
    """Throughput by threads, and outcomes of attempts."""
    return [
        {"mix": mix, "design": design, "threads": str(threads)} | attempts(documents[f"{mix}.{design}.{threads}"])
        for mix in MIXES
        for design in DESIGNS
        for threads in THREADS
    ]


def _links(documents: Documents) -> list[dict[str, str]]:
    """Throughput of SPHT by kind of links between its transactions."""
    return [
        {"mix": mix, "none": f"{_throughput(documents, mix, 'spht'):.2f}"}
        | {way: f"{documents[f'{mix}.spht.links-{way}']['throughput_ops_per_us']:.2f}" for way in LINKS}
        for mix in LINKED
    ]


def _limits(documents: Documents) -> list[dict[str, str]]:
    return limit_rows(documents, {mix: f"{mix}.spht-eadr.{ALL}" for mix in LIMITED})


TABLES = {"threads": _threads, "links": _links, "limits": _limits}
