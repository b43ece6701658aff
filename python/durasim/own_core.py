"""Loads a core with designs of the user in place of `durasim._core`.

A crate that `durasim new design` has written makes such a module. Its package sets two environment variables before it
imports durasim, so that worker processes load the same module: `DURASIM_CORE`, the file of the module, and
`DURASIM_COMMAND`, the name of its command, which the commands in results then begin with.
"""

import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader
from types import ModuleType

_NAME = "durasim._core"


def command() -> str:
    """Returns the name of the command that runs durasim with the loaded core."""
    return os.environ.get("DURASIM_COMMAND", "durasim")


def load() -> ModuleType | None:
    """Loads the module that `DURASIM_CORE` names as `durasim._core`; returns None if there is no such variable.

    Raises:
        ImportError: The file is missing or no such module, or a name of its designs exists already.
    """
    path = os.environ.get("DURASIM_CORE")
    if not path:
        return None
    if not os.path.isfile(path):  # noqa: PTH113 - the start-up of all commands needs no other path
        raise ImportError(f"DURASIM_CORE: there is no module {path}: build it again")
    loader = ExtensionFileLoader(_NAME, path)
    spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
    if spec is None:
        raise ImportError(f"DURASIM_CORE: {path} is no module")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[_NAME] = module
    return module
