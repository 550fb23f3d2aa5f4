r"""Run code that you don't trust in a sandbox that a tranca server keeps.

>>> with Sandbox() as s:
...     s.run_python("print(6*7)").stdout
'42\n'
"""

from __future__ import annotations

from collections.abc import Sequence

from ._address import default_socket
from ._async._files import AsyncFiles, AsyncWatch
from ._async._port import AsyncConnection
from ._async._process import AsyncProcess
from ._async._run import AsyncRun
from ._async._sandbox import AsyncClient, AsyncSandbox
from ._errors import (
    Alternative,
    BusyError,
    ClosedError,
    ConflictError,
    ExistsError,
    GoneError,
    InternalError,
    InvalidError,
    MediaTypeError,
    MethodError,
    NoSpaceError,
    NotFoundError,
    ProtocolError,
    Refusal,
    RefusalProblem,
    RefusedError,
    RequestTimeoutError,
    ServerUnreachableError,
    TooLargeError,
    TrancaError,
    UnauthorizedError,
    UnavailableError,
    UnsupportedError,
)
from ._sync._files import Files, Watch
from ._sync._io import Callback
from ._sync._port import Connection
from ._sync._process import Process
from ._sync._run import Run
from ._sync._sandbox import Client, Sandbox
from ._types import (
    Change,
    Command,
    Denial,
    Enforcement,
    Exit,
    FileEvent,
    FileInfo,
    Limits,
    Narrow,
    Output,
    PolicyRef,
    ProcessInfo,
    ProfileInfo,
    Result,
    SandboxInfo,
    ServerInfo,
    StreamInfo,
    TerminalSize,
    Usage,
)
from ._version import __version__

__all__ = [
    "Alternative", "AsyncClient", "AsyncConnection", "AsyncFiles", "AsyncProcess", "AsyncRun",
    "AsyncSandbox", "AsyncWatch", "BusyError", "Change", "Client", "ClosedError", "ConflictError",
    "Connection", "Denial", "Enforcement", "ExistsError", "Exit", "FileEvent", "FileInfo", "Files",
    "GoneError", "InternalError", "InvalidError", "Limits", "MediaTypeError", "MethodError", "Narrow",
    "NoSpaceError", "NotFoundError", "Output", "PolicyRef", "Process", "ProcessInfo", "ProfileInfo",
    "ProtocolError", "Refusal", "RefusalProblem", "RefusedError", "RequestTimeoutError", "Result", "Run",
    "Sandbox", "SandboxInfo", "ServerInfo", "ServerUnreachableError", "StreamInfo", "TerminalSize",
    "TooLargeError", "TrancaError", "UnauthorizedError", "UnavailableError", "UnsupportedError", "Usage",
    "Watch", "__version__", "default_socket", "run", "run_python",
]  # fmt: skip


def run_python(
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
    """Run Python code in a fresh sandbox of the default server; see :meth:`Client.run_python`."""
    with Client() as client:
        return client.run_python(
            code, args=args, stdin=stdin, timeout=timeout, narrow=narrow, profile=profile,
            on_stdout=on_stdout, on_stderr=on_stderr,
        )  # fmt: skip


def run(
    command: Command,
    *,
    stdin: str | bytes = "",
    timeout: float | None = None,
    narrow: Narrow | None = None,
    profile: str | None = None,
    on_stdout: Callback | None = None,
    on_stderr: Callback | None = None,
) -> Result:
    """Run a command in a fresh sandbox of the default server; see :meth:`Client.run`."""
    with Client() as client:
        return client.run(
            command, stdin=stdin, timeout=timeout, narrow=narrow, profile=profile,
            on_stdout=on_stdout, on_stderr=on_stderr,
        )  # fmt: skip
