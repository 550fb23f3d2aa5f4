package mcp

import (
	"fmt"

	"tranca"
)

// object makes a schema that refuses what it does not name, so that a misspelt
// or invented argument is an error and not silently without effect.
func object(properties map[string]any, required ...string) map[string]any {
	return map[string]any{
		"type": "object", "properties": properties, "required": append([]string{}, required...),
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
		"session":         sessionSchema(p),
	}, "code")
}

func commandSchema(p tranca.Policy) map[string]any {
	command := texts("The program and its arguments, one element each. No shell reads them: for one, run [\"sh\", \"-c\", \"...\"].")
	command["minItems"] = 1
	return object(map[string]any{
		"command":         command,
		"stdin":           text("The program's standard input; empty if left out."),
		"timeout_seconds": timeoutSchema(p),
		"session":         sessionSchema(p),
	}, "command")
}

// sessionSchema is the session of a run, which is never needed.
func sessionSchema(p tranca.Policy) map[string]any {
	if p.KeepFiles {
		return text("A session from create_session. Without one it runs where all calls without one do.")
	}
	return text("A session from create_session, whose files it finds and leaves. Without one it starts afresh, and nothing of it stays.")
}

func integer(least, most int64, description string) map[string]any {
	return map[string]any{"type": "integer", "minimum": least, "maximum": most, "description": description}
}

// onFiles makes the schema of a tool for files. It needs a session, but where
// the policy keeps files and so there is one without a name.
func onFiles(p tranca.Policy, properties map[string]any, required ...string) map[string]any {
	if p.KeepFiles {
		properties["session"] = text("A session from create_session. Without one: the files of all calls without one.")
	} else {
		properties["session"] = text("A session from create_session.")
		required = append(required, "session")
	}
	return object(properties, required...)
}

func pathSchema(p tranca.Policy, what string) map[string]any {
	return text(what + ": absolute, or relative to " + quoted(p.Workdir) + ".")
}

func readSchema(p tranca.Policy) map[string]any {
	return onFiles(p, map[string]any{
		"path":   pathSchema(p, "The file"),
		"offset": integer(0, 1<<53, "The first byte to read; 0 if left out."),
		"limit":  integer(1, maxRead, fmt.Sprintf("How many bytes to read; %d if left out.", defaultRead)),
	}, "path")
}

func writeSchema(p tranca.Policy) map[string]any {
	return onFiles(p, map[string]any{
		"path":    pathSchema(p, "The file"),
		"content": text("All that shall be in it."),
	}, "path", "content")
}

func editSchema(p tranca.Policy) map[string]any {
	return onFiles(p, map[string]any{
		"path":        pathSchema(p, "The file"),
		"old_text":    text("What stands in the file now, exactly, with blanks and line ends; as much of it as makes it the only such place."),
		"new_text":    text("What shall stand there instead; empty removes it."),
		"replace_all": map[string]any{"type": "boolean", "description": "Replace every place where old_text stands."},
	}, "path", "old_text", "new_text")
}

func listSchema(p tranca.Policy) map[string]any {
	return onFiles(p, map[string]any{
		"path":  text("The folder: absolute, or relative to " + quoted(p.Workdir) + ", which it is if left out."),
		"depth": integer(1, maxDepth, "How many levels of folders to list; 1 if left out."),
	})
}

// record and list describe what a tool gives. They leave room for fields that
// are added later.
func record(properties map[string]any, required ...string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

func list(items map[string]any, description string) map[string]any {
	return map[string]any{"type": "array", "items": items, "description": description}
}

// outputSchema describes an [output].
func outputSchema() map[string]any {
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
		"images": list(record(map[string]any{
			"path": text("The path."), "type": text("The MIME type."),
			"size": map[string]any{"type": "integer", "description": "Bytes."},
		}, "path", "type", "size"), "The images of the run that are in the result."),
	}, "stdout", "stderr", "code", "ended", "success", "stdout_truncated", "stderr_truncated", "limits", "denials", "changes", "images")
}
