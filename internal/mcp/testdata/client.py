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
    return "\n".join(block.text for block in result.content)


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
        for step in (tools, results, refusals, fresh, cancelled):
            await step(session)
    print("ok")


asyncio.run(main())
