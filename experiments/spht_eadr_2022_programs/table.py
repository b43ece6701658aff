"""The programs of STAMP and TPC-C in SPHT-eADR (thesis, Lisboa 2022), sections 4.3.2 and 4.3.3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from statistics import mean

from experiments.comparison import (
    LIMITS,
    Command,
    Documents,
    Experiment,
    Formula,
    Measured,
    Part,
    Rows,
    limit_key,
    limit_rows,
    measured,
    throughput_text,
)
from experiments.scoring import Published, class_of, read_published, verdict
from experiments.spht_eadr_2022_programs.runs import PROGRAMS, run
from experiments.spht_eadr_2022_programs.variants import PARTS as VARIANTS

DESIGNS = ("htm-sgl", "spht", "spht-eadr", "spht-eadr-flush")
EADR = ("spht-eadr", "spht-eadr-flush")
# One thread on each of a subset of the cores, one on each core, and one on each hardware thread.
SOME, PEAK, ALL = 8, 12, 24
THREADS = (SOME, PEAK, ALL)
# Fewer threads, for the program with the published peak at the smallest of these numbers.
FEW, YADA = 4, "STAMP yada"
# With conflicts, small differences decide when the lock is first taken: numbers are means of two seeds.
SEEDS = (1, 2)
# Not measured in the thesis: a limit on open transactions.
LIMITED = ("STAMP kmeans low", "TPC-C")
HARDLY_LESS = 0.95
EADR_BOTH, ALL_OF_THEM = "SPHT-eADR (both)", "(all solutions)"


def key(program: str, design: str, threads: int, seed: int = SEEDS[0]) -> str:
    """Returns the name of a run's document."""
    return f"{PROGRAMS[program][0]}.{design}.{threads}.{seed}"


def _threads_of(program: str) -> tuple[int, ...]:
    return (FEW, *THREADS) if program == YADA else THREADS


def _all_runs(*more: str) -> dict[str, Command]:
    return {
        key(program, design, threads, seed): run(design, program, threads, seed, *more)
        for program in PROGRAMS
        for design in DESIGNS
        for threads in _threads_of(program)
        for seed in SEEDS
    }


COMMANDS = _all_runs() | {
    limit_key(key(program, "spht-eadr", ALL), limit): run("spht-eadr", program, ALL, SEEDS[0], *arguments)
    for program in LIMITED
    for limit, arguments in LIMITS.items()
}
EXPERIMENTS: tuple[Experiment, ...] = ()
EXPERIMENT_COMMANDS: dict[str, Command] = {}


def _throughputs(documents: Documents, program: str, design: str, threads: int) -> list[float]:
    return [float(documents[key(program, design, threads, seed)]["throughput_ops_per_us"]) for seed in SEEDS]


def _throughput(documents: Documents, program: str, design: str, threads: int) -> float:
    return mean(_throughputs(documents, program, design, threads))


def _outcomes(documents: Documents, program: str, design: str, threads: int) -> Counter[str]:
    """Outcomes of attempts, summed over all runs: commits by path, aborts by cause."""
    found: Counter[str] = Counter()
    for seed in SEEDS:
        tx = documents[key(program, design, threads, seed)]["tx"]
        found.update({"htm_commits": tx["htm_committed"], "sgl_commits": tx["sgl_committed"]})
        found.update({f"aborts_{cause}": count for cause, count in tx["aborted_by"].items()})
    return found


def _peak(documents: Documents, program: str, designs: Iterable[str]) -> float:
    numbers = _threads_of(program)
    return max(_throughput(documents, program, design, threads) for design in designs for threads in numbers)


def _peak_threads(documents: Documents, program: str, design: str) -> int:
    return max(_threads_of(program), key=lambda threads: _throughput(documents, program, design, threads))


def _designs(number: Published) -> tuple[str, ...]:
    return {EADR_BOTH: EADR, "SPHT-eADR": EADR[:1]}.get(number.design, DESIGNS)


def _baselines(number: Published) -> tuple[str, ...]:
    return {"SPHT": ("spht",), "HTM+SGL": ("htm-sgl",), "other solutions": ("spht", "htm-sgl")}[number.baseline]


def _program(number: Published) -> str:
    return "TPC-C" if number.workload.startswith("TPC-C") else number.workload


def peak_threads() -> Formula:
    """Number of threads with which each design is fastest."""

    def formula(documents: Documents, number: Published) -> Measured:
        found = [_peak_threads(documents, _program(number), design) for design in _designs(number)]
        reason = f"of {', '.join(map(str, _threads_of(_program(number))))}: {', '.join(_designs(number))}"
        return Measured(", ".join(map(str, found)), tuple(map(float, found)), reason)

    return formula


