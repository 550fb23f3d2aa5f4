"""Where the server is."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from urllib.parse import urlsplit

from ._errors import InvalidError, RefusedError

_START = "start one: tranca serve"


def default_socket() -> str:
    """Return the path of the socket at which this user's server listens."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "tranca", "tranca.sock")
    uid = _uid()
    if uid == 0:
        return "/run/tranca/tranca.sock"
    return os.path.join(tempfile.gettempdir(), f"tranca-{uid}", "tranca.sock")


def _uid() -> int:
    return -1 if sys.platform == "win32" else os.geteuid()


@dataclass(frozen=True)
class Address:
    """A server's address: a unix socket, or a URL."""

    socket: str
    """The path, or empty."""
    url: str
    """What requests begin with."""
    key: str
    """Empty is none."""

    def __repr__(self) -> str:
        # Without the key, which is a secret.
        return f"Address({self.socket or self.url!r})"

    @classmethod
    def of(cls, server: str | None, key: str | None) -> Address:
        """Return the address that is asked for, else that of TRANCA_SERVER, else the user's default."""
        server = server or os.environ.get("TRANCA_SERVER") or ""
        key = key if key is not None else os.environ.get("TRANCA_KEY", "")
        if not all(" " < c <= "~" for c in key):
            raise InvalidError("the key holds a blank or a character that no key has")
        if not server:
            return cls(_own(default_socket()), "http://tranca", key)
        scheme, sep, rest = server.partition("://")
        if not sep or scheme.lower() == "unix":
            path = rest if sep else server
            if not path:
                raise InvalidError("server: unix:// has no path", fix="want unix:///path/of/the.sock")
            return cls(path, "http://tranca", key)
        return cls("", _url(server), key)


def _url(server: str) -> str:
    # The address never stands in an error, where a key may stand in it.
    try:
        parts = urlsplit(server)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise InvalidError("server: want http://host:port, https://host:port, unix:///path or a path")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidError("server: it holds more than host and path", fix="give a key by TRANCA_KEY")
    return server.rstrip("/")


def _own(path: str) -> str:
    """Refuse a default socket that somebody else may have put there: what is sent to it would be sent to him."""
    if sys.platform == "win32":
        raise InvalidError("there is no default server on Windows", fix="set TRANCA_SERVER and TRANCA_KEY")
    folder = os.path.dirname(path)
    try:
        info = os.lstat(folder)
    except FileNotFoundError:
        return path  # nobody listens, which the first call says
    except OSError as err:
        raise RefusedError(f"the folder of the server's socket: {err}") from err
    if not stat.S_ISDIR(info.st_mode) or info.st_uid not in (0, os.geteuid()) or info.st_mode & 0o022:
        raise RefusedError(
            f"{folder} belongs to somebody else, or others may write to it, so the socket in it may be theirs",
            fix="name the server's socket by TRANCA_SERVER if it is yours all the same",
        )
    return path


def unreachable(address: Address, err: Exception) -> str:
    """Say in words who does not answer."""
    return f"no server answers at {address.socket or address.url}: {err}"


def start_hint(address: Address) -> str:
    """Return what to do where nobody answers."""
    return _START if address.socket else f"{_START} --listen HOST:PORT"
