from smolagents import OpenAIModel, ToolCallingAgent, tool
from tranca import Sandbox

with Sandbox() as sandbox:
    @tool
    def run_python(code: str) -> str:
        """Runs Python code in a sandbox and returns what it prints. Files stay between calls.

        Args:
            code: the code
        """
        r = sandbox.run_python(code)
        return f"{r.stdout}{r.stderr}({r.exit.reason}, code {r.exit.code})"

    print(ToolCallingAgent([run_python], OpenAIModel("gpt-5")).run("What is 6*7?"))
