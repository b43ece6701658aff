"""Atomic writes of files, and the streams of the terminal."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from durasim.errors import HostIoError, host_io, refusal

STANDARD_OUTPUT = "-"


def to_json(document: Any) -> str:
    """Returns the canonical text of a result: indent of two spaces, keys in order, a newline at the end."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_writable(path: str) -> None:
    """Checks before a long run that `path` can be written.

    Raises:
        HostIoError: The folder is missing or not writable.
    """
    if path == STANDARD_OUTPUT or _is_special(Path(path)):
        return
    target = Path(path)
    if target.is_dir():
        raise host_io(path, IsADirectoryError(0, "is a folder, not a file"))
    try:
        handle, probe = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise host_io(path, error) from None
    os.close(handle)
    Path(probe).unlink()


def write_json(path: str, document: Any) -> None:
    """Writes `document` to `path`, or to standard output if `path` is '-'.

    The text goes to a temporary file in the folder of `path`, which is synced and then renamed, so that readers never
    see a partial file. A device or pipe cannot be replaced and is written in place.

    Raises:
        HostIoError: The disk is full or the folder is not writable; no temporary file remains.
    """
    text = to_json(document)
    if path == STANDARD_OUTPUT:
        write_stdout(text)
        return
    target = Path(path)
    try:
        if _is_special(target):
            target.write_text(text, encoding="utf-8")
        else:
            replace_file(target, text.encode())
    except OSError as error:
        raise host_io(path, error) from None


def check_file(path: str) -> None:
    """Checks before a long run that `path` can be a file that `write_file` writes.

    Raises:
        HostIoError: The folder is missing or not writable, or `path` is a folder, a device or a pipe.
    """
    if path == STANDARD_OUTPUT or _is_special(Path(path)):
        raise host_io(path, OSError(0, "is no file: these bytes go to a file that appears whole"))
    check_writable(path)


def write_file(path: str, data: bytes) -> None:
    """Writes bytes to a file as `write_json` does, so that readers never see a partial one.

    Raises:
        HostIoError: The disk is full, the folder is not writable, or `path` is no file; no temporary file remains.
    """
    check_file(path)
    try:
        replace_file(Path(path), data)
    except OSError as error:
        raise host_io(path, error) from None


def replace_file(target: Path, data: bytes) -> None:
    """Writes a file that readers never see partially: see `write_json`."""
    # Follow a link, to replace its target and not the link.
    target = target.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_stdout(text: str) -> None:
    """Writes `text` to standard output and flushes it.

    Raises:
        HostIoError: Standard output is not writable.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise _stream_failed("standard output", error) from None


def pass_through(stream: str, data: bytes) -> None:
    """Copies output of the guest to our standard output or error, byte for byte where possible.

    Raises:
        HostIoError: The stream is not writable.
    """
    ours = sys.stdout if stream == "stdout" else sys.stderr
    try:
        binary = getattr(ours, "buffer", None)
        if binary is None:
            ours.write(data.decode(errors="replace"))
        else:
            ours.flush()
            binary.write(data)
        ours.flush()
    except OSError as error:
        raise _stream_failed("standard output" if stream == "stdout" else "standard error", error) from None


def to_stderr(_stream: str, data: bytes) -> None:
    """Copies all output of the guest to standard error, while standard output carries a document."""
    pass_through("stderr", data)


def discard(_stream: str, _data: bytes) -> None:
    """Discards the output of the guest."""


class NoReaderError(HostIoError):
    """Standard output is a pipe without a reader, for example after `head` has ended: print no message."""


def _stream_failed(name: str, error: OSError) -> Exception:
    # Otherwise the interpreter reports the rest of the buffer again at exit.
    with contextlib.suppress(OSError, ValueError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1 if name == "standard output" else 2)
        os.close(sink)
    if name == "standard output" and isinstance(error, BrokenPipeError):
        return NoReaderError(f"{name}: {error.strerror}")
    return host_io(name, error)


def read_json(path: str, field: str) -> Any:
    """Reads the JSON document in `path`.

    Raises:
        HostIoError: The file cannot be read.
        ConfigError: It is not JSON; `field` names the argument.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise host_io(path, error) from None
    except UnicodeDecodeError:
        raise refusal(field, f"{path} is not a text file") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise refusal(field, f"{path} is not JSON (line {error.lineno}: {error.msg})") from None
