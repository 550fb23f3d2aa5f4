"""What is parsed, without a server."""

from __future__ import annotations

import json
import pickle
import random
from datetime import datetime, timezone
from typing import Any

import pytest

import tranca
from tranca._errors import error_of, error_of_answer
from tranca._fields import Fields
from tranca._frames import MAX_FRAME, AnyEvent, FrameDecoder, JSONEvent, OutputEvent
from tranca._streams import FollowState, RunState, Text
from tranca._types import run_body


def frame(kind: str, payload: bytes) -> bytes:
    return kind.encode() + len(payload).to_bytes(4, "big") + payload


def json_frame(**fields: Any) -> bytes:
    return frame("j", json.dumps(fields).encode())


STREAM = b"".join(
    [
        json_frame(type="started", id="i0"),
        frame("o", b"one\xff"),
        frame("e", b""),
        json_frame(type="keepalive"),
        frame("e", b"two"),
        frame("o", bytes(300_000)),
    ]
)
EVENTS: list[Any] = [
    ("started",), (False, b"one\xff"), (True, b""), ("keepalive",), (True, b"two"), (False, bytes(300_000)),
]  # fmt: skip


def shape(event: AnyEvent) -> tuple[object, ...]:
    return (event.type,) if isinstance(event, JSONEvent) else (event.stderr, event.data)


@pytest.mark.parametrize("seed", range(30))
def test_frames_come_in_any_pieces(seed: int) -> None:
    dice = random.Random(seed)
    decoder, got, at = FrameDecoder(), [], 0
    while at < len(STREAM):
        size = dice.choice([0, 1, 2, 5, 7, 100, 65536, len(STREAM)])
        got += [shape(e) for e in decoder.feed(STREAM[at : at + size])]
        at += size
    decoder.end()
    assert got == EVENTS


def test_a_cut_stream_is_told() -> None:
    for cut in range(1, 40):
        decoder = FrameDecoder()
        whole = sum(1 for _ in decoder.feed(STREAM[:cut]))
        length = len(json_frame(type="started", id="i0"))
        assert whole == (cut >= length)
        if cut == length:
            decoder.end()
        else:
            with pytest.raises(tranca.ProtocolError):
                decoder.end()


def test_events_after_one_that_was_left_are_not_lost() -> None:
    decoder = FrameDecoder()
    for _ in decoder.feed(STREAM):
        break
    assert [shape(e) for e in decoder.feed(b"")] == EVENTS[1:]


@pytest.mark.parametrize(
    "data",
    [
        b"j" + (MAX_FRAME + 1).to_bytes(4, "big"),
        frame("x", b""),
        frame("j", b"{"),
        frame("j", b"[]"),
        frame("j", b"\xff"),
        frame("j", b'{"type":1}'),
        frame("j", b'{"type":"error","error":[]}'),
    ],
)
def test_bad_frames(data: bytes) -> None:
    with pytest.raises(tranca.ProtocolError):
        list(FrameDecoder().feed(data))


