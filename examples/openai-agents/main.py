import asyncio

from agents import Agent, Runner
from agents.mcp import MCPServerStdio


async def main() -> None:
    params = {"command": "tranca", "args": ["mcp"]}
    async with MCPServerStdio(params, client_session_timeout_seconds=60) as tranca:
        agent = Agent("coder", instructions="Run Python to find answers.", mcp_servers=[tranca])
        print((await Runner.run(agent, "What is 6*7?")).final_output)


asyncio.run(main())
