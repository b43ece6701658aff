"""Draws planted faults of seven kinds by the hash of the checked-out tree; shows which general campaign catches each.

    .venv/bin/python -m tools.drawn_faults                 # three of each kind
    .venv/bin/python -m tools.drawn_faults --each 5 --seed 7

`durasim mutation` sends a fault through campaigns that were chosen for its design. Here it meets only what is drawn
without knowing it: `durasim campaign --random`, then runs of campaigns/drawn.toml. Ends with 1 if one comes through.
"""

import argparse
import dataclasses
import itertools
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from durasim import DurasimError, _core
from durasim.crashes import campaign_file, random_runs
from durasim.crashes.crash_request import crash_request
from durasim.crashes.mutants import INSTRUCTIONS_MAX, Mutant, all_mutants

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "rings, tables and identifiers that come to their end": r"wraps|overrun|-overtakes-tail|identifier|slots?-|chain-|"
    r"head-|spill|extension|log-overwritten|torn-bit|table-|full-discards",
    "plain accesses and cleans beside transactions": r"plain-|outside of transactions|not-cleaned|cleans-not",
    "threads that read or write the same lines": r"conflicts?-|reader|reads-forgotten|-tracked|fill-|subscribed|"
    r"copying-ignored",
    "queues, controllers and paths of drawn machines": r"path-|eviction|evict|scan-|order|-not-awaited|ack-",
    "windows of a few instructions": r"clock|timestamps|-first$|before-|told-|lock-not|-early$|at-issue",
    "aborts and switches while writes are in flight": r"switch-|abort-|aborts-|migration-|commit-misses-copying|"
    r"removed-",
    "sweeps, replays and recoveries": r"sweep-|replay-|recovery-|collector-|marker-",
}
RUNS_OF_CAMPAIGN = 60
RUNS_AT_RANDOM = 1000


def tree() -> str:
    """Gives the hash of the tree that is checked out."""
    command = ["git", "rev-parse", "HEAD^{tree}"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def draw(seed: str, each: int) -> Iterator[tuple[str, Mutant]]:
    """Gives `each` faults of each kind, no two of them alike."""
    drawn: set[str] = set()
    for kind, pattern in KINDS.items():
        numbers = random.Random(f"{seed} {kind}")  # noqa: S311 - draws test cases
        names = re.compile(pattern)
        of_kind = [m for m in all_mutants() if m.equivalent is None and names.search(f"{m.name} {m.summary}")]
        numbers.shuffle(of_kind)
        others = (mutant for mutant in of_kind if mutant.name not in drawn)
        for mutant in itertools.islice(others, each):
            drawn.add(mutant.name)
            yield kind, mutant


def runs(mutant: Mutant) -> Iterator[campaign_file.Unit]:
    """Gives the runs of the campaign file that the design takes part in, round after round."""
    campaign = campaign_file.read(str(ROOT / "campaigns" / "drawn.toml"))
    for round_number in itertools.count():
        units = [unit for unit in campaign.units(round_number) if unit.scenario.design == mutant.design]
        random.Random(f"{mutant.path} {round_number}").shuffle(units)  # noqa: S311 - draws test cases
        for unit in units:
            scenario = dataclasses.replace(unit.scenario, max_instructions=INSTRUCTIONS_MAX)
            yield dataclasses.replace(unit, scenario=scenario)


def with_fault(unit: campaign_file.Unit, mutant: Mutant, name: str) -> dict[str, Any]:
    """Gives the request of a run with the fault of this name; with "none" the same program without one."""
    if not mutant.in_guest:
        return unit.request() if name == "none" else unit.request() | {"planted": name}
    # Programs abort nothing by themselves: in every other run each transaction is undone once before it commits.
    request = crash_request(unit.scenario, unit.options, planted=True, rehearsals=unit.scenario.seed % 2 == 0)
    for arguments in ("args", "recover_args", "check_args", "again_args"):
        request[arguments] = [*request[arguments], "--planted", name]
    return request


def caught_by_campaign(mutant: Mutant) -> str | None:
    """Gives what a run of the campaign file objected to; None if none did."""
    for number, unit in enumerate(itertools.islice(runs(mutant), RUNS_OF_CAMPAIGN), 1):
        found = objection_to(with_fault(unit, mutant, mutant.name))
        # What is wrong without the fault too, such as a machine that is too small for the program, shows nothing.
        if found and not objection_to(with_fault(unit, mutant, "none")):
            return f"run {number}: {found}"
    return None


def objection_to(request: dict[str, Any]) -> str | None:
    """Gives what a run objects to; None if all its recoveries are right."""
    try:
        document = json.loads(_core.crash(json.dumps(request)))
    except DurasimError as error:
        return str(error)
    return str(document["failures"][0]["message"]) if document["violations"] else None


def caught_at_random(mutant: Mutant) -> str | None:
    """Gives the random run that shows the fault; None if none does, or the fault is in software."""
    if mutant.in_guest:
        return None
    for first in range(1, RUNS_AT_RANDOM // 2, 20):
        failures = random_runs.run([mutant.design], 40, None, first, lambda *_: None, planted=mutant.name)["failures"]
        if failures:
            return f"{failures[0]['id']}: {failures[0]['message']}"
    return None


def main(seed: str, each: int) -> int:
    """Tries the faults; gives the number of those that came through."""
    missed = 0
    print(f"seed {seed}")
    for kind, mutant in draw(seed, each):
        ways = {"campaign --random": caught_at_random, "campaigns/drawn.toml": caught_by_campaign}
        found = ((name, way(mutant)) for name, way in ways.items())
        name, objection = next(((name, what) for name, what in found if what), ("nothing", "-"))
        missed += name == "nothing"
        print(f"{kind} | {mutant.path} | {name} | {objection[:160]}", flush=True)
    print(f"{missed} not caught")
    return missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Try planted faults that are drawn by the hash of the tree.")
    parser.add_argument("--each", type=int, default=3, help="faults of each kind")
    parser.add_argument("--seed", help="instead of the hash of the tree")
    chosen = parser.parse_args()
    sys.exit(1 if main(chosen.seed or tree(), chosen.each) else 0)
