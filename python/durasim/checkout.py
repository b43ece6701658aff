"""The checkout that durasim was installed from, and its tools for maintainers. A wheel has neither."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from durasim.errors import refusal


def checkout() -> Path:
    """Returns the root folder of the checkout.

    Raises:
        ConfigError: durasim was not installed from a checkout.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / "Cargo.toml").is_file() or not (root / "docs/designs").is_dir():
        raise refusal("check", "requires a checkout of the sources, with docs/designs/ and the tests")
    return root


def tool(name: str) -> ModuleType:
    """Returns the module `tools/NAME.py` of the checkout.

    Raises:
        ConfigError: durasim was not installed from a checkout.
    """
    path = checkout() / "tools" / f"{name}.py"
    full_name = f"durasim_tools.{name}"
    spec = importlib.util.spec_from_file_location(full_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = sys.modules[full_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
