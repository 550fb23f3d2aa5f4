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
from ._block import AsyncBlock
from ._files import AsyncFiles
from ._http import AsyncHTTP
from ._port import UPGRADE, AsyncConnection
from ._process import AsyncProcess
from ._run import AsyncRunner

_PAGE = 100

_Infos = list[SandboxInfo]


class AsyncClient(AsyncBlock, AsyncRunner):
    """A tranca server. Each run is in a fresh sandbox, of which nothing is left afterwards.

    ``server`` is ``unix:///path``, ``http://host:port`` or ``https://host:port``. Without it, it is
    TRANCA_SERVER of the environment, else the socket at which this user's ``tranca serve`` listens. ``key``,
    else TRANCA_KEY, is what a server at a host and port asks for. ``timeout`` bounds, in seconds, each wait
    for the server in calls that should be short; runs and transfers take as long as they take.
    """

    def __init__(self, server: str | None = None, key: str | None = None, *, timeout: float = 60) -> None:
        self._http = AsyncHTTP(Address.of(server, key), timeout)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def close(self) -> None:
        """Close the connections. Sandboxes go on. Idempotent."""
        await self._http.close()

    def _runs(self) -> tuple[AsyncHTTP, str]:
        return self._http, "/v1/run"

    async def info(self) -> ServerInfo:
        """Return what the server says of itself: its version, languages and profiles."""
        return ServerInfo._from(await self._http.fields("GET", "/v1/info"))

    async def sandboxes(self, metadata: Mapping[str, str] | None = None) -> _Infos:
        """Return all sandboxes, or those that have all of this metadata, oldest first."""
        found: list[SandboxInfo] = []
        params: dict[str, Any] = {"limit": _PAGE}
        if metadata:
            params["metadata"] = [f"{name}={value}" for name, value in metadata.items()]
        while True:
            page = await self._http.fields("GET", "/v1/sandboxes", params=params)
            found += [SandboxInfo._from(s) for s in page.objects("sandboxes")]
            params["cursor"] = page.text("next")
            if not params["cursor"]:
                return found