def peak_ratio() -> Formula:
    """The highest throughput of a form of SPHT-eADR, relative to that of the fastest baseline."""

    def formula(documents: Documents, number: Published) -> Measured:
        program = _program(number)
        ours = _peak(documents, program, _designs(number)) / _peak(documents, program, _baselines(number))
        return measured(ours, 2)

    return formula


def ratio(threads: tuple[int, ...] = (PEAK,)) -> Formula:
    """Throughput with equal threads relative to the baseline: the smallest ratio over all forms and thread counts."""

    def formula(documents: Documents, number: Published) -> Measured:
        program, (baseline,) = _program(number), _baselines(number)
        ours = min(
            _throughput(documents, program, design, n) / _throughput(documents, program, baseline, n)
            for design in _designs(number)
            for n in threads
        )
        return measured(ours, 2)

    return formula


def ahead_of_all() -> Formula:
    """Throughput of HTM+SGL over that of all forms of SPHT, each with its best number of threads."""

    def formula(documents: Documents, number: Published) -> Measured:
        program = _program(number)
        ours = _peak(documents, program, ("htm-sgl",)) / _peak(documents, program, DESIGNS[1:])
        return Measured(f"{ours:.2f} x", (ours,))

    return formula


def _rate(
    documents: Documents, program: str, design: str, threads: int, of: Callable[[float, float, float], float]
) -> float:
    outcomes = _outcomes(documents, program, design, threads)
    htm, sgl = outcomes.pop("htm_commits"), outcomes.pop("sgl_commits")
    return of(float(htm), float(sgl), float(outcomes.total()))


def _abort_rate(htm: float, sgl: float, aborted: float) -> float:
    return aborted / (aborted + htm + sgl)


def aborts_over() -> Formula:
    """Aborted attempts, in percent, with all hardware threads."""

    def formula(documents: Documents, number: Published) -> Measured:
        rates = [100 * _rate(documents, _program(number), design, ALL, _abort_rate) for design in DESIGNS]
        text = ", ".join(f"{rate:.0f}" for rate in rates)
        reason = f"of attempts, {ALL} threads: {', '.join(DESIGNS)}"
        return Measured(text, tuple(rates), reason)

    return formula


def commits_in_hardware() -> Formula:
    """Share of transactions that commit in hardware: the smallest over all designs and thread counts."""

    def formula(documents: Documents, number: Published) -> Measured:
        program = _program(number)
        shares = [
            _rate(documents, program, design, threads, lambda htm, sgl, _: htm / (htm + sgl))
            for design in DESIGNS
            for threads in THREADS
        ]
        ours, most = min(shares), sum(share >= HARDLY_LESS for share in shares)
        reason = f"the least of {len(shares)}; {most} have {100 * HARDLY_LESS:.0f} % and more"
        return measured(100 * ours, 2, reason)

    return formula


def scales() -> Formula:
    """Throughput of every design with more threads over that with fewer, step by step."""

    def formula(documents: Documents, number: Published) -> Measured:
        program, texts, steps = _program(number), [], []
        for design in DESIGNS:
            found = [_throughput(documents, program, design, threads) for threads in THREADS]
            texts.append(f"{found[-1] / found[0]:.2f}")
            steps += [more / less for less, more in pairwise(found)]
        reason = f"throughput with {ALL} threads over that with {SOME}: {', '.join(DESIGNS)}"
        return Measured(", ".join(texts), tuple(steps), reason)

    return formula


def better() -> Formula:
    """Throughput of both forms of SPHT-eADR over that of the baseline, each at its peak."""

    def formula(documents: Documents, number: Published) -> Measured:
        program = _program(number)
        baseline = _peak(documents, program, _baselines(number))
        found = [_peak(documents, program, (design,)) / baseline for design in _designs(number)]
        text = ", ".join(f"{each:.2f}" for each in found) + " x"
        return Measured(text, tuple(found))

    return formula


def degrades() -> Formula:
    """Throughput of both forms of SPHT-eADR up to one thread on each core, and from there on, step by step."""

    def formula(documents: Documents, number: Published) -> Measured:
        program = _program(number)
        steps = {
            (more, less): [
                _throughput(documents, program, design, more) / _throughput(documents, program, design, less)
                for design in _designs(number)
            ]
            for less, more in pairwise(THREADS)
        }
        texts = [f"{', '.join(f'{each:.2f}' for each in found)} ({m} over {n})" for (m, n), found in steps.items()]
        reason = f"threads; {', '.join(_designs(number))}"
        return Measured("; ".join(texts), (*steps[PEAK, SOME], *steps[ALL, PEAK]), reason)

    return formula


def fewer_with_threads() -> Formula:
    """Change of abort rates with threads, in points, SPHT first."""

    def formula(documents: Documents, number: Published) -> Measured:
        program, changes, texts = _program(number), {}, []
        for design in DESIGNS:
            first, last = (100 * _rate(documents, program, design, threads, _abort_rate) for threads in (SOME, ALL))
            changes[design] = last - first
            texts.append(f"{first:.0f} to {last:.0f} %")
        reason = f"from {SOME} to {ALL} threads: {', '.join(DESIGNS)}"
        return Measured(", ".join(texts), (changes.pop("spht"), *changes.values()), reason)

    return formula


