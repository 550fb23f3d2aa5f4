"""Runs, in fresh sandboxes and in one that lives."""

from __future__ import annotations

import threading

import pytest

import tranca
from tranca import Narrow, Sandbox

from .conftest import Server, wait_for


def test_six_times_seven(server: Server) -> None:
    with Sandbox() as s:
        r = s.run_python("print(6*7)")
    assert (r.stdout, r.stderr, r.exit) == ("42\n", "", tranca.Exit(0, 0, "exited"))
    assert r.exit.success
    assert r.id == s.id
    assert r.isolation == "process"
    assert {e.item for e in r.enforcement} >= {"files", "network", "syscalls"}
    assert {e.status for e in r.enforcement} <= {"enforced", "waived"}
    assert r.policy.digest.startswith("sha256:")
    assert r.usage.wall_ms > 0
    assert r.limits is not None
    assert r.limits.wall_ms == 30_000


def test_one_shots(server: Server) -> None:
    assert (
        tranca.run_python("import sys; print(sys.argv[1:], input())", args=["a b"], stdin="in").stdout
        == "['a b'] in\n"
    )
    assert tranca.run(["printf", "%s", "ü"]).stdout == "ü"
    assert tranca.run("echo $((6*7)) | tr 4 5").stdout == "52\n"
    first, second = tranca.run("pwd; touch here"), tranca.run("ls")
    assert first.id != second.id
    assert second.stdout == ""


def test_a_program_that_fails_is_a_result(sandbox: Sandbox) -> None:
    r = sandbox.run_python("import sys; print('x'); sys.exit(3)")
    assert (r.exit.code, r.exit.reason, r.exit.success) == (3, "exited", False)
    r = sandbox.run_python("import os; os.kill(os.getpid(), 11)")
    assert (r.exit.code, r.exit.signal, r.exit.reason) == (-1, 11, "signaled")
    r = sandbox.run_python("1/0")
    assert "ZeroDivisionError" in r.stderr
    assert r.exit.code == 1


def test_runs_find_each_others_files(sandbox: Sandbox) -> None:
    sandbox.run_python("open('note', 'w').write('left here')")
    assert sandbox.run("cat note").stdout == "left here"


def test_bytes_in_and_out(sandbox: Sandbox) -> None:
    every = bytes(range(256)) * 1000
    r = sandbox.run(["cat"], stdin=every)
    assert r.stdout_bytes == every
    assert "\ufffd" in r.stdout
    assert sandbox.run(["cat"], stdin="ü\0").stdout_bytes == "ü\0".encode()


def test_time_ends_it(sandbox: Sandbox) -> None:
    r = sandbox.run_python("print('begun', flush=True)\nwhile True: pass", timeout=0.5)
    assert r.exit.reason == "limit:wall"
    assert r.stdout == "begun\n"
    r = sandbox.run_python("import time; time.sleep(60)", narrow=Narrow(wall=0.3))
    assert r.exit.reason == "limit:wall"
    assert r.limits is not None
    assert r.limits.wall_ms == 300


def test_output_as_it_comes(sandbox: Sandbox) -> None:
    # The program goes on only after its first words were read.
    out: list[str] = []
    err: list[str] = []

    def heard(text: str) -> None:
        out.append(text)
        if "".join(out) == "first ü\n":
            sandbox.files.write("go", "")

    code = (
        "import os, sys, time\n"
        "print('first ü', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "print('second', file=sys.stderr)"
    )
    r = sandbox.run_python(code, on_stdout=heard, on_stderr=err.append)
    assert ("".join(out), "".join(err)) == ("first ü\n", "second\n")
    assert (r.stdout, r.stderr) == ("first ü\n", "second\n")


def test_a_stream(sandbox: Sandbox) -> None:
    with sandbox.stream(["sh", "-c", "echo out; echo err >&2; exit 4"]) as run:
        with pytest.raises(tranca.TrancaError, match="no result yet"):
            _ = run.result
        pieces = list(run)
    assert b"".join(p.data for p in pieces if not p.stderr) == b"out\n"
    assert b"".join(p.data for p in pieces if p.stderr) == b"err\n"
    assert run.result.exit.code == 4
    assert run.id == sandbox.id
    assert list(run) == []


LOOP = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.01)"


def test_leaving_a_stream_ends_the_run(sandbox: Sandbox, server: Server) -> None:
    with sandbox.stream(code=LOOP) as run:
        assert next(iter(run)).data == b"up\n"
    # Runs of one sandbox wait for each other: this one could not begin while the other goes on.
    assert sandbox.run_python("print('free')", timeout=20).stdout == "free\n"


def test_an_exception_in_a_callback_ends_the_run(sandbox: Sandbox) -> None:
    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sandbox.run_python(LOOP, on_stdout=interrupt)
    assert sandbox.run_python("print('free')", timeout=20).stdout == "free\n"


def test_more_output_than_is_kept(sandbox: Sandbox) -> None:
    r = sandbox.run_python("print('x' * 5000)", narrow=Narrow(output=1000))
    assert r.stdout_bytes == b"x" * 1000
    assert r.stdout_truncated
    assert "output" in r.limits_hit


def test_many_at_once(server: Server) -> None:
    got: dict[int, str] = {}
    with tranca.Client() as client:

        def one(n: int) -> None:
            got[n] = client.run_python(f"print({n})").stdout

        threads = [threading.Thread(target=one, args=(n,)) for n in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert got == {n: f"{n}\n" for n in range(16)}


def test_no_connection_is_left(server: Server) -> None:
    before = server.connections()
    for _ in range(3):
        with Sandbox() as s:
            s.run_python("print(1)")
            for _ in s.start("echo x; sleep 100"):
                break
            with s.stream(code=LOOP) as run:
                next(iter(run))
            with s.files.watch("/work"):
                pass
            for _ in s.files.stream("/etc/passwd"):
                break
            with pytest.raises(tranca.NotFoundError):
                s.files.read("/nowhere")
    wait_for(lambda: server.connections() <= before)


def test_what_is_refused(server: Server) -> None:
    with tranca.Client() as client:
        with pytest.raises(tranca.RefusedError) as refused:
            client.run_python("1", narrow=Narrow(memory=1 << 40))
        assert refused.value.code == "refused"
        assert refused.value.request_id.startswith("r")
        with pytest.raises(tranca.TrancaError) as invalid:
            client.run_python("1", profile="nobody's")
        assert invalid.value.code in ("invalid", "not_found")
        with pytest.raises(tranca.NotFoundError):
            client.run(["no-such-program"])
        with pytest.raises(tranca.InvalidError):
            client.run([])
        with pytest.raises(tranca.InvalidError, match="can't be sent"):
            client.run_python("'\ud800'")
        with pytest.raises(tranca.InvalidError):
            client.run_python("1", narrow=Narrow(floor="fortress"))


def test_info(server: Server) -> None:
    with tranca.Client() as client:
        info = client.info()
        assert "python" in info.languages
        assert info.version
        first = info.profiles[0]
        assert first.limits.memory_bytes == 512 << 20
        assert client.run_code("echo hi", "sh", profile=first.name).stdout == "hi\n"
