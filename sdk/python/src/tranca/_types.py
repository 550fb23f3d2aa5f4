"""What requests and answers are made of. The words are those of the server."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Union
from urllib.parse import quote

from ._errors import NotFoundError
from ._fields import Fields

Command = Union[str, Sequence[str]]
"""A program and its arguments, or the text of a shell command."""


def arguments(command: Command) -> list[str]:
    """Return the arguments that a command is."""
    return ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)


def milliseconds(seconds: float | None) -> int:
    """Return whole milliseconds, rounded up so that what is asked for never becomes nothing."""
    return 0 if seconds is None else -int(-seconds * 1000 // 1)


@dataclass(frozen=True)
class Narrow:
    """Less than the policy allows.

    None leaves the policy's value. More than the policy allows is refused: a :class:`RefusedError`.
    Times are in seconds, sizes in bytes.
    """

    floor: str | None = None
    """The lowest isolation level: ``process``, ``container``, ``gvisor``, ``microvm``."""
    backend: str | None = None
    wall: float | None = None
    cpu_time: float | None = None
    milli_cpus: int | None = None
    memory: int | None = None
    processes: int | None = None
    open_files: int | None = None
    file_size: int | None = None
    disk: int | None = None
    disk_inodes: int | None = None
    output: int | None = None
    drop_mounts: Sequence[str] = ()
    read_only: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None

    def _json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "floor": self.floor,
            "backend": self.backend,
            "wall_ms": milliseconds(self.wall),
            "cpu_time_ms": milliseconds(self.cpu_time),
            "milli_cpus": self.milli_cpus,
            "memory_bytes": self.memory,
            "processes": self.processes,
            "open_files": self.open_files,
            "file_size_bytes": self.file_size,
            "disk_bytes": self.disk,
            "disk_inodes": self.disk_inodes,
            "output_bytes": self.output,
            "drop_mounts": list(self.drop_mounts),
            "read_only": list(self.read_only),
            "env": dict(self.env),
            "workdir": self.workdir,
        }
        return {name: value for name, value in body.items() if value}


@dataclass(frozen=True)
class Exit:
    """How a program ended."""

    code: int
    """Its exit code where the reason is ``exited``, otherwise -1."""
    signal: int
    """The signal that ended it, or 0."""
    reason: str
    """``exited``, ``signaled``, ``limit:wall``, ``limit:cpu``, ``limit:memory``, ``limit:output``,
    ``closed`` or ``error``."""

    @property
    def success(self) -> bool:
        """Whether it ended by itself with code 0."""
        return self.reason == "exited" and self.code == 0

    @classmethod
    def _from(cls, f: Fields) -> Exit:
        return cls(f.integer("code"), f.integer("signal"), f.text("reason"))


@dataclass(frozen=True)
class Usage:
    """What a run used, counted from outside. -1 is not known."""

    wall_ms: int
    cpu_ms: int
    memory_peak_bytes: int
    processes_peak: int

    @classmethod
    def _from(cls, f: Fields) -> Usage:
        names = ("wall_ms", "cpu_ms", "memory_peak_bytes", "processes_peak")
        return cls(*(f.integer(name) for name in names))


@dataclass(frozen=True)
class Enforcement:
    """By which mechanism one item of the policy was enforced."""

    item: str
    mechanism: str
    status: str
    """``enforced``, ``waived`` or ``declared``."""

    @classmethod
    def _from(cls, f: Fields) -> Enforcement:
        return cls(f.text("item"), f.text("mechanism"), f.text("status"))


@dataclass(frozen=True)
class Denial:
    """One refused act, and the rule that refused it."""

    what: str
    rule: str


@dataclass(frozen=True)
class Change:
    """One path in a mount of mode rw or cow that differs after the run."""

    path: str
    kind: str
    """``created``, ``modified`` or ``removed``."""
    size: int
    host_executable: bool
    """Programs on the host may execute the file without being asked."""
    path_bytes: bytes

    @classmethod
    def _from(cls, f: Fields) -> Change:
        path = f.text("path")
        raw = f.base64("path_base64") or path.encode()
        return cls(path, f.text("kind"), f.integer("size"), f.flag("host_executable"), raw)


@dataclass(frozen=True)
class PolicyRef:
    """Which policy was in force."""

    source: str
    digest: str

    @classmethod
    def _from(cls, f: Fields) -> PolicyRef:
        return cls(f.text("source"), f.text("digest"))


@dataclass(frozen=True)
class Limits:
    """The limits that were in force. Times are in milliseconds, sizes in bytes."""

    wall_ms: int
    cpu_time_ms: int
    milli_cpus: int
    memory_bytes: int
    processes: int
    open_files: int
    file_size_bytes: int
    disk_bytes: int
    disk_inodes: int
    output_bytes: int
    disk_backing: str
    output_on_exceed: str

    @classmethod
    def _from(cls, f: Fields) -> Limits:
        return cls(
            wall_ms=f.integer("wall_ms"),
            cpu_time_ms=f.integer("cpu_time_ms"),
            milli_cpus=f.integer("milli_cpus"),
            memory_bytes=f.integer("memory_bytes"),
            processes=f.integer("processes"),
            open_files=f.integer("open_files"),
            file_size_bytes=f.integer("file_size_bytes"),
            disk_bytes=f.integer("disk_bytes"),
            disk_inodes=f.integer("disk_inodes"),
            output_bytes=f.integer("output_bytes"),
            disk_backing=f.text("disk_backing"),
            output_on_exceed=f.text("output_on_exceed"),
        )


@dataclass(frozen=True)
class Result:
    """All that is known of one run."""

    id: str
    """The sandbox."""
    backend: str
    isolation: str
    exit: Exit
    stdout_bytes: bytes
    """What was kept of the output, byte for byte."""
    stderr_bytes: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    limits_hit: tuple[str, ...]
    """Limits that refused something without ending the run: ``pids``, ``disk``, ``output``, ..."""
    usage: Usage
    enforcement: tuple[Enforcement, ...]
    denials: tuple[Denial, ...]
    changes: tuple[Change, ...]
    policy: PolicyRef
    limits: Limits | None
    notes: tuple[str, ...]
    image_digest: str = ""
    """The digest of the image that ran; empty for the host's own tree."""
    changes_state: str = ""
    """What became of the changes to mounts of mode cow: ``kept``, ``applied`` or ``lost``; empty where there
    were none."""

    @property
    def stdout(self) -> str:
        """The output as text; bytes that are no UTF-8 are replaced."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """The error output as text; bytes that are no UTF-8 are replaced."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @classmethod
    def _from(cls, f: Fields, stdout: bytes, stderr: bytes, limits: Fields | None) -> Result:
        truncated = f.object("truncated")
        return cls(
            id=f.text("id"),
            backend=f.text("backend"),
            isolation=f.text("isolation"),
            exit=Exit._from(f.object("exit")),
            stdout_bytes=stdout,
            stderr_bytes=stderr,
            stdout_truncated=truncated.flag("stdout"),
            stderr_truncated=truncated.flag("stderr"),
            limits_hit=f.texts("limits_hit"),
            usage=Usage._from(f.object("usage")),
            enforcement=tuple(Enforcement._from(e) for e in f.objects("enforcement")),
            denials=tuple(Denial(d.text("what"), d.text("rule")) for d in f.objects("denials")),
            changes=tuple(Change._from(c) for c in f.objects("changes")),
            policy=PolicyRef._from(f.object("policy")),
            limits=None if limits is None else Limits._from(limits),
            notes=f.texts("notes"),
            image_digest=f.text("image_digest"),
            changes_state=f.text("changes_state"),
        )