class AsyncSandbox(AsyncRunner):
    """One sandbox for several runs, which find each other's files.

    ``async with AsyncSandbox() as s`` makes one and destroys it at the end of the block. :meth:`create` makes
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
        client: AsyncClient | None = None,
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
        self._client = client or AsyncClient()
        self._http = self._client._http
        self._info: SandboxInfo | None = None
        self._lives_on = False
        self._destroyed = False

    @classmethod
    async def create(
        cls,
        profile: str | None = None,
        *,
        ttl: float | None = None,
        idle_timeout: float | None = None,
        metadata: Mapping[str, str] | None = None,
        narrow: Narrow | None = None,
        client: AsyncClient | None = None,
    ) -> AsyncSandbox:
        """Make a sandbox that goes on until :meth:`destroy`."""
        sandbox = cls(profile, ttl=ttl, idle_timeout=idle_timeout, metadata=metadata, narrow=narrow, client=client)
        return await sandbox.__aenter__()

    @classmethod
    async def connect(cls, id: str, *, client: AsyncClient | None = None) -> AsyncSandbox:
        """Find a sandbox again. Leaving its block does not destroy it."""
        sandbox = cls(client=client)
        sandbox._lives_on = True
        try:
            sandbox._info = SandboxInfo._from(await sandbox._http.fields("GET", sandbox_path(id)))
        except BaseException:
            await sandbox.detach()
            raise
        return sandbox

    @classmethod
    async def list(cls, metadata: Mapping[str, str] | None = None, *, client: AsyncClient | None = None) -> _Infos:
        """Return the server's sandboxes, or those that have all of this metadata, oldest first."""
        if client is not None:
            return await client.sandboxes(metadata)
        async with AsyncClient() as own:
            return await own.sandboxes(metadata)

    async def __aenter__(self) -> AsyncSandbox:
        if self._info is not None:
            return self
        try:
            self._info = SandboxInfo._from(await self._create())
        except BaseException:
            await self.detach()
            raise
        return self

    async def _create(self) -> Any:
        # The key makes it safe to ask once more where the answer was lost.
        options = {"body": self._body, "headers": {"Idempotency-Key": uuid.uuid4().hex}, "extra": None}
        try:
            return await self._http.fields("POST", "/v1/sandboxes", **options)
        except ServerUnreachableError:
            return await self._http.fields("POST", "/v1/sandboxes", **options)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lives_on:
            await self.detach()
            return
        try:
            await self.destroy()
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
    def files(self) -> AsyncFiles:
        """Its files."""
        return AsyncFiles(self._http, self._path)

    @property
    def _path(self) -> str:
        return sandbox_path(self.info.id)

    def _runs(self) -> tuple[AsyncHTTP, str]:
        return self._http, f"{self._path}/run"

    async def refresh(self) -> SandboxInfo:
        """Ask for what is known of it."""
        self._info = SandboxInfo._from(await self._http.fields("GET", self._path))
        return self._info

    async def keep_alive(self, ttl: float | None = None) -> SandboxInfo:
        """Let it live so many seconds from now on, or the server's default."""
        answer = await self._http.fields("POST", f"{self._path}/keepalive", body={"ttl_ms": milliseconds(ttl)})
        self._info = SandboxInfo._from(answer)
        return self._info

    async def set_env(self, set: Mapping[str, str] | None = None, unset: Sequence[str] = ()) -> None:
        """Change what programs that are started later find in their environment."""
        body = {"set": dict(set or {}), "unset": [*unset]}
        await self._http.nothing("PATCH", f"{self._path}/environment", body=body)

    async def start(
        self,
        command: Command,
        *,
        env: Mapping[str, str] | None = None,
        dir: str = "",
        tag: str = "",
        stdin: bool = False,
        terminal: TerminalSize | tuple[int, int] | None = None,
        wall: float | None = None,
    ) -> AsyncProcess:
        """Start a program that outlives this call.

        ``stdin`` keeps its standard input open for :meth:`AsyncProcess.write`. ``terminal``, as rows and
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
        answer = await self._http.fields("POST", f"{self._path}/processes", body=body)
        return AsyncProcess(self._http, self._path, ProcessInfo._from(answer))

    async def process(self, id: str | int | None = None, *, tag: str | None = None) -> AsyncProcess:
        """Find a program again: by its id, by the pid of a running one, or the oldest running with a tag."""
        if (id is None) == (tag is None):
            raise InvalidError("want an id, a pid or a tag")
        selector = str(id) if tag is None else f"tag={tag}"
        answer = await self._http.fields("GET", process_path(self._path, selector))
        return AsyncProcess(self._http, self._path, ProcessInfo._from(answer))

    async def processes(self, tag: str | None = None) -> Sequence[ProcessInfo]:
        """Return the programs that were started, oldest first, the last ended ones included."""
        answer = await self._http.fields("GET", f"{self._path}/processes", params={"tag": tag})
        return [ProcessInfo._from(p) for p in answer.objects("processes")]

    async def dial(self, port: int) -> AsyncConnection:
        """Connect to a port at which a program in the sandbox listens."""
        response = await self._http.open("GET", f"{self._path}/ports/{int(port)}", headers=UPGRADE)
        try:
            return AsyncConnection(response)
        except BaseException:
            await response.aclose()
            raise

    async def detach(self) -> None:
        """Let it go without destroying it. Idempotent."""
        self._lives_on = True
        if self._own:
            await self._client.close()

    async def destroy(self) -> None:
        """Destroy it; nothing of it is left afterwards. One that has ended already is no error."""
        if self._destroyed:
            return
        try:
            await self._http.nothing("DELETE", self._path, extra=None)
        except (GoneError, NotFoundError):
            pass
        finally:
            await self.detach()
        self._destroyed = True
