"""The server of the local page.

tornado parses the requests. Simulations run on one other thread, one after the other, so the server answers meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import re
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import tornado.httpserver
import tornado.web

from durasim.errors import DurasimError, host_io, refusal
from durasim.explore.access import ADDRESS, HEADERS, Access
from durasim.explore.explored_run import LINES_MAX, ExploredRun

PAGE = Path(__file__).parent / "page"
"""The built page: `make page` writes it, and the wheel has it."""
_FILES = {"index.html": "text/html", "page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
_BODY_MAX_BYTES = 4096
_FORBIDDEN, _UNAUTHORIZED, _REFUSED, _NOT_FOUND, _CLOSED = 403, 401, 400, 404, 499
_LINE = re.compile(r"0x[0-9a-f]{1,16}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_ID_LENGTH_MAX = 200


def check_page(folder: Path = PAGE) -> None:
    """Checks that the page was built.

    Raises:
        ConfigError: It was not.
    """
    if not (folder / "page.js").is_file():
        raise refusal("explore", "the page is not built: run `make page` in the checkout, or install the wheel")


def listen(port: int) -> socket.socket:
    """Returns a socket that listens on this computer alone; port 0 means a free one.

    Raises:
        HostIoError: Another program uses the port, or it may not be used.
    """
    try:
        found = socket.create_server((ADDRESS, port))
    except OSError as error:
        raise host_io(f"port {port}", error) from None
    found.setblocking(False)
    return found


def serve(run: ExploredRun, opened: socket.socket, ready: Callable[[Access], None], folder: Path = PAGE) -> None:
    """Serves the page of a run until the program is interrupted.

    Args:
        run: The run.
        opened: The listening socket, see `listen`.
        ready: Called with the access rules as soon as requests are answered.
        folder: The built page.
    """
    access = Access(opened.getsockname()[1])
    # One line for each refused request would repeat what its sender is answered.
    for name in ("tornado.access", "tornado.general"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    simulations = ThreadPoolExecutor(1)

    async def answer_requests() -> None:
        server = tornado.httpserver.HTTPServer(
            application(run, access, simulations, folder), max_body_size=_BODY_MAX_BYTES
        )
        server.add_socket(opened)
        ready(access)
        await asyncio.Event().wait()

    try:
        # Ctrl-C is the usual end of a server.
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(answer_requests())
    finally:
        simulations.shutdown(wait=False, cancel_futures=True)


def application(
    run: ExploredRun, access: Access, simulations: ThreadPoolExecutor, folder: Path = PAGE
) -> tornado.web.Application:
    """Returns the requests that the server answers."""
    shared = {"run": run, "access": access, "simulations": simulations, "folder": folder}
    return tornado.web.Application(
        [
            (f"/({'|'.join(map(re.escape, _FILES))}|)", _File, shared),
            (r"/session", _Session, shared),
            (r"/run", _Run, shared),
            (r"/moment", _Moment, shared),
            (r"/source", _Source, shared),
        ],
        default_handler_class=_Missing,
        default_handler_args=shared,
    )


class _Handler(tornado.web.RequestHandler):
    """A request that is answered only if this server was meant."""

    needs_session: ClassVar = True

    def initialize(self, run: ExploredRun, access: Access, simulations: ThreadPoolExecutor, folder: Path) -> None:
        self.run, self.access, self.simulations, self.folder = run, access, simulations, folder
        self.closed = False

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        headers = self.request.headers
        hosts = headers.get_list("Host")
        problem = self.access.problem_of(hosts[0] if len(hosts) == 1 else None, headers.get_list("Origin"))
        if problem is not None:
            self.refuse(_FORBIDDEN, problem)
        elif self.needs_session and not self.access.is_session(self.get_cookie(self.access.cookie)):
            self.refuse(_UNAUTHORIZED, "open the address that `durasim explore` has printed: it has the token")

    def on_connection_close(self) -> None:
        self.closed = True

    def refuse(self, status: int, problem: str) -> None:
        self.set_status(status, "Refused")
        self.answer({"problem": problem})

    def answer(self, document: Any) -> None:
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(document, ensure_ascii=True, separators=(",", ":")))

    def write_error(self, status_code: int, **_: Any) -> None:
        self.answer({"problem": f"the server cannot answer this request ({status_code})"})

    def compute_etag(self) -> None:
        """Returns no hash: no answer is stored."""


class _Missing(_Handler):
    """Any other address."""

    def _refuse_all(self) -> None:
        self.refuse(_NOT_FOUND, "there is nothing at this address")

    get = head = post = put = delete = patch = options = _refuse_all


class _File(_Handler):
    """A file of the page. It has no data of the run, so it needs no session."""

    needs_session = False

    def get(self, name: str) -> None:
        name = name or "index.html"
        self.set_header("Content-Type", f"{_FILES[name]}; charset=utf-8")
        self.finish((self.folder / name).read_bytes())


class _Session(_Handler):
    """Exchanges the token for a cookie that scripts cannot read and that other sites cannot use."""

    needs_session = False

    def post(self) -> None:
        try:
            document = json.loads(self.request.body.decode("utf-8"))
            token = document["token"]
            value = self.access.exchanged(token) if isinstance(token, str) else None
        except (ValueError, KeyError, TypeError):
            value = None
        if value is None:
            self.refuse(_UNAUTHORIZED, "the token is not the one that `durasim explore` has printed")
            return
        self.set_cookie(self.access.cookie, value, httponly=True, samesite="Strict", path="/")
        self.answer({})


class _Run(_Handler):
    def get(self) -> None:
        self.answer(self.run.overview())


class _Moment(_Handler):
    async def get(self) -> None:
        failure, lines = self.get_query_argument("id", ""), self.get_query_argument("lines", "")
        addresses = lines.split(",") if lines else []
        if not failure or len(failure) > _ID_LENGTH_MAX:
            self.refuse(_REFUSED, "id: give the id of a power failure, such as e12")
        elif len(addresses) > LINES_MAX or not all(_LINE.fullmatch(address) for address in addresses):
            self.refuse(_REFUSED, f"lines: give up to {LINES_MAX} addresses such as 0x10000001080")
        else:
            await self._simulate(failure, [int(address, 16) for address in addresses])

    async def _simulate(self, failure: str, lines: list[int]) -> None:
        def simulated() -> Any:
            # The browser has asked for another moment since, or was closed.
            return None if self.closed else self.run.moment(failure, lines)

        try:
            document = await asyncio.get_running_loop().run_in_executor(self.simulations, simulated)
        except DurasimError as error:
            self.refuse(_REFUSED, str(error))
            return
        if document is None or self.closed:
            print(f"durasim: the browser closed its request for {failure}", file=sys.stderr)
            self.set_status(_CLOSED, "Closed")
            self.finish()
        else:
            self.answer(document)


class _Source(_Handler):
    def get(self) -> None:
        number = self.get_query_argument("file", "")
        found = self.run.source(int(number)) if _NUMBER.fullmatch(number) else None
        if found is None:
            self.refuse(_NOT_FOUND, "file: there is no source file with this number")
        else:
            self.answer(dataclasses.asdict(found))