@pytest.mark.parametrize("seed", range(200))
def test_garbage_is_a_protocol_error_or_nothing(seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(STREAM[:200])
    for _ in range(dice.randint(1, 8)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    try:
        state = RunState()
        for event in FrameDecoder().feed(bytes(data)):
            state.take(event)
    except (tranca.TrancaError, ValueError):
        pass


def test_an_error_event_is_raised() -> None:
    problem = {"code": "gone", "detail": "its time (10m) was over", "fix": "create a new sandbox", "status": 410}
    with pytest.raises(tranca.GoneError, match="its time") as caught:
        list(FrameDecoder().feed(json_frame(type="error", error=problem)))
    assert caught.value.fix == "create a new sandbox"
    assert caught.value.status == 410


def test_a_run_keeps_what_belongs_to_the_result() -> None:
    state = RunState()
    events: list[AnyEvent] = [
        OutputEvent(False, b"abc"),
        OutputEvent(True, b"x"),
        OutputEvent(False, b"def"),
        JSONEvent("result", Fields({"result": {"exit": {"reason": "exited"}}, "stdout_bytes": 4}, "event")),
    ]
    outs = [o for e in events if (o := state.take(e)) is not None]
    assert [(o.stderr, o.offset) for o in outs] == [(False, 0), (True, 0), (False, 3)]
    assert state.result is not None
    assert (state.result.stdout_bytes, state.result.stderr_bytes) == (b"abcd", b"")
    assert (state.result.image_digest, state.result.changes_state) == ("", "")
    with pytest.raises(tranca.ProtocolError):
        state.take(JSONEvent("result", Fields({"result": {}, "stdout_bytes": 7}, "event")))


def test_a_result_says_its_image_and_what_became_of_changes() -> None:
    state = RunState()
    digest = "sha256:" + "0" * 64
    result = {"exit": {"reason": "exited"}, "image_digest": digest, "changes_state": "kept"}
    state.take(JSONEvent("result", Fields({"result": result}, "event")))
    assert state.result is not None
    assert (state.result.image_digest, state.result.changes_state) == (digest, "kept")


def test_a_follower_knows_where_it_is() -> None:
    state = FollowState(10, 0)
    assert state.take(JSONEvent("dropped", Fields({"stream": "stdout", "bytes": 5}, "event"))) is None
    out = state.take(OutputEvent(False, b"abc"))
    assert out == tranca.Output(False, b"abc", 15, 5)
    assert state.take(OutputEvent(False, b"d")) == tranca.Output(False, b"d", 18, 0)
    assert state.offsets == [19, 0]
    end = {"process": {"id": "p1", "exit": {"code": 3, "reason": "exited"}}}
    state.take(JSONEvent("exit", Fields(end, "event")))
    assert state.exit == tranca.Exit(3, 0, "exited")


def test_text_may_be_cut_within_a_character() -> None:
    text, data = Text(), "aü€😀".encode()
    assert "".join(text.add(False, data[i : i + 1]) for i in range(len(data))) == "aü€😀"
    text.add(True, "ü".encode()[:1])
    assert text.add(True, b"", final=True) == "\ufffd"


CODES = [
    "invalid", "refused", "unavailable", "not_found", "exists", "gone", "busy", "closed", "unsupported",
    "protocol", "no_space", "unauthorized", "conflict", "too_large", "method", "media_type", "timeout", "internal",
]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_each_code_has_its_class(code: str) -> None:
    refusal = {"problems": [{"item": "limits.memory", "missing": "no group", "mend": "sudo tranca setup"}]}
    body = {"code": code, "detail": "because", "fix": "do", "request_id": "r1", "status": 400, "refusal": refusal}
    err = error_of_answer(400, {"content-type": "application/problem+json"}, json.dumps(body).encode())
    assert type(err) is not tranca.TrancaError
    assert type(err).code == code == err.code
    assert str(err) == "because (do)"
    assert (err.detail, err.fix, err.request_id, err.status) == ("because", "do", "r1", 400)
    assert err.refusal is not None
    assert err.refusal.problems[0].item == "limits.memory"
    again = pickle.loads(pickle.dumps(err))
    assert (type(again), str(again), again.__dict__) == (type(err), str(err), err.__dict__)


def test_a_later_code_is_still_an_error() -> None:
    err = error_of(Fields({"code": "tired", "detail": "later"}, "problem"))
    assert type(err) is tranca.TrancaError
    assert err.code == "tired"


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"[]", b"\xff\xfe"])
def test_somebody_elses_answer(body: bytes) -> None:
    for kind in ("text/html", "application/problem+json"):
        err = error_of_answer(502, {"content-type": kind, "x-request-id": "r"}, body)
        assert isinstance(err, tranca.InternalError)
        assert err.request_id == "r"
    assert isinstance(error_of_answer(401, {}, body), tranca.UnauthorizedError)


def test_fields() -> None:
    f = Fields({"n": 1, "s": "x", "b": True, "l": ["a"], "o": {"k": "v"}, "bad": {"k": 1}, "null": None}, "x")
    assert (f.integer("n"), f.text("s"), f.flag("b")) == (1, "x", True)
    assert (f.texts("l"), f.strings("o")) == (("a",), {"k": "v"})
    assert (f.integer("no"), f.text("null"), f.flag("no")) == (0, "", False)
    assert (f.texts("no"), f.strings("no")) == ((), {})
    bad: list[tuple[Any, str]] = [
        (f.text, "n"), (f.integer, "s"), (f.integer, "b"), (f.flag, "n"), (f.texts, "o"), (f.objects, "l"),
        (f.strings, "bad"), (f.object, "l"), (f.base64, "s"),
    ]  # fmt: skip
    for read, name in bad:
        with pytest.raises(ValueError, match=rf"x\.{name}"):
            read(name)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, 0, timezone.utc)),
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123456, timezone.utc)),
        ("2026-01-02T03:04:05.5+00:00", datetime(2026, 1, 2, 3, 4, 5, 500000, timezone.utc)),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
    ],
)
def test_times(text: str, want: object) -> None:
    assert Fields({"t": text}, "x").time("t") == want


def test_a_run_says_only_what_is_asked() -> None:
    options: dict[str, Any] = {
        "code": None, "language": "python", "command": None, "args": (), "stdin": "", "profile": None,
        "timeout": None, "narrow": None,
    }  # fmt: skip
    assert run_body(**{**options, "code": "1"}) == {"code": "1", "language": "python"}
    assert run_body(**{**options, "command": "ls | wc"}) == {"command": ["/bin/sh", "-c", "ls | wc"]}
    got = run_body(**{**options, "command": ["ls"], "stdin": b"\xff", "timeout": 0.0001})
    assert got == {"command": ["ls"], "stdin_base64": "/w==", "narrow": {"wall_ms": 1}}
    narrow = tranca.Narrow(wall=9, memory=1 << 20, read_only=["/data"], env={"A": "b"})
    assert run_body(**{**options, "code": "1", "narrow": narrow, "timeout": 2})["narrow"] == {
        "wall_ms": 2000, "memory_bytes": 1 << 20, "read_only": ["/data"], "env": {"A": "b"},
    }  # fmt: skip
