"""The experiments of SPHT-eADR (thesis, Lisboa 2022): the synthetic benchmark of sections 3.1.2, 4.2 and 4.3.1.

As in section 3.1.2, SPHT runs with all its flushes on the same machine with durable caches. The programs of STAMP and
TPC-C are a separate experiment, spht_eadr_2022_programs.
"""

from __future__ import annotations

from tools.additional_tables.comparison import (
    LIMITS,
    Command,
    Documents,
    Experiment,
    attempts,
    limit_key,
    limit_rows,
)
from tools.additional_tables.spht_eadr_2022.parts import PARTS  # noqa: F401 - for tools/published.py
from tools.additional_tables.spht_eadr_2022.runs import ALL, LINKS, MIXES, PEAK, run

DESIGNS = ("htm-sgl", "spht", "spht-eadr", "spht-eadr-flush")
THREADS = (1, 8, PEAK, ALL)

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


def _throughput(documents: Documents, mix: str, design: str, threads: int = PEAK) -> float:
    return float(documents[f"{mix}.{design}.{threads}"]["throughput_ops_per_us"])


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
