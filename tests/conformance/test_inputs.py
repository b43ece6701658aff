"""Writes of the transactions of workloads, compared with the inputs in the papers."""

import pytest

import durasim as ds

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

# Transactions of a measurement: enough for an average.
OPS = 3000
# Reduced data of a measurement, where the paper's size would take long; depths of trees grow only logarithmically.
POPULATE_MAX = 100_000


MEMBERS = [member for member in ds.suite_members() if member.info.interface == "transactions"]


# Without a published number, `make test-all` checks that transactions write at all.
SOME_MEMBERS = [
    pytest.param(member, id=member.info.name, marks=() if member.published_tx_lines is not None else pytest.mark.long)
    for member in MEMBERS
]


@pytest.mark.parametrize("member", SOME_MEMBERS)
def test_transactions_write_as_many_lines_as_published(member):
    published = member.published_tx_lines
    populate = min(int(member.info.given.get("populate", POPULATE_MAX)), POPULATE_MAX)
    ops = min(OPS, int(member.info.given["ops"]))
    profile = ds.measure_workload(
        member.info.name, ops=ops, threads=member.threads, workload_args={"populate": populate}
    )
    # Threads without transactions execute their share of the operations.
    durable = member.threads - int(member.info.given.get("ordinary", 0))
    assert profile.transactions == ops * durable // member.threads
    lines = profile.tx_lines
    assert 0 <= lines.min <= lines.avg <= lines.max
    if isinstance(published, list):
        assert published[0] <= lines.avg <= published[1]
    elif published is not None:
        assert abs(lines.avg / published - 1) < 0.2


@pytest.mark.parametrize(
    ("workload", "arguments"), [("array-swap", {"element-bytes": 192}), ("btree", {"node-bytes": 256})]
)
def test_lines_are_those_that_a_log_of_lines_saves(workload, arguments):
    """Counted twice independently: by the machine, and by the undo log of the software."""

    def entries(ops):
        printed = []
        options = {"design": "swl-eadr", "machine": "tiny", "workload": workload, "workload_args": arguments}
        result = ds.run(ops=ops, guest_output=lambda _, data: printed.append(data), **options)
        assert result.guest_exit_code == 0
        return int(b"".join(printed).split(b"log_entries=")[1].split()[0])

    def lines(ops):
        profile = ds.measure_workload(workload, ops=ops, workload_args=arguments)
        return round(profile.tx_lines.avg * profile.transactions)

    # Some lines that share an entry in the table of recently logged lines are logged again.
    assert 1 <= (entries(200) - entries(1)) / (lines(200) - lines(1)) <= 1.06


def test_what_is_measured():
    profile = ds.measure_workload("array-swap", ops=50, workload_args={"populate": 64, "element-bytes": 128})
    assert profile.transactions == 50
    assert (profile.tx_lines.min, profile.tx_lines.avg, profile.tx_lines.max) == (4, 4.0, 4)
    # The elements, the two lines of the arena's head, and the root object.
    assert profile.footprint_bytes == 64 * 128 + 3 * 64
    assert 300 < profile.instructions_per_tx < 3000
    threads = ds.measure_workload("array-swap", ops=50, threads=4, workload_args={"populate": 64, "element-bytes": 128})
    assert threads.transactions == 50
    assert threads.tx_lines.avg == 5.0, "a line more: how many operations the thread has finished"
