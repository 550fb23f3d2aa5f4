"""Programs that outlive the call."""

from __future__ import annotations

import threading

import pytest

import tranca
from tranca import Exit, Process, Sandbox

from .conftest import Server, wait_for


def text(process: Process) -> str:
    return b"".join(out.data for out in process).decode()


def until(process: Process, words: str) -> str:
    """Read until words have come."""
    got = b""
    for out in process:
        got += out.data
        if words.encode() in got:
            break
    assert words.encode() in got
    return got.decode()


def test_output_and_end(sandbox: Sandbox) -> None:
    p = sandbox.start(["sh", "-c", "echo out; echo err >&2; exit 5"], tag="one", dir="/tmp")
    outs = list(p)
    assert b"".join(o.data for o in outs if not o.stderr) == b"out\n"
    assert b"".join(o.data for o in outs if o.stderr) == b"err\n"
    assert p.info.exit == p.wait() == Exit(5, 0, "exited")
    assert p.info.tag == "one"
    assert p.info.dir == "/tmp"
    assert p.info.args[0] == "sh"
    assert p.info.stdout.written == 4
    assert text(p).replace("err\n", "") == "out\n"


def test_input(sandbox: Sandbox) -> None:
    p = sandbox.start(["cat"], stdin=True)
    assert p.write("one ") == 4
    assert p.write(iter([b"two ", b"three"])) == 9
    p.close_stdin()
    p.close_stdin()
    assert text(p) == "one two three"
    with pytest.raises((tranca.ClosedError, tranca.GoneError)):
        p.write("more")
    with pytest.raises(tranca.InvalidError):
        sandbox.start(["sleep", "100"]).write("x")


def test_signals(sandbox: Sandbox) -> None:
    p = sandbox.start(["sleep", "100"])
    with pytest.raises(tranca.RequestTimeoutError):
        p.wait(0.05)
    p.signal(15)
    assert p.wait() == Exit(-1, 15, "signaled")
    with pytest.raises(tranca.GoneError):
        p.signal(15)
    p.kill()
    q = sandbox.start("sleep 100 & sleep 100")
    q.kill()
    assert q.wait().signal == 9
    with pytest.raises(tranca.InvalidError):
        sandbox.start(["sleep", "100"]).signal(99)


def test_a_terminal(sandbox: Sandbox) -> None:
    p = sandbox.start(["sh"], terminal=(31, 97))
    p.write("stty size\n")
    until(p, "31 97\r\n")
    p.resize(40, 120)
    p.write("stty size\n")
    until(p, "40 120\r\n")
    with pytest.raises(tranca.InvalidError):
        p.resize(0, 10)
    p.write("\x04")
    assert p.wait().reason == "exited"
    assert p.info.terminal == tranca.TerminalSize(40, 120)


def test_found_again(sandbox: Sandbox, server: Server) -> None:
    first = sandbox.start("echo one; sleep 100", tag="web")
    second = sandbox.start("echo two; sleep 100", tag="web")
    until(first, "one")
    for same in (sandbox.process(first.id), sandbox.process(first.pid), sandbox.process(tag="web")):
        assert same.id == first.id
        assert until(same, "one") == "one\n"
    assert [p.id for p in sandbox.processes("web")] == [first.id, second.id]
    first.kill()
    first.wait()
    assert sandbox.process(tag="web").id == second.id
    with Sandbox.connect(sandbox.id) as other:
        assert other.process(second.id).refresh().exit is None
    assert sandbox.refresh().processes == 1
    for missing in ("p99", "99999", "p", "", ".", "..", "p1/../p2"):
        with pytest.raises((tranca.NotFoundError, tranca.InvalidError)):
            sandbox.process(missing)
    for tag in ("ü/?&", "..", "../..", "a/../b"):
        with pytest.raises(tranca.NotFoundError):
            sandbox.process(tag=tag)
    with pytest.raises(tranca.InvalidError):
        sandbox.process()


