package mcp

import (
	"tranca"
)

// object makes a schema that refuses what it does not name, so that a misspelt
// or invented argument is an error and not silently without effect.
func object(properties map[string]any, required ...string) map[string]any {
	return map[string]any{
		"type": "object", "properties": properties, "required": required,
		"additionalProperties": false,
	}
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

func texts(description string) map[string]any {
	return map[string]any{
		"type": "array", "items": map[string]any{"type": "string"}, "description": description,
	}
}

func timeoutSchema(p tranca.Policy) map[string]any {
	return map[string]any{
		"type": "number", "minimum": leastTime.Seconds(), "maximum": p.Limits.Wall.Seconds(),
		"description": "Stop it earlier than after " + duration(p.Limits.Wall) + ", which is the most.",
	}
}

func pythonSchema(p tranca.Policy) map[string]any {
	return object(map[string]any{
		"code":            text("The program. Print what you want to see."),
		"stdin":           text("The program's standard input; empty if left out."),
		"args":            texts("The program's arguments, sys.argv[1:]."),
		"timeout_seconds": timeoutSchema(p),
	}, "code")
}

func commandSchema(p tranca.Policy) map[string]any {
	command := texts("The program and its arguments, one element each. No shell reads them: for one, run [\"sh\", \"-c\", \"...\"].")
	command["minItems"] = 1
	return object(map[string]any{
		"command":         command,
		"stdin":           text("The program's standard input; empty if left out."),
		"timeout_seconds": timeoutSchema(p),
	}, "command")
}

// outputSchema describes a [tranca.AgentView]. It leaves room for fields that
// are added later.
func outputSchema() map[string]any {
	record := func(properties map[string]any, required ...string) map[string]any {
		return map[string]any{"type": "object", "properties": properties, "required": required}
	}
	list := func(items map[string]any, description string) map[string]any {
		return map[string]any{"type": "array", "items": items, "description": description}
	}
	flag := func(description string) map[string]any {
		return map[string]any{"type": "boolean", "description": description}
	}
	return record(map[string]any{
		"stdout":           text("Standard output."),
		"stderr":           text("Standard error."),
		"code":             map[string]any{"type": "integer", "description": "The exit code, or -1 where the program did not end by itself."},
		"ended":            text("How it ended, in words."),
		"success":          flag("It ended by itself with code 0."),
		"stdout_truncated": flag("More was written to standard output than was kept."),
		"stderr_truncated": flag("More was written to standard error than was kept."),
		"limits":           list(map[string]any{"type": "string"}, "Limits that refused the program something."),
		"denials": list(record(map[string]any{
			"what": text("What was tried."), "rule": text("The rule that refused it."),
		}, "what", "rule"), "Acts that were refused."),
		"changes": list(record(map[string]any{
			"path": text("The path."), "kind": text("created, modified or removed."),
			"size":            map[string]any{"type": "integer", "description": "Bytes."},
			"path_base64":     text("The path's bytes, where they are no UTF-8."),
			"host_executable": flag("Programs outside may run this file without being asked."),
		}, "path", "kind", "size"), "What differs in shared folders after the run."),
	}, "stdout", "stderr", "code", "ended", "success", "stdout_truncated", "stderr_truncated", "limits", "denials", "changes")
}
