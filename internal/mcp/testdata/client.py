"""Drives the server that the arguments start by the `mcp` package from PyPI.

Prints "ok" when everything was as it should be; otherwise it fails.
"""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client


def check(what, condition, shown):
    if not condition:
        raise SystemExit(f"{what}: {shown}")


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


async def tools(session):
    listed = (await session.list_tools()).tools
    names = {
        "run_python", "run_command", "read_file", "write_file", "edit_file", "list_files",
        "create_session", "close_session", "list_sessions",
        "start_process", "process_output", "stop_process",
    }
    check("tools", {t.name for t in listed} == names, listed)
    for tool in listed:
        for word in ("30 seconds", "256 MiB", "/work", "Network: none") if tool.name.startswith("run_") else ():
            check("description", word in tool.description, tool.description)
        check("extra arguments", tool.input_schema["additionalProperties"] is False, tool.input_schema)


async def results(session):
    res = await session.call_tool("run_python", {"code": "import sys\nprint(sys.stdin.read(), sys.argv[1:])", "stdin": "in", "args": ["a"]})
    check("result", not res.is_error and text(res) == "in ['a']\n", res)
    check("structure", res.structured_content["stdout"] == "in ['a']\n" and res.structured_content["code"] == 0, res)

    res = await session.call_tool("run_python", {"code": "import sys\nprint('x', file=sys.stderr)\nsys.exit(3)"})
    check("failure", res.is_error and res.structured_content["code"] == 3, res)
    check("failure's text", "exit code 3" in text(res) and "Standard error:\nx" in text(res), res)

    res = await session.call_tool("run_python", {"code": "while True: pass", "timeout_seconds": 0.5})
    check("limit", res.is_error and "0.5 s of wall-clock time" in text(res), res)

    res = await session.call_tool("run_command", {"command": ["sh", "-c", "echo out; exit 4"]})
    check("command", res.is_error and res.structured_content["stdout"] == "out\n" and res.structured_content["code"] == 4, res)

    res = await session.call_tool("run_command", {"command": ["no-such-program"]})
    check("no program", res.is_error and "no program" in text(res), res)


async def refusals(session):
    for arguments in (
        {"code": "1", "memory": "4GiB"},
        {"code": "1", "timeout_seconds": 3600},
        {"code": ""},
        {},
    ):
        res = await session.call_tool("run_python", arguments)
        check(f"refusal of {arguments}", res.is_error and not res.structured_content, res)


async def fresh(session):
    await session.call_tool("run_python", {"code": "open('left', 'w').write('x')"})
    res = await session.call_tool("run_python", {"code": "import os; print(os.listdir())"})
    check("a file of an earlier call", text(res) == "['out']\n", res)


async def sessions(session):
    """Files, programs and images in a session."""
    made = (await session.call_tool("create_session", {})).structured_content["session"]

    async def ok(tool, **arguments):
        res = await session.call_tool(tool, {**arguments, "session": made})
        check(tool, not res.is_error, res)
        return res

    await ok("write_file", path="a/b", content="one two")
    edited = await ok("edit_file", path="a/b", old_text="two", new_text="2")
    check("edit", "+one 2" in text(edited), edited)
    check("read", text(await ok("read_file", path="a/b")) == "one 2", "a/b")
    check("list", "file   /work/a/b (5 bytes)" in text(await ok("list_files", depth=2)), "a")
    started = (await ok("start_process", command=["sh", "-c", "echo ready; sleep 100"])).structured_content["program"]
    output = await ok("process_output", program=started, wait_seconds=20)
    check("output", output.structured_content["stdout"] == "ready\n" and output.structured_content["running"], output)
    await ok("stop_process", program=started)
    await ok("run_python", code=PICTURE)
    picture = await ok("read_file", path="out/p.gif")
    check("picture", [b.mime_type for b in picture.content if b.type == "image"] == ["image/gif"], picture)
    listed = await session.call_tool("list_sessions", {})
    check("sessions", [s["session"] for s in listed.structured_content["sessions"]] == [made], listed)
    await ok("close_session")
    res = await session.call_tool("read_file", {"path": "a/b", "session": made})
    check("a session that has ended", res.is_error and "has ended" in text(res), res)


PICTURE = """
head = b"GIF89a" + bytes([1, 0, 1, 0, 0x80, 0, 0]) + bytes([255, 255, 255, 0, 0, 0])
open("/work/out/p.gif", "wb").write(head + b"," + bytes(8) + bytes([0]) + bytes([2, 2, 0x44, 1, 0]) + b";")
"""


async def images(session):
    res = await session.call_tool("run_python", {"code": PICTURE})
    found = [block.mime_type for block in res.content if block.type == "image"]
    check("images", not res.is_error and found == ["image/gif"], res)


async def progress(session):
    seen = []

    async def note(done, total, message):
        seen.append(message)

    await session.call_tool("run_python", {"code": "import time; print('here', flush=True); time.sleep(2.5)"}, progress_callback=note)
    check("progress", len(seen) >= 2 and "here" in seen[-1], seen)


async def cancelled(session):
    """A call that the client gives up ends, or this one would wait for it."""
    try:
        async with asyncio.timeout(1):
            await session.call_tool("run_python", {"code": "import time; time.sleep(25)"})
        check("a long call", False, "it has a result")
    except TimeoutError:
        pass
    res = await session.call_tool("run_python", {"code": "print('next')"})
    check("the call after it", text(res) == "next\n", res)


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        answer = await session.initialize()
        check("name", answer.server_info.name == "tranca", answer)
        for step in (tools, results, refusals, fresh, sessions, images, progress, cancelled):
            await step(session)
    print("ok")


asyncio.run(main())
