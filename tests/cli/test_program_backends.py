"""A program records its backend, and designs with another backend refuse it."""

import pytest

import compiled
import durasim as ds
from durasim._core import backends_of
from durasim.programs import toolchain

SECTION = b".durasim.backend"
BANK = toolchain.guest_folder() / "examples" / "stamp" / "bank.c"
QUIET = ("--machine", "tiny", "--quiet")
RUN = ("--", "run", "-n", "10", "-t", "2")


def bank(backend):
    """Builds the example."""
    return compiled.stamp(BANK, backend)


@pytest.mark.parametrize("backend", toolchain.backends(), ids=lambda backend: backend.name)
def test_every_backend_is_named(tmp_path, backend):
    source = tmp_path / "names.cpp"
    source.write_text('#include "durasim/backend.h"\n')
    made = toolchain.compile_program(source, tmp_path / "names.o", [f"-D{backend.define}", "-c"])
    assert backends_of(made) == [backend.name]


@pytest.mark.parametrize(
    ("design", "backend"), [("spht", "htm-sgl"), ("htm-sgl", "plain"), ("hercules", "plain"), ("opt", "htm-sgl")]
)
def test_a_program_for_another_design_is_refused(refused, design, backend):
    elf = bank(backend)
    assert backends_of(elf) == [backend]
    words = ("elf", f"{elf} is built for the backend {backend}", design, "--control")
    refused(["run", "--design", design, "--elf", elf, *QUIET, *RUN], 2, *words)
    crash = ["crash", "--design", design, "--machine", "tiny", "--elf", elf, "--check", "check", *RUN]
    refused(crash, 2, *words)


@pytest.mark.parametrize(
    ("design", "backend", "more"),
    [("htm-sgl", "htm-sgl", ()), ("opt", "plain", ()), ("hercules", "plain", ("--control",)), ("optimal", "plain", ())],
)
def test_a_program_for_the_design_runs_and_so_do_controls(program, design, backend, more):
    result = program("run", "--design", design, "--elf", bank(backend), *QUIET, *more, *RUN)
    assert (result.returncode, result.stderr) == (0, "")
    assert "10 transfers" in result.stdout


def test_a_snapshot_goes_on_with_a_program_of_its_design_alone(tmp_path):
    elf, snapshot = bank("htm-sgl"), tmp_path / "snapshot"
    run = {"elf": elf, "args": RUN[1:], "machine": "tiny", "guest_output": lambda *_: None}
    with pytest.raises(ds.ConfigError, match="is built for the backend htm-sgl, and spht-eadr runs programs"):
        ds.run(design="spht-eadr", snapshot_at=0, snapshot=snapshot, **run)
    assert not snapshot.exists()


def test_a_program_that_names_none_is_taken(program, hello):
    assert backends_of(hello) == []
    assert program("run", "--design", "spht", "--elf", hello, "--quiet").returncode == 0


def test_odd_files_name_none(tmp_path):
    """Section headers that are truncated, or after the end of the file, are no reason to refuse a program."""
    path = tmp_path / "odd"
    data = bank("htm-sgl").read_bytes()
    assert data.count(SECTION + b"\0") == 1
    headers = int.from_bytes(data[40:48], "little")
    far = data[:40] + (2**63 - 1).to_bytes(8, "little") + data[48:]
    for odd in (
        b"",
        data[:63],
        data[: headers + 70],
        far,
        data[:5] + b"\x02" + data[6:],
        data.replace(SECTION, b"x" * 16),
    ):
        path.write_bytes(odd)
        assert backends_of(path) == []
    assert backends_of(tmp_path / "missing") == backends_of(tmp_path) == []
