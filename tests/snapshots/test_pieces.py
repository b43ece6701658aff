"""An uninterrupted run equals save, restore and run at any instruction, and so does a fork."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from snapshot_runs import HARDWARE_TX, ROOMY, run, run_in_pieces, scenario

import durasim as ds
from pairing import pairs

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

ROWS = [row["name"] for row in ds.designs()]


def _stops(instructions: int, count: int, seed: str) -> list[int]:
    draw = random.Random(seed)  # noqa: S311 - stops, not secrets
    return sorted(draw.randrange(1, instructions) for _ in range(count))


@pytest.mark.parametrize(
    ("design", "threads"), pairs(ROWS, (1, 2, 4), keep=lambda design, threads: threads == design % 3)
)
def test_a_run_in_pieces_is_the_run(design: str, threads: int) -> None:
    whole, text = run(scenario(design, threads))
    # Stops with "singly" lie between instructions of the same block, not only between blocks.
    for how, count in (("save", 25), ("fork", 40), ("ahead", 4), ("singly", 40)):
        stops = _stops(whole["program"]["instructions"], count, f"{design} {threads} {how}")
        pieces = run_in_pieces(scenario(design, threads), stops, how)
        assert pieces["stops"] == count
        assert pieces["output"] == text
        assert pieces["result"] == whole
        for digest, exit_code, further in pieces["ahead"]:
            assert (digest, exit_code) == (whole["digest"], 0)
            assert text.endswith(further)
    if design in HARDWARE_TX:
        assert whole["tx"]["htm_committed"] > 0


def test_a_restored_core_counts_waits_for_narrower_stores_as_before() -> None:
    """Loads from recorded pages take a fast path through the core, which attributes such a wait differently."""
    in_crowded_caches = scenario("spht", 2, settings=("cores=2",))
    whole, _ = run(in_crowded_caches)
    stops = _stops(whole["program"]["instructions"], 25, "spht 2 save")
    assert run_in_pieces(in_crowded_caches, stops, "save")["result"] == whole


@pytest.mark.parametrize("how", ["save", "fork", "ahead", "singly"])
def test_stops_inside_of_hardware_transactions(how: str, program: Any) -> None:
    """The program has no other transactions: one that is open at a stop is a hardware transaction."""
    request = {
        "machine": "tiny", "design": "htm-sgl", "elf": str(program("counters")), "elf_name": "counters", "seed": 1,
        "workload": "counters", "set": ["cores=4", *ROOMY], "args": ["2", "100"],
    }  # fmt: skip
    whole, text = run(request)
    assert whole["stats"]["rtm.committed"]["value"] > 100
    pieces = run_in_pieces(request, _stops(whole["program"]["instructions"], 80, how), how)
    assert pieces["in_progress"]["open transaction"] > 8
    assert pieces["in_progress"]["aborted transaction"] > 0
    assert (pieces["result"], pieces["output"]) == (whole, text)
    ahead = [(digest, exit_code) for digest, exit_code, _ in pieces["ahead"]]
    assert ahead == [(whole["digest"], 0)] * (80 if how == "ahead" else 0)


def test_stops_lie_in_the_middle_of_everything() -> None:
    seen: Counter[str] = Counter()
    for design in ("swl-flush", "hercules", "tc"):
        whole, _ = run(scenario(design, 4))
        # A core is left with a suspended request in one of a hundred places.
        stops = _stops(whole["program"]["instructions"], 600, design)
        pieces = run_in_pieces(scenario(design, 4), stops, "fork")
        assert pieces["result"] == whole
        seen.update(pieces["in_progress"])
    assert seen.keys() >= {
        "open transaction",
        "suspended request",
        "queued write",
        "waiting write",
        "awaited acknowledgement",
        "awaited clean",
        "scheduled work",
        "instruction timer",
    }


@pytest.mark.parametrize("domain", ["bbb", "nv-llc"])
def test_persist_buffers_links_and_random_choices_are_saved(domain: str) -> None:
    random_choices = [f"{level}.replacement=random" for level in ("l1i", "l1d", "l2", "llc")]
    links = ["interconnect.topology=crossbar", "interconnect.llc_banks=2", "interconnect.link_width_bytes=4"]
    settings = ("cores=4", "bbb.entries=3", *random_choices, *links)
    request = scenario("swl-flush", 4, domain=domain, settings=settings)
    whole, text = run(request)
    seen: Counter[str] = Counter()
    for how, count in (("save", 15), ("fork", 25)):
        pieces = run_in_pieces(request, _stops(whole["program"]["instructions"], count, f"{domain} {how}"), how)
        assert (pieces["result"], pieces["output"]) == (whole, text)
        seen.update(pieces["in_progress"])
    assert (seen["persist buffer"] > 0) == (domain == "bbb")
    assert whole["stats"]["interconnect.wait_cycles"]["value"] > 0
    other = run(scenario("swl-flush", 4, domain=domain, settings=settings, seed=2))[0]
    assert other["digest"] != whole["digest"]


@pytest.mark.parametrize("design", ["hercules", "tc"])
def test_threads_that_share_cores_and_run_ahead_are_saved(design: str) -> None:
    settings = ("cores=2", "core.time_slice_cycles=3000", "skew_cycles=200")
    request = scenario(design, 2, settings=settings, workload="array-swap")
    whole, _ = run(request)
    stops = _stops(whole["program"]["instructions"], 30, design)
    assert run_in_pieces(request, stops, "save")["result"] == whole


@pytest.mark.parametrize("design", ["swl-flush", "htm-sgl", "spht-eadr"])
def test_two_hardware_threads_for_each_core_are_saved(design: str) -> None:
    """Six threads on two cores with two hardware threads: pairs vary, and queues change their lengths."""
    settings = ("cores=2", "threads_per_core=2", "core.time_slice_cycles=3000")
    request = scenario(design, 6, settings=settings, workload="array-swap")
    whole, text = run(request)
    for how in ("save", "fork"):
        stops = _stops(whole["program"]["instructions"], 20, f"{design} {how}")
        pieces = run_in_pieces(request, stops, how)
        assert (pieces["result"], pieces["output"]) == (whole, text)


@pytest.mark.parametrize("design", ["swl-flush", "tc"])
@pytest.mark.parametrize("media", ['{ kind = "stt-ram" }', '{ kind = "ddr3" }', '{ kind = "ddr4", ranks = 2 }'])
def test_controllers_and_media_of_all_kinds_are_saved(design: str, media: str) -> None:
    settings = (
        "cores=2", "pmem.controllers=3", "pmem.interleave_bytes=64", "pmem.controller.write_policy=read-first",
        f"pmem.media={media}", "dram.controllers=2", f"dram.media={media}",
    )  # fmt: skip
    request = scenario(design, 2, settings=settings)
    whole, _ = run(request)
    for how in ("save", "fork"):
        stops = _stops(whole["program"]["instructions"], 15, f"{design} {media} {how}")
        assert run_in_pieces(request, stops, how)["result"] == whole


@pytest.mark.parametrize("name", ["timeouts", "conditions", "private_pool"])
def test_programs_with_sleeping_and_waiting_threads(name: str, program: Any) -> None:
    request = {
        "machine": "tiny", "design": "hercules", "elf": str(program(name)), "elf_name": name, "seed": 1,
        "workload": name, "set": ["cores=2", "core.time_slice_cycles=20000"],
        "args": ["4"] if name == "private_pool" else [],
    }  # fmt: skip
    whole, text = run(request)
    for how in ("save", "fork"):
        stops = _stops(whole["program"]["instructions"], 12, name)
        pieces = run_in_pieces(request, stops, how)
        assert pieces["result"] == whole
        assert pieces["output"] == text


@pytest.mark.parametrize("how", ["save", "fork", "ahead"])
def test_files_of_the_guest_come_along(how: str, program: Any, tmp_path: Any) -> None:
    def request(folder: str) -> dict[str, Any]:
        root = tmp_path / folder
        root.mkdir()
        return {
            "machine": "tiny", "design": "opt", "elf": str(program("files")), "elf_name": "files", "seed": 1,
            "workload": "files", "root": str(root), "control": True,
        }  # fmt: skip

    whole, text = run(request("whole"))
    instructions = whole["program"]["instructions"]
    for stop in _stops(instructions, 3, how):
        pieces = run_in_pieces(request(f"{stop}"), [stop, min(stop + 1000, instructions - 1)], how)
        assert pieces["output"] == text
        assert pieces["result"]["guest_exit_code"] == 0
        assert pieces["result"]["digest"] == whole["digest"]
        assert all(ahead[0] == whole["digest"] for ahead in pieces["ahead"])