@dataclass(frozen=True)
class Output:
    """A piece of what a program wrote."""

    stderr: bool
    data: bytes
    offset: int
    """How many bytes of the stream are before this piece."""
    dropped: int = 0
    """So many bytes right before this piece are not kept any more."""


@dataclass(frozen=True)
class TerminalSize:
    """The size of a terminal in characters, each 1 to 65,535."""

    rows: int
    columns: int

    def _json(self) -> dict[str, int]:
        return {"rows": self.rows, "columns": self.columns}

    @classmethod
    def _from(cls, f: Fields) -> TerminalSize:
        return cls(f.integer("rows"), f.integer("columns"))


@dataclass(frozen=True)
class SandboxInfo:
    """What is known of a sandbox."""

    id: str
    profile: str
    backend: str
    isolation: str
    policy: PolicyRef
    enforcement: tuple[Enforcement, ...]
    created: datetime | None
    expires: datetime | None
    """When it is destroyed unless it is kept alive."""
    idle_timeout_ms: int
    """It is destroyed when for so long nothing was asked of it; 0 is never."""
    metadata: Mapping[str, str]
    processes: int
    """How many programs run."""

    @classmethod
    def _from(cls, f: Fields) -> SandboxInfo:
        return cls(
            id=f.text("id"),
            profile=f.text("profile"),
            backend=f.text("backend"),
            isolation=f.text("isolation"),
            policy=PolicyRef._from(f.object("policy")),
            enforcement=tuple(Enforcement._from(e) for e in f.objects("enforcement")),
            created=f.time("created"),
            expires=f.time("expires"),
            idle_timeout_ms=f.integer("idle_timeout_ms"),
            metadata=f.strings("metadata"),
            processes=f.integer("processes"),
        )


@dataclass(frozen=True)
class StreamInfo:
    """The state of one output stream, in bytes."""

    written: int
    dropped: int
    """So many of the first bytes are not kept any more."""

    @classmethod
    def _from(cls, f: Fields) -> StreamInfo:
        return cls(f.integer("written"), f.integer("dropped"))