FORMULAS: dict[tuple[str, str, str, str], Formula] = {
    ("Sec1.1.2", "throughput_ratio", "SPHT-eADR", "TPC-C, similar thread counts"): ratio(),
    ("Fig4.17", "peak_throughput_threads", EADR_BOTH, "STAMP genome"): peak_threads(),
    ("Fig4.18", "abort_rate (over)", ALL_OF_THEM, "STAMP genome"): aborts_over(),
    ("Fig4.19", "peak_throughput_ratio", EADR_BOTH, "STAMP intruder"): peak_ratio(),
    ("Fig4.21", "throughput_ratio (over)", "HTM+SGL", "STAMP kmeans low"): ahead_of_all(),
    ("Fig4.23", "peak_throughput_threads", ALL_OF_THEM, "STAMP kmeans vlow"): peak_threads(),
    ("Fig4.26", "abort_rate (over)", ALL_OF_THEM, "STAMP labyrinth"): aborts_over(),
    ("Fig4.28", "HTM_commit_rate", ALL_OF_THEM, "STAMP ssca2"): commits_in_hardware(),
    ("Fig4.27", "peak_throughput_ratio", EADR_BOTH, "STAMP ssca2"): peak_ratio(),
    ("Fig4.27", "scales_smoothly_up_to", ALL_OF_THEM, "STAMP ssca2"): scales(),
    ("Fig4.29", "peak_throughput_ratio", EADR_BOTH, "STAMP vacation low"): peak_ratio(),
    ("Fig4.29", "scales_smoothly_up_to", ALL_OF_THEM, "STAMP vacation low"): scales(),
    ("Fig4.31", "peak_throughput_threads", EADR_BOTH, "STAMP yada"): peak_threads(),
    ("Fig4.31", "throughput_relation", EADR_BOTH, "STAMP yada"): better(),
    ("Fig4.33", "throughput_ratio up to 12 threads", EADR_BOTH, "TPC-C"): ratio((SOME, PEAK)),
    ("Fig4.33", "throughput_degrades_from", EADR_BOTH, "TPC-C"): degrades(),
    ("Fig4.34", "abort_rate_trend", "SPHT", "TPC-C"): fewer_with_threads(),
}


def _threads(documents: Documents) -> Rows:
    """Throughput by threads with its range, and outcomes of attempts, summed over all runs."""
    found = []
    for program in PROGRAMS:
        for design in DESIGNS:
            for threads in _threads_of(program):
                ours = _throughputs(documents, program, design, threads)
                row = {"program": program, "design": design, "threads": str(threads)}
                ends = f"{throughput_text(min(ours))}-{throughput_text(max(ours))}"
                row |= {"throughput_ops_per_us": throughput_text(mean(ours)), "range": ends}
                outcomes = _outcomes(documents, program, design, threads)
                found.append(row | {name: str(count) for name, count in outcomes.items()})
    return found


def _limits(documents: Documents) -> Rows:
    return limit_rows(documents, {program: key(program, "spht-eadr", ALL) for program in LIMITED})


TABLES = {"threads": _threads, "limits": _limits}

# An attempt that ends while another thread holds the lock does not count toward the ten: the thesis leaves this open.
UNCOUNTED = "uncounted."
UNCOUNTED_COMMANDS = {
    UNCOUNTED + name: command for name, command in _all_runs("--arg", "lock-aborts-uncounted=true").items()
}


def _as_counted(documents: Documents) -> Documents:
    """Renames the documents without counted aborts to the names that the formulas use."""
    return Documents({name.removeprefix(UNCOUNTED): documents[name] for name in UNCOUNTED_COMMANDS})


def _uncounted(documents: Documents) -> Rows:
    """The published numbers, from runs without counted aborts."""
    renamed, found = _as_counted(documents), []
    for number in read_published("spht-eadr-2022-programs"):
        ours = FORMULAS[number.key](renamed, number)
        row = {name: getattr(number, name) for name in ("figure", "metric", "design", "baseline", "workload")}
        found.append(
            row
            | {"published": f"{number.value} {number.unit}", "ours": ours.text, "class": class_of(number)}
            | {"verdict": verdict(number, ours.values), "reason": ours.reason}
        )
    return found


def _uncounted_threads(documents: Documents) -> Rows:
    return _threads(_as_counted(documents))


PARTS: dict[str, Part] = VARIANTS | {
    "uncounted": (UNCOUNTED_COMMANDS, _uncounted),
    "uncounted-threads": (UNCOUNTED_COMMANDS, _uncounted_threads),
}
