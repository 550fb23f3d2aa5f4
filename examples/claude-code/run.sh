#!/bin/sh
# Lets Claude Code use tranca for one question. `tranca mcp install claude-code` makes it permanent.
cd "$(dirname "$0")"
claude --mcp-config mcp.json --strict-mcp-config --allowedTools 'mcp__tranca__run_python' \
	-p 'What is 6*7? Run Python to find out.'