def test_reading_goes_on_where_it_was(sandbox: Sandbox) -> None:
    p = sandbox.start("echo 0123456789; echo ab >&2")
    p.wait()
    rest = list(p.output(stdout_from=7, stderr_from=1))
    assert b"".join(o.data for o in rest if not o.stderr) == b"789\n"
    assert b"".join(o.data for o in rest if o.stderr) == b"b\n"
    assert {o.offset for o in rest} == {7, 1}


def test_what_there_is_now(sandbox: Sandbox) -> None:
    p = sandbox.start("echo begun; sleep 100")
    until(p, "begun")
    assert b"".join(o.data for o in p.output(follow=False)) == b"begun\n"
    p.kill()


def test_several_readers(sandbox: Sandbox) -> None:
    p = sandbox.start("sleep 0.2; seq 1 20000")
    got: list[str] = []
    threads = [threading.Thread(target=lambda: got.append(text(p))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    want = "".join(f"{n}\n" for n in range(1, 20001))
    assert [g == want for g in got] == [True] * 4


def test_what_is_no_longer_kept_is_told(sandbox: Sandbox) -> None:
    size = 8 << 20
    p = sandbox.start(["head", "-c", str(size), "/dev/zero"])
    p.wait()
    outs = list(p)
    assert outs[0].dropped > 0
    assert outs[0].offset == outs[0].dropped
    assert sum(len(o.data) + o.dropped for o in outs) == size == p.info.stdout.written


def test_time_ends_it(sandbox: Sandbox) -> None:
    assert sandbox.start(["sleep", "100"], wall=0.3).wait().reason == "limit:wall"


def test_a_connection_that_breaks_is_made_again(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    from tranca._sync._http import HTTP

    real = HTTP.pieces
    broken: list[bytes] = []

    def breaking(self: HTTP, response: object) -> object:
        for piece in real(self, response):  # type: ignore[arg-type]
            yield piece
            if len(broken) < 3 and b"\n" in piece and piece[:1] in b"oe":
                broken.append(piece)
                raise tranca.ServerUnreachableError("broken by the test")

    monkeypatch.setattr(HTTP, "pieces", breaking)
    p = sandbox.start("for n in 1 2 3 4 5; do echo $n; sleep 0.1; done")
    assert text(p) == "1\n2\n3\n4\n5\n"
    assert broken  # how many depends on what comes in one piece


def test_the_sandbox_ends_while_output_is_read(server: Server) -> None:
    with Sandbox() as s:
        p = s.start("echo up; sleep 1000")
        outs = iter(p)
        assert next(outs).data == b"up\n"
        with Sandbox.connect(s.id) as other:
            other.destroy()
        try:
            rest = list(outs)
        except tranca.GoneError:
            rest = []
        assert rest == []
        with pytest.raises(tranca.GoneError):
            p.refresh()


def test_a_port(sandbox: Sandbox) -> None:
    code = (
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 8080))\n"
        "print('up', flush=True)\n"
        "while True:\n"
        "    c, _ = s.accept()\n"
        "    data = b''\n"
        "    while piece := c.recv(65536): data += piece\n"
        "    c.sendall(data[::-1])\n"
        "    c.close()\n"
    )
    sandbox.files.write("server.py", code)
    until(sandbox.start(["python3", "server.py"]), "up")
    for size in (3, 1 << 20):
        sent = bytes(n % 251 for n in range(size))
        with sandbox.dial(8080) as c:
            c.send(sent)
            c.close_write()
            got = b""
            while piece := c.receive():
                got += piece
        assert got == sent[::-1]
    with pytest.raises(tranca.NotFoundError):
        sandbox.dial(8081)
    with pytest.raises(tranca.InvalidError):
        sandbox.dial(0)


def test_programs_go_on_when_the_client_goes(server: Server) -> None:
    s = Sandbox.create()
    p = s.start("sleep 0.3; echo done > mark; sleep 100", tag="t")
    s.detach()
    with Sandbox.connect(s.id) as again:
        wait_for(lambda: again.files.exists("mark"))
        assert again.process(tag="t").id == p.id
        again.destroy()
