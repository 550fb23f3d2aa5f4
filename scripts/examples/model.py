"""A model for the examples: it asks to run a program, and then says what that printed.

It plays three of the APIs that models are asked by. What the program prints stands nowhere in what the model
asks for, so an answer that holds it was made by running the program, in a sandbox by the host name.

usage: model.py COMMAND [ARGUMENT...], which runs with the variables by which clients find the model.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROGRAM = 'import os\nprint("answer", 6*7, "in", os.uname().nodename)'
PRINTED = re.compile(r"answer \d+ in \w+")
TOOL = re.compile(r"(^|__)run_python$")


def named(tools: list[dict[str, Any]], pattern: re.Pattern[str]) -> str:
    """Return the name of the tool that a pattern matches, or nothing."""
    names = [str(t.get("name") or t.get("function", {}).get("name")) for t in tools]
    return next((n for n in names if pattern.search(n)), "")


def decide(body: dict[str, Any]) -> tuple[str, dict[str, Any], str]:
    """Return a tool and its arguments, or a text."""
    tools = body.get("tools") or []
    printed = PRINTED.search(json.dumps(body.get("messages") or body.get("input")))
    if printed is None:
        tool = named(tools, TOOL)
        return tool, {"code": PROGRAM}, "" if tool else "there is no tool that runs Python"
    final = named(tools, re.compile("^final_answer$"))
    return final, {"answer": printed[0]}, "" if final else printed[0]


def chat(body: dict[str, Any]) -> dict[str, Any]:
    """Answer as /v1/chat/completions does."""
    tool, arguments, text = decide(body)
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if tool:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "chat_1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice],
        "usage": usage,
    }  # fmt: skip


def responses(body: dict[str, Any]) -> dict[str, Any]:
    """Answer as /v1/responses does."""
    tool, arguments, text = decide(body)
    item: dict[str, Any]
    if tool:
        item = {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool,
            "arguments": json.dumps(arguments), "status": "completed",
        }  # fmt: skip
    else:
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    usage = {
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    }  # fmt: skip
    return {
        "id": "resp_1", "object": "response", "created_at": 0, "status": "completed", "model": body["model"],
        "output": [item], "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "usage": usage,
    }  # fmt: skip


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer as /v1/messages does, by events."""
    tool, arguments, text = decide(body)
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": text}
    if tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    end = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        """Say that somebody is there."""
        self.answer(200, "text/plain", b"")

    def do_POST(self) -> None:
        """Answer a question."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        if path == "/v1/messages":
            events = messages(body)
            text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
            self.answer(200, "text/event-stream", text.encode())
        elif path == "/v1/chat/completions":
            self.answer(200, "application/json", json.dumps(chat(body)).encode())
        elif path == "/v1/responses":
            self.answer(200, "application/json", json.dumps(responses(body)).encode())
        else:
            self.answer(404, "application/json", b"{}")

    def answer(self, status: int, kind: str, body: bytes) -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say what is asked, where that is wanted."""
        if os.environ.get("MODEL_LOG"):
            super().log_message(format, *args)


def main() -> int:
    """Run a command with the model."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    env = {
        **os.environ,
        "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1", "LANGSMITH_TRACING": "false",
    }  # fmt: skip
    return subprocess.run(sys.argv[1:], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
