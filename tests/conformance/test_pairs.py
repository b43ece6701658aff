"""Every design with every workload, with every number of threads and every supported persistence domain.

`make test` runs pairs: each design runs a part of the workloads once, with alternating thread counts and domains.
`make test-all` runs the product.
"""

import pytest

import durasim as ds
from durasim.crashes.test_plans import plan_of
from pairing import stride_of

DESIGNS = [row for row in ds.designs() if "transactions" in row["interfaces"]]
SMALL = {workload.name: workload.small for workload in ds.workloads() if workload.interface == "transactions"}
THREADS = (1, 2, 4)
# Power failures of a pair, and of each case of the product.
POINTS, POINTS_OF_PRODUCT = 30, 100
# Words of different locks are on separate lines; test_threads.py tests lines shared by threads.
UNSHARED = {"false-sharing": {"shared-lines": "false"}}


def _cases():
    for number, design in enumerate(DESIGNS):
        for column, workload in enumerate(SMALL):
            block = column // len(THREADS)
            stride = stride_of(design, workload)
            # Thread counts and domains of a workload vary over the designs, those of a design over the workloads.
            chosen = (block % len(design["domains"]), (number // len(THREADS) + block) % len(THREADS))
            for domain_number, domain in enumerate(design["domains"]):
                for threads_number, threads in enumerate(THREADS):
                    is_chosen = (number + column) % stride == 0 and (domain_number, threads_number) == chosen
                    yield pytest.param(
                        design, workload, domain, threads,
                        id=f"{design['name']}-{workload}-{domain}-{threads}",
                        marks=() if is_chosen else pytest.mark.long,
                    )  # fmt: skip


@pytest.mark.parametrize(("design", "workload", "domain", "threads"), list(_cases()))
def test_durable_designs_survive_and_controls_are_caught(request, design, workload, domain, threads):
    points = POINTS_OF_PRODUCT if request.node.get_closest_marker("long") else POINTS
    small = dict(SMALL[workload])
    result = ds.crash(
        design=design["name"],
        workload=workload,
        machine="tiny",
        ops=threads * small.pop("ops"),
        threads=threads,
        points=points,
        domain=domain,
        set=plan_of(design["name"]).short_run_settings if threads > 1 else (),
        workload_args={**small, **UNSHARED.get(workload, {})},
    )
    assert result.trials_by_fault["clean"] == min(points, result.points)
    assert set(result.judged_by) == {"bytes", "guest", "history"}
    assert min(result.judged_by["guest"], result.judged_by["history"]) >= result.trials_by_fault["clean"]
    # Some of the first events precede all stores.
    assert result.judged_by["bytes"] >= result.trials_by_fault["clean"] // 2
    if design["control"]:
        assert result.violations > 0
    else:
        assert result.failures == ()
