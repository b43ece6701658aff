"""The maps of guest/structures against std::map."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from guest_programs import HERE, NativeBuild, Outcome, execute

CASES = re.findall(r'name == "([\w-]+)"', (HERE / "structures_test.cpp").read_text())


@pytest.mark.parametrize("case", CASES)
def test_structures(native: NativeBuild, tmp_path: Path, case: str) -> None:
    assert execute([native("structures_test", "undo-fence"), tmp_path / "pool", case]) == Outcome(0, "ok\n")
