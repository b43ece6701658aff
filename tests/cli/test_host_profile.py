"""The profile by parts of the simulator, from a file in the format of callgrind."""

from __future__ import annotations

from tools.host_profile import PARTS, Profile, part_of

CALLGRIND = """\
events: Ir
fl=(1) core.rs
fn=(1) durasim_core::core::step::run_code
10 100
+2 20
cfn=(2) durasim_memory::controller::Controller::step
calls=3 40
* 900
fn=(2)
40 30
cfn=(3) __memcpy_avx_unaligned_erms
calls=2 0
-5 8
fn=(3)
0 11
fn=(4) _PyEval_EvalFrameDefault
7 5000
cfn=(3)
calls=1 0
7 3
"""


def test_instructions_count_for_the_part_that_has_them_or_calls_a_library():
    parts = Profile.parse(CALLGRIND.splitlines()).by_part()
    # 900 instructions of the call are those of the controller itself, which are counted there.
    assert parts == {"core": 120, "controllers": 38}


def test_each_part_has_its_functions():
    functions = {
        "durasim_isa::execute::execute_rest": "core",
        "<durasim_designs::hoop::State as durasim_contract::hooks::Durability>::store": "design",
        "durasim_memory::reservations::Reservations::first_gap": "controllers",
        "durasim_machine::system::work::pending_events::next_event": "events",
        "durasim_machine::system::requests::stores::store_through_design": "caches",
        "malloc": None,
    }
    assert {function: part_of(function) for function in functions} == functions
    assert {part for part in functions.values() if part} == set(PARTS)
