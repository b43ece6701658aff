from collections.abc import Callable

__version__: str
DOMAINS: list[str]

class DurasimError(Exception):
    exit_code: int

class ConfigError(DurasimError):
    field: str
    problem: str

class GuestFault(DurasimError):
    pc: int
    last_syscall: str | None

class HostIoError(DurasimError):
    path: str

class StuckError(DurasimError):
    cycle: int

class InternalError(DurasimError): ...

def run(request: str, output: Callable[[str, bytes], None]) -> str: ...
def crash(request: str, progress: Callable[[int, int], bool] | None = None) -> str: ...
def run_in_pieces(request: str, stops: list[int], how: str) -> str: ...
def time_forks(request: str, mark: int, count: int, between: int) -> tuple[list[float], int]: ...
def designs() -> str: ...
def machines() -> str: ...
def machine_toml(name: str) -> str: ...
def machine_schema() -> str: ...
