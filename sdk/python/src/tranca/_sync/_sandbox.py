# Made by generate.py from the file of this name in _async.
"""Sandboxes that live for a session, and the client that they are made by."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from .._address import Address
from .._errors import GoneError, InvalidError, NotFoundError, ServerUnreachableError, TrancaError
from .._types import (
    Command,
    Narrow,
    ProcessInfo,
    SandboxInfo,
    ServerInfo,
    TerminalSize,
    arguments,
    milliseconds,
    process_path,
    sandbox_path,
)
from ._block import Block
from ._files import Files
from ._http import HTTP
from ._port import UPGRADE, Connection
from ._process import Process
from ._run import Runner

_PAGE = 100

_Infos = list[SandboxInfo]


class Client(Block, Runner):
    """A tranca server. Each run is in a fresh sandbox, of which nothing is left afterwards.

    ``server`` is ``unix:///path``, ``http://host:port`` or ``https://host:port``. Without it, it is
    TRANCA_SERVER of the environment, else the socket at which this user's ``tranca serve`` listens. ``key``,
    else TRANCA_KEY, is what a server at a host and port asks for. ``timeout`` bounds, in seconds, each wait
    for the server in calls that should be short; runs and transfers take as long as they take.
    """

    def __init__(self, server: str | None = None, key: str | None = None, *, timeout: float = 60) -> None:
        self._http = HTTP(Address.of(server, key), timeout)

    def __enter__(self) -> Client:
        return self

    def close(self) -> None:
        """Close the connections. Sandboxes go on. Idempotent."""
        self._http.close()

    def _runs(self) -> tuple[HTTP, str]:
        return self._http, "/v1/run"

    def info(self) -> ServerInfo:
        """Return what the server says of itself: its version, languages and profiles."""
        return ServerInfo._from(self._http.fields("GET", "/v1/info"))

    def sandboxes(self, metadata: Mapping[str, str] | None = None) -> _Infos:
        """Return all sandboxes, or those that have all of this metadata, oldest first."""
        found: list[SandboxInfo] = []
        params: dict[str, Any] = {"limit": _PAGE}
        if metadata:
            params["metadata"] = [f"{name}={value}" for name, value in metadata.items()]
        while True:
            page = self._http.fields("GET", "/v1/sandboxes", params=params)
            found += [SandboxInfo._from(s) for s in page.objects("sandboxes")]
            params["cursor"] = page.text("next")
            if not params["cursor"]:
                return found


class Sandbox(Runner):
    """One sandbox for several runs, which find each other's files.

    ``with Sandbox() as s`` makes one and destroys it at the end of the block. :meth:`create` makes
    one that goes on until it is destroyed, its time is over or it was idle for too long; :meth:`connect`
    finds one again.

    ``ttl`` and ``idle_timeout`` are in seconds; None is the server's default. ``metadata`` is yours to find
    it again by. ``profile`` names one of the operator's policies, and ``narrow`` asks for less than it allows.
    """

    def __init__(
        self,
        profile: str | None = None,
        *,
        ttl: float | None = None,
        idle_timeout: float | None = None,
        metadata: Mapping[str, str] | None = None,
        narrow: Narrow | None = None,
        client: Client | None = None,
    ) -> None:
        body = {
            "profile": profile,
            "ttl_ms": milliseconds(ttl),
            "idle_timeout_ms": milliseconds(idle_timeout),
            "metadata": dict(metadata or {}),
            "narrow": narrow._json() if narrow is not None else {},
        }
        self._body = {name: value for name, value in body.items() if value}
        self._own = client is None
        self._client = client or Client()
        self._http = self._client._http
        self._info: SandboxInfo | None = None
        self._lives_on = False
        self._destroyed = False

    @classmethod
    def create(
        cls,
        profile: str | None = None,
        *,
        ttl: float | None = None,
        idle_timeout: float | None = None,
        metadata: Mapping[str, str] | None = None,
        narrow: Narrow | None = None,
        client: Client | None = None,
    ) -> Sandbox:
        """Make a sandbox that goes on until :meth:`destroy`."""
        sandbox = cls(profile, ttl=ttl, idle_timeout=idle_timeout, metadata=metadata, narrow=narrow, client=client)
        return sandbox.__enter__()

    @classmethod
    def connect(cls, id: str, *, client: Client | None = None) -> Sandbox:
        """Find a sandbox again. Leaving its block does not destroy it."""
        sandbox = cls(client=client)
        sandbox._lives_on = True
        try:
            sandbox._info = SandboxInfo._from(sandbox._http.fields("GET", sandbox_path(id)))
        except BaseException:
            sandbox.detach()
            raise
        return sandbox

    @classmethod
    def list(cls, metadata: Mapping[str, str] | None = None, *, client: Client | None = None) -> _Infos:
        """Return the server's sandboxes, or those that have all of this metadata, oldest first."""
        if client is not None:
            return client.sandboxes(metadata)
        with Client() as own:
            return own.sandboxes(metadata)

    def __enter__(self) -> Sandbox:
        if self._info is not None:
            return self
        try:
            self._info = SandboxInfo._from(self._create())
        except BaseException:
            self.detach()
            raise
        return self

    def _create(self) -> Any:
        # The key makes it safe to ask once more where the answer was lost.
        options = {"body": self._body, "headers": {"Idempotency-Key": uuid.uuid4().hex}, "extra": None}
        try:
            return self._http.fields("POST", "/v1/sandboxes", **options)
        except ServerUnreachableError:
            return self._http.fields("POST", "/v1/sandboxes", **options)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lives_on:
            self.detach()
            return
        try:
            self.destroy()
        except TrancaError:
            # What went wrong first is what matters.
            if err is None:
                raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._info.id if self._info else 'not made yet'}>"

    @property
    def info(self) -> SandboxInfo:
        """What was known of it when it was last asked."""
        if self._info is None:
            raise InvalidError("the sandbox is not made yet", fix=f"use `with`, or {type(self).__name__}.create()")
        return self._info

    @property
    def id(self) -> str:
        """Its name, by which it is found again."""
        return self.info.id

    @property
    def files(self) -> Files:
        """Its files."""
        return Files(self._http, self._path)

    @property
    def _path(self) -> str:
        return sandbox_path(self.info.id)

    def _runs(self) -> tuple[HTTP, str]:
        return self._http, f"{self._path}/run"

    def refresh(self) -> SandboxInfo:
        """Ask for what is known of it."""
        self._info = SandboxInfo._from(self._http.fields("GET", self._path))
        return self._info

    def keep_alive(self, ttl: float | None = None) -> SandboxInfo:
        """Let it live so many seconds from now on, or the server's default."""
        answer = self._http.fields("POST", f"{self._path}/keepalive", body={"ttl_ms": milliseconds(ttl)})
        self._info = SandboxInfo._from(answer)
        return self._info

    def set_env(self, set: Mapping[str, str] | None = None, unset: Sequence[str] = ()) -> None:
        """Change what programs that are started later find in their environment."""
        body = {"set": dict(set or {}), "unset": [*unset]}
        self._http.nothing("PATCH", f"{self._path}/environment", body=body)

    def start(
        self,
        command: Command,
        *,
        env: Mapping[str, str] | None = None,
        dir: str = "",
        tag: str = "",
        stdin: bool = False,
        terminal: TerminalSize | tuple[int, int] | None = None,
        wall: float | None = None,
    ) -> Process:
        """Start a program that outlives this call.

        ``stdin`` keeps its standard input open for :meth:`Process.write`. ``terminal``, as rows and
        columns, gives it a terminal, with standard input. ``wall`` ends it after so many seconds.
        """
        size = TerminalSize(*terminal) if isinstance(terminal, tuple) else terminal
        body = {
            "args": arguments(command),
            "env": dict(env or {}),
            "dir": dir,
            "tag": tag,
            "stdin": stdin,
            "terminal": size and size._json(),
            "wall_ms": milliseconds(wall),
        }
        body = {name: value for name, value in body.items() if value or name == "args"}
        answer = self._http.fields("POST", f"{self._path}/processes", body=body)
        return Process(self._http, self._path, ProcessInfo._from(answer))

    def process(self, id: str | int | None = None, *, tag: str | None = None) -> Process:
        """Find a program again: by its id, by the pid of a running one, or the oldest running with a tag."""
        if (id is None) == (tag is None):
            raise InvalidError("want an id, a pid or a tag")
        selector = str(id) if tag is None else f"tag={tag}"
        answer = self._http.fields("GET", process_path(self._path, selector))
        return Process(self._http, self._path, ProcessInfo._from(answer))

    def processes(self, tag: str | None = None) -> Sequence[ProcessInfo]:
        """Return the programs that were started, oldest first, the last ended ones included."""
        answer = self._http.fields("GET", f"{self._path}/processes", params={"tag": tag})
        return [ProcessInfo._from(p) for p in answer.objects("processes")]

    def dial(self, port: int) -> Connection:
        """Connect to a port at which a program in the sandbox listens."""
        response = self._http.open("GET", f"{self._path}/ports/{int(port)}", headers=UPGRADE)
        try:
            return Connection(response)
        except BaseException:
            response.close()
            raise

    def detach(self) -> None:
        """Let it go without destroying it. Idempotent."""
        self._lives_on = True
        if self._own:
            self._client.close()

    def destroy(self) -> None:
        """Destroy it; nothing of it is left afterwards. One that has ended already is no error."""
        if self._destroyed:
            return
        try:
            self._http.nothing("DELETE", self._path, extra=None)
        except (GoneError, NotFoundError):
            pass
        finally:
            self.detach()
        self._destroyed = True
