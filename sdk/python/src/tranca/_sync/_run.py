# Made by generate.py from the file of this name in _async.
"""Runs: a program from its start to its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._errors import ServerUnreachableError, TrancaError
from .._streams import RunState, Text
from .._types import Command, Narrow, Output, Result, run_body
from ._block import Block
from ._http import Events, HTTP
from ._io import Callback, call


class Run(Block):
    """A run whose output is read as it comes.

    Enter it to start the run, and iterate over it for the output. Leaving the block before the end ends the
    run: every program of it is killed.
    """

    def __init__(self, http: HTTP, path: str, body: dict[str, Any]) -> None:
        self._http = http
        self._path = path
        self._body = body
        self._state = RunState()
        self._events: Events | None = None

    def __enter__(self) -> Run:
        self._events = self._http.events("POST", self._path, body=self._body)
        return self

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Output:
        if self._events is None:
            raise StopIteration
        while (event := self._events.next()) is not None:
            if (out := self._state.take(event)) is not None:
                return out
        if self._state.result is None:
            raise ServerUnreachableError("the connection broke off before the run ended")
        raise StopIteration

    def close(self) -> None:
        """End the run, if it has not ended. Idempotent."""
        if self._events is not None:
            self._events.close()

    @property
    def id(self) -> str:
        """The sandbox, once the run has started."""
        return self._state.id

    @property
    def result(self) -> Result:
        """The result, after all output was read."""
        if self._state.result is None:
            raise TrancaError("there is no result yet", fix="read the output to its end first", code="busy")
        return self._state.result


class Runner:
    """What runs programs: a client, each in a fresh sandbox, or one sandbox.

    All runs take these arguments:

    - ``args``: given to the program
    - ``stdin``: its whole standard input, text or bytes
    - ``timeout``: end it after so many seconds; the exit's reason is then ``limit:wall``
    - ``narrow``: less than the policy allows
    - ``profile``: one of the operator's policies, only for a fresh sandbox
    - ``on_stdout``, ``on_stderr``: called with text as it comes

    A program that fails is a :class:`Result`, never an error. Cancelling the call, or an exception in a
    callback, ends the run.
    """

    def _runs(self) -> tuple[HTTP, str]:
        raise NotImplementedError

    def run_python(
        self,
        code: str,
        *,
        args: Sequence[str] = (),
        stdin: str | bytes = "",
        timeout: float | None = None,
        narrow: Narrow | None = None,
        profile: str | None = None,
        on_stdout: Callback | None = None,
        on_stderr: Callback | None = None,
    ) -> Result:
        """Run Python code."""
        return self._run(
            self.stream(code=code, args=args, stdin=stdin, timeout=timeout, narrow=narrow, profile=profile),
            on_stdout,
            on_stderr,
        )

    def run_code(
        self,
        code: str,
        language: str,
        *,
        args: Sequence[str] = (),
        stdin: str | bytes = "",
        timeout: float | None = None,
        narrow: Narrow | None = None,
        profile: str | None = None,
        on_stdout: Callback | None = None,
        on_stderr: Callback | None = None,
    ) -> Result:
        """Run code in one of the languages that :meth:`Client.info` lists."""
        return self._run(
            self.stream(
                code=code, language=language, args=args, stdin=stdin, timeout=timeout, narrow=narrow,
                profile=profile,
            ),
            on_stdout,
            on_stderr,
        )  # fmt: skip

    def run(
        self,
        command: Command,
        *,
        stdin: str | bytes = "",
        timeout: float | None = None,
        narrow: Narrow | None = None,
        profile: str | None = None,
        on_stdout: Callback | None = None,
        on_stderr: Callback | None = None,
    ) -> Result:
        """Run a command: a list of program and arguments, or a text for the sandbox's shell."""
        return self._run(
            self.stream(command, stdin=stdin, timeout=timeout, narrow=narrow, profile=profile),
            on_stdout,
            on_stderr,
        )

    def stream(
        self,
        command: Command | None = None,
        *,
        code: str | None = None,
        language: str = "python",
        args: Sequence[str] = (),
        stdin: str | bytes = "",
        timeout: float | None = None,
        narrow: Narrow | None = None,
        profile: str | None = None,
    ) -> Run:
        """Return a run of a command or of code, whose output is read as it comes."""
        body = run_body(
            command=command, code=code, language=language, args=args, stdin=stdin, timeout=timeout,
            narrow=narrow, profile=profile,
        )  # fmt: skip
        http, path = self._runs()
        return Run(http, path, body)

    def _run(self, run: Run, on_stdout: Callback | None, on_stderr: Callback | None) -> Result:
        text = Text()
        callbacks = (on_stdout, on_stderr)
        with run:
            for out in run:
                callback = callbacks[out.stderr]
                if callback is not None and (part := text.add(out.stderr, out.data)):
                    call(callback, part)
            for stderr, callback in enumerate(callbacks):
                if callback is not None and (part := text.add(bool(stderr), b"", final=True)):
                    call(callback, part)
        return run.result
