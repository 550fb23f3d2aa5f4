"""Files of a sandbox."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from typing import BinaryIO, Callable, Union, cast

from .._errors import NotFoundError, ServerUnreachableError
from .._streams import WatchState
from .._types import FileEvent, FileInfo
from ._block import AsyncBlock
from ._http import AsyncEvents, AsyncHTTP, Content, Params
from ._io import PIECE, Data, content, in_thread, sleep

_RETRIES = 5

Local = Union[str, "os.PathLike[str]"]
Progress = Callable[[int], object]
"""Called with how many bytes of the file are done."""

_Files = list[FileInfo]


class AsyncFiles:
    """The files of a sandbox, as its user sees them, in constant memory whatever their size.

    Paths are absolute or relative to the sandbox's working directory.
    """

    def __init__(self, http: AsyncHTTP, sandbox_path: str) -> None:
        self._http = http
        self._path = f"{sandbox_path}/files"

    async def read(self, path: str) -> bytes:
        """Return what a file holds. For large files there are :meth:`stream` and :meth:`download`."""
        return b"".join([piece async for piece in self.stream(path)])

    async def read_text(self, path: str) -> str:
        """Return what a file of UTF-8 holds."""
        return (await self.read(path)).decode()

    async def stream(self, path: str, *, offset: int = 0) -> AsyncIterator[bytes]:
        """Return a file piece by piece, from an offset on."""
        response = await self._http.open("GET", f"{self._path}/content", params={"path": path, "offset": offset})
        try:
            async for piece in self._http.pieces(response):
                yield piece
        finally:
            await response.aclose()

    async def write(self, path: str, data: Data, *, mode: int | None = None) -> int:
        """Make or replace a file, and return how many bytes were written. On error it may hold a part."""
        return await self._put(path, content(data), mode, None)

    async def stat(self, path: str) -> FileInfo:
        """Return what a path is. A link that is its last part is not followed."""
        return FileInfo._from(await self._http.fields("GET", f"{self._path}/stat", params={"path": path}))

    async def exists(self, path: str) -> bool:
        """Return whether a path is there."""
        try:
            await self.stat(path)
        except NotFoundError:
            return False
        return True

    async def list(self, path: str = ".", *, depth: int = 1) -> _Files:
        """Return what is in a folder, in lexical order, parents first."""
        answer = await self._http.fields("GET", self._path, params={"path": path, "depth": depth}, extra=None)
        return [FileInfo._from(f) for f in answer.objects("files")]

    async def mkdir(self, path: str) -> FileInfo:
        """Make a folder and its parents. An :class:`ExistsError` if it is there."""
        return FileInfo._from(await self._http.fields("POST", f"{self._path}/mkdir", body={"path": path}))

    async def move(self, source: str, target: str) -> FileInfo:
        """Rename, making the target's parents."""
        body = {"from": source, "to": target}
        return FileInfo._from(await self._http.fields("POST", f"{self._path}/move", body=body))

    async def remove(self, path: str) -> None:
        """Remove a path with all below it. A missing one is no error."""
        await self._http.nothing("DELETE", self._path, params={"path": path}, extra=None)

    async def download(
        self, path: str, local: Local, *, resume: bool = False, progress: Progress | None = None
    ) -> int:
        """Copy a file to a local one, and return its size.

        A connection that breaks off is made again. ``resume`` goes on with what the local file holds
        already, from an earlier call that failed.
        """
        file = await in_thread(_open, local, "ab" if resume else "wb")
        try:
            failed = 0
            while True:
                reached = file.tell()
                try:
                    return await self._receive(path, file, progress)
                except ServerUnreachableError:
                    failed = 0 if file.tell() > reached else failed + 1
                    if failed > _RETRIES:
                        raise
                await sleep(0.05 * 2**failed)
        finally:
            await in_thread(file.close)

    async def _receive(self, path: str, file: BinaryIO, progress: Progress | None) -> int:
        response = await self._http.open(
            "GET", f"{self._path}/content", params={"path": path, "offset": file.tell()}
        )
        try:
            async for piece in self._http.pieces(response):
                await in_thread(file.write, piece)
                if progress is not None:
                    progress(file.tell())
        finally:
            await response.aclose()
        return file.tell()

    async def upload(
        self,
        local: Local,
        path: str,
        *,
        mode: int | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Copy a local file into the sandbox, and return its size. Without a mode it keeps its own.

        A connection that breaks off is made again. ``resume`` goes on with what the sandbox's file holds
        already, from an earlier call that failed.
        """
        file = await in_thread(_open, local, "rb")
        try:
            state = os.fstat(file.fileno())
            mode = stat.S_IMODE(state.st_mode) & 0o777 if mode is None else mode
            offset = await self._reached(path, state.st_size) if resume else 0
            failed = 0
            while True:
                file.seek(offset)
                try:
                    return offset + await self._put(path, _told(file, progress), mode, offset or None)
                except ServerUnreachableError:
                    failed += 1
                    if failed > _RETRIES:
                        raise
                await sleep(0.05 * 2**failed)
                offset = await self._reached(path, state.st_size)
        finally:
            await in_thread(file.close)

    async def _reached(self, path: str, size: int) -> int:
        """Return up to where an upload has come, or 0 where it begins anew."""
        try:
            there = await self.stat(path)
        except NotFoundError:
            return 0
        return there.size if there.type == "file" and there.size <= size else 0

    async def _put(self, path: str, body: Content, mode: int | None, offset: int | None) -> int:
        answer = await self._http.fields(
            "PUT",
            f"{self._path}/content",
            params={"path": path, "mode": None if mode is None else f"{mode:04o}", "offset": offset},
            content=body,
            headers={"Content-Type": "application/octet-stream"},
            extra=None,
        )
        return answer.integer("written")

    async def archive(self, path: str = ".") -> AsyncIterator[bytes]:
        """Return a folder as a tar archive, piece by piece."""
        response = await self._http.open("GET", f"{self._path}/archive", params={"path": path})
        try:
            async for piece in self._http.pieces(response):
                yield piece
        finally:
            await response.aclose()

    async def extract(self, source: Data, path: str = ".") -> int:
        """Unpack a tar archive into a folder. Entries that lead out of it are refused."""
        answer = await self._http.fields(
            "PUT",
            f"{self._path}/archive",
            params={"path": path},
            content=content(source),
            headers={"Content-Type": "application/x-tar"},
            extra=None,
        )
        return answer.integer("written")

    def watch(self, path: str = ".", *, recursive: bool = False) -> AsyncWatch:
        """Return a watch of a folder. Enter it, and iterate over it for the changes."""
        params = {"path": path, "recursive": "true" if recursive else "false"}
        return AsyncWatch(self._http, f"{self._path}/watch", params)


class AsyncWatch(AsyncBlock):
    """A folder that is watched. When it is entered, all changes from then on are told."""

    def __init__(self, http: AsyncHTTP, path: str, params: Params) -> None:
        self._http = http
        self._path = path
        self._params = params
        self._state = WatchState()
        self._events: AsyncEvents | None = None

    async def __aenter__(self) -> AsyncWatch:
        events = await self._http.events("GET", self._path, params=self._params)
        try:
            while not self._state.watching:
                event = await events.next()
                if event is None:
                    raise ServerUnreachableError("the connection broke off before the watch began")
                self._state.take(event)
        except BaseException:
            await events.close()
            raise
        self._events = events
        return self

    def __aiter__(self) -> AsyncWatch:
        return self

    async def __anext__(self) -> FileEvent:
        if self._events is None:
            raise StopAsyncIteration
        while (event := await self._events.next()) is not None:
            if (change := self._state.take(event)) is not None:
                return change
        raise ServerUnreachableError("the connection broke off; changes may be missed from here on")

    async def close(self) -> None:
        """End the watch. Idempotent."""
        if self._events is not None:
            await self._events.close()
            self._events = None


async def _told(file: BinaryIO, progress: Progress | None) -> AsyncIterator[bytes]:
    """Return a file piece by piece, and tell how far it has come."""
    while piece := await in_thread(file.read, PIECE):
        yield piece
        if progress is not None:
            progress(file.tell())


def _open(local: Local, mode: str) -> BinaryIO:
    return cast(BinaryIO, open(local, mode))
