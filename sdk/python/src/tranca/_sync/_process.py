# Made by generate.py from the file of this name in _async.
"""Programs that outlive the call that started them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from .._errors import GoneError, RequestTimeoutError, ServerUnreachableError
from .._streams import FollowState
from .._types import Exit, Output, ProcessInfo, TerminalSize, process_path
from ._http import HTTP
from ._io import Data, content, sleep

_WAIT_MS = 20_000
_RETRIES = 5


class Process:
    """A program in a sandbox. It lives until it ends, is killed, or its sandbox ends."""

    def __init__(self, http: HTTP, sandbox: str, info: ProcessInfo) -> None:
        self._http = http
        self._path = process_path(sandbox, info.id)
        self.info = info
        """What was known of it when it was last asked."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.info.id} {self.info.exit or 'running'}>"

    @property
    def id(self) -> str:
        """Its name in its sandbox, by which it is found again."""
        return self.info.id

    @property
    def pid(self) -> int:
        """The process id that programs in the sandbox see."""
        return self.info.pid

    def refresh(self) -> ProcessInfo:
        """Ask for what is known of it."""
        self.info = ProcessInfo._from(self._http.fields("GET", self._path))
        return self.info

    def __iter__(self) -> Iterator[Output]:
        return self.output()

    def output(
        self, *, stdout_from: int = 0, stderr_from: int = 0, follow: bool = True
    ) -> Iterator[Output]:
        """Return its output from these offsets, in bytes, and as it comes until it ends.

        Any number may read it at once. A connection that breaks off is made again, and the output goes on
        where it was. Output that is no longer kept is told by ``dropped`` of the piece after it. Without
        ``follow`` it ends with what is there now.
        """
        state = FollowState(stdout_from, stderr_from)
        failed = 0
        while True:
            try:
                events = self._http.events(
                    "GET",
                    f"{self._path}/output",
                    params={
                        "stdout_from": state.offsets[0],
                        "stderr_from": state.offsets[1],
                        "follow": "true" if follow else "false",
                    },
                )
                try:
                    for event in events:
                        if (out := state.take(event)) is not None:
                            failed = 0
                            yield out
                finally:
                    events.close()
                if state.info is not None:
                    self.info = state.info
                if state.exit is not None or not follow:
                    return
                raise ServerUnreachableError("the connection broke off before the program ended")
            except ServerUnreachableError:
                failed += 1
                if failed > _RETRIES:
                    raise
            sleep(0.05 * 2**failed)

    def write(self, data: Data, *, close: bool = False) -> int:
        """Write to its standard input, and return how many bytes it took.

        It takes no more than the program reads, so a program that reads nothing makes it wait. ``close``
        ends the input afterwards. Text or bytes of at most 1 MiB are never mixed with those of another call.
        """
        answer = self._http.fields(
            "POST",
            f"{self._path}/stdin",
            params={"close": "true" if close else None},
            content=content(data),
            headers={"Content-Type": "application/octet-stream"},
            extra=None,
        )
        return answer.integer("written")

    def close_stdin(self) -> None:
        """End its standard input. Idempotent."""
        self.write(b"", close=True)

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to it, or to its process group."""
        self._http.nothing("POST", f"{self._path}/signal", body={"signal": int(number), "group": group})

    def kill(self) -> None:
        """Kill it and its process group. One that has ended is no error."""
        with contextlib.suppress(GoneError):
            self.signal(9, group=True)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of its terminal."""
        self._http.nothing("POST", f"{self._path}/resize", body=TerminalSize(rows, columns)._json())

    def wait(self, timeout: float | None = None) -> Exit:
        """Wait for its end. After so many seconds it is a :class:`RequestTimeoutError`; it goes on running."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            ms = _WAIT_MS if end is None else min(_WAIT_MS, max(0, int((end - time.monotonic()) * 1000)))
            self.info = ProcessInfo._from(
                self._http.fields("GET", self._path, params={"wait_ms": ms}, extra=ms / 1000)
            )
            if self.info.exit is not None:
                return self.info.exit
            if end is not None and time.monotonic() >= end:
                raise RequestTimeoutError(f"{self.id} still runs after {timeout} s")
