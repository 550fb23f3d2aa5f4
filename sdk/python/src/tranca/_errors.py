"""Errors, in the vocabulary of the server: one class for each code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._fields import Fields


@dataclass(frozen=True)
class RefusalProblem:
    """One reason why something is refused."""

    item: str
    """The item of the policy that can't be had: ``limits.memory``."""
    asked: str
    """What the policy or the request asks, in words."""
    missing: str
    """The mechanism that the host or the policy lacks."""
    mend: str
    """One command or change that mends it; empty if there is none."""
    waivable: bool
    """The operator may waive the item instead."""


@dataclass(frozen=True)
class Alternative:
    """A weaker choice that was found usable on the server's host."""

    choice: str
    gives_up: str


@dataclass(frozen=True)
class Refusal:
    """What was refused, why, and what mends it. Nothing was run."""

    backend: str
    problems: tuple[RefusalProblem, ...]
    weaker: tuple[Alternative, ...]
    unavailable: bool

    @classmethod
    def _from(cls, f: Fields) -> Refusal:
        problems = tuple(
            RefusalProblem(p.text("item"), p.text("asked"), p.text("missing"), p.text("mend"), p.flag("waivable"))
            for p in f.objects("problems")
        )
        weaker = tuple(Alternative(w.text("choice"), w.text("gives_up")) for w in f.objects("weaker"))
        return cls(f.text("backend"), problems, weaker, f.flag("unavailable"))


class TrancaError(Exception):
    """The base of all errors of this package.

    A program that fails is never an error: it is a :class:`Result` with its :class:`Exit`.
    """

    code: str = "internal"
    """The stable name of the class of error."""

    def __init__(
        self,
        detail: str,
        *,
        fix: str = "",
        refusal: Refusal | None = None,
        request_id: str = "",
        status: int = 0,
        code: str = "",
    ) -> None:
        super().__init__(detail + (f" ({fix})" if fix else ""))
        self.detail = detail
        self.fix = fix
        self.refusal = refusal
        self.request_id = request_id
        self.status = status
        if code:
            self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is otherwise made again from its args, which are the message.
        return (_again, (type(self), self.__dict__.copy()))


def _again(cls: type[TrancaError], state: dict[str, Any]) -> TrancaError:
    err = cls(state["detail"], fix=state["fix"])
    err.__dict__.update(state)
    return err


class InvalidError(TrancaError):
    """The request is malformed. Repeating it is useless."""

    code = "invalid"


class RefusedError(TrancaError):
    """Policy or host do not allow it. ``refusal`` has each problem, where it is known."""

    code = "refused"


class UnavailableError(RefusedError):
    """The server's host cannot run it, or there is no server."""

    code = "unavailable"


class NotFoundError(TrancaError):
    """There is no such file, program, process or sandbox."""

    code = "not_found"


class ExistsError(TrancaError):
    """It is there already."""

    code = "exists"


class GoneError(TrancaError):
    """The sandbox or process existed and does no longer; the detail says why."""

    code = "gone"


class BusyError(TrancaError):
    """Too much is going on. Repeating it later may succeed."""

    code = "busy"


class ClosedError(TrancaError):
    """Its owner closed it."""

    code = "closed"


class UnsupportedError(TrancaError):
    """The backend does not have the ability."""

    code = "unsupported"


class ProtocolError(TrancaError):
    """The sandbox, or the server, broke the protocol."""

    code = "protocol"


class NoSpaceError(TrancaError):
    """A bounded space inside the sandbox is full."""

    code = "no_space"


class UnauthorizedError(RefusedError):
    """No key, or a wrong one."""

    code = "unauthorized"


class ConflictError(InvalidError):
    """The idempotency key was used for another request."""

    code = "conflict"


class TooLargeError(InvalidError):
    """The body is larger than the server takes."""

    code = "too_large"


class MethodError(InvalidError):
    """The server has no such method: it is of another version."""

    code = "method"


class MediaTypeError(InvalidError):
    """The server does not take a body of this type: it is of another version."""

    code = "media_type"


class RequestTimeoutError(TrancaError, TimeoutError):
    """The server, or who called it, was too slow."""

    code = "timeout"


class InternalError(TrancaError):
    """The server failed. Its log has the request id."""

    code = "internal"


class ServerUnreachableError(UnavailableError):
    """Nobody answers at the server's address, or the connection broke off."""


_CLASSES: dict[str, type[TrancaError]] = {
    c.code: c
    for c in (
        InvalidError, RefusedError, UnavailableError, NotFoundError, ExistsError, GoneError, BusyError,
        ClosedError, UnsupportedError, ProtocolError, NoSpaceError, UnauthorizedError, ConflictError,
        TooLargeError, MethodError, MediaTypeError, RequestTimeoutError, InternalError,
    )
}  # fmt: skip


def error_of(problem: Fields) -> TrancaError:
    """Return the error that a problem is. One with a code of a later server is a TrancaError."""
    code = problem.text("code")
    refusal = problem.maybe("refusal")
    return _CLASSES.get(code, TrancaError)(
        problem.text("detail") or problem.text("title") or code,
        fix=problem.text("fix"),
        refusal=None if refusal is None else Refusal._from(refusal),
        request_id=problem.text("request_id"),
        status=problem.integer("status"),
        code=code,
    )


def error_of_answer(status: int, headers: Mapping[str, str], body: bytes) -> TrancaError:
    """Return the error of an answer that is none of success."""
    request_id = headers.get("x-request-id", "")
    if headers.get("content-type", "").startswith("application/problem+json"):
        try:
            return error_of(Fields(json.loads(body), "problem"))
        except ValueError:
            pass
    # Somebody else answered: a proxy, or a server that is no tranca.
    code = "unauthorized" if status in (401, 407) else "internal"
    text = body[:200].decode("utf-8", "replace").strip()
    return _CLASSES[code](
        f"HTTP {status} that is no answer of tranca: {text}", request_id=request_id, status=status
    )