@dataclass(frozen=True)
class ProcessInfo:
    """What is known of a program that was started."""

    id: str
    """Its name in its sandbox, never used again there: ``p3``."""
    pid: int
    tag: str
    args: tuple[str, ...]
    dir: str
    started: datetime | None
    terminal: TerminalSize | None
    exit: Exit | None
    """None while it runs."""
    ended: datetime | None
    stdout: StreamInfo
    stderr: StreamInfo

    @classmethod
    def _from(cls, f: Fields) -> ProcessInfo:
        terminal, end = f.maybe("terminal"), f.maybe("exit")
        return cls(
            id=f.text("id"),
            pid=f.integer("pid"),
            tag=f.text("tag"),
            args=f.texts("args"),
            dir=f.text("dir"),
            started=f.time("started"),
            terminal=None if terminal is None else TerminalSize._from(terminal),
            exit=None if end is None else Exit._from(end),
            ended=f.time("ended"),
            stdout=StreamInfo._from(f.object("stdout")),
            stderr=StreamInfo._from(f.object("stderr")),
        )


@dataclass(frozen=True)
class FileInfo:
    """A path in a sandbox. All of it comes from the sandbox and is not to be trusted."""

    name: str
    path: str
    path_bytes: bytes
    type: str
    """``file``, ``directory``, ``symlink`` or ``other``."""
    size: int
    mode: int
    """The permission bits."""
    uid: int
    gid: int
    modified: datetime | None
    link_target: str

    @classmethod
    def _from(cls, f: Fields) -> FileInfo:
        path = f.text("path")
        return cls(
            name=f.text("name"),
            path=path,
            path_bytes=f.base64("path_base64") or path.encode(),
            type=f.text("type"),
            size=f.integer("size"),
            mode=int(f.text("mode") or "0", 8),
            uid=f.integer("uid"),
            gid=f.integer("gid"),
            modified=f.time("modified"),
            link_target=f.text("link_target"),
        )


@dataclass(frozen=True)
class FileEvent:
    """One change in a folder that is watched."""

    kind: str
    """``created``, ``written``, ``removed``, ``renamed``, ``chmod``, or ``overflow``: changes were missed,
    look at the folder again."""
    path: str
    """Relative to the folder that is watched; empty for ``overflow``."""

    @classmethod
    def _from(cls, f: Fields) -> FileEvent:
        return cls(f.text("kind"), f.text("path"))


@dataclass(frozen=True)
class ProfileInfo:
    """One of the operator's policies as a request may name it."""

    name: str
    digest: str
    limits: Limits


@dataclass(frozen=True)
class ServerInfo:
    """What the server says of itself."""

    version: str
    languages: tuple[str, ...]
    profiles: tuple[ProfileInfo, ...]
    """The first is the default."""

    @classmethod
    def _from(cls, f: Fields) -> ServerInfo:
        profiles = tuple(
            ProfileInfo(p.text("name"), p.text("digest"), Limits._from(p.object("limits")))
            for p in f.objects("profiles")
        )
        return cls(f.text("version"), f.texts("languages"), profiles)


_ID = re.compile("i[a-z0-9]{20}")
_PROCESS = re.compile("p?[0-9]{1,18}")


def sandbox_path(id: str) -> str:
    """Return where a sandbox is. What is no id must not get into a path, of which it could make another."""
    if not _ID.fullmatch(id):
        raise NotFoundError(f"there is no sandbox {id!r}", fix="want 'i' and 20 characters of a-z and 0-9")
    return f"/v1/sandboxes/{id}"


def process_path(sandbox: str, selector: str) -> str:
    """Return where a program is: an id, a pid, or ``tag=`` and a tag."""
    if not _PROCESS.fullmatch(selector) and not selector.startswith("tag="):
        raise NotFoundError(f"there is no program {selector!r}", fix="want an id such as p3, or a pid")
    return f"{sandbox}/processes/{quote(selector, safe='')}"


def run_body(
    *,
    code: str | None,
    language: str,
    command: Command | None,
    args: Sequence[str],
    stdin: str | bytes,
    profile: str | None,
    timeout: float | None,
    narrow: Narrow | None,
) -> dict[str, Any]:
    """Return the body of a run. ``timeout`` wins over the narrowing's wall-clock time."""
    asked = narrow._json() if narrow is not None else {}
    if timeout is not None:
        asked["wall_ms"] = milliseconds(timeout)
    body: dict[str, Any] = {
        "code": code,
        "language": language if code is not None else "",
        "command": None if command is None else arguments(command),
        "args": list(args),
        "profile": profile,
        "narrow": asked,
    }
    if isinstance(stdin, str):
        body["stdin"] = stdin
    else:
        body["stdin_base64"] = base64.b64encode(stdin).decode()
    return {name: value for name, value in body.items() if value}
