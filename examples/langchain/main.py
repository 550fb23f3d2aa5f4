import asyncio

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient


async def main() -> None:
    tranca = {"transport": "stdio", "command": "tranca", "args": ["mcp"]}
    tools = await MultiServerMCPClient({"tranca": tranca}).get_tools()
    agent = create_agent("openai:gpt-5", tools, system_prompt="Run Python to find answers.")
    answer = await agent.ainvoke({"messages": [("user", "What is 6*7?")]})
    print(answer["messages"][-1].text)


asyncio.run(main())
