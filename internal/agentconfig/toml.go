package agentconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tranca"
)

// section is the table of Codex's configuration that is written.
var section = []string{"mcp_servers", Name}

// setTOML returns the text of a TOML file with a table for tranca. Everything
// else, and other keys of the table, stay as they stand. A file that says the
// same in another of the ways that TOML has for it is refused. The error wraps
// [tranca.ErrInvalid].
func setTOML(text string, s Server) (string, error) {
	all, err := statements(text)
	if err != nil {
		return "", err
	}
	newline := lineEnd(text)
	keys := []struct{ name, value string }{
		{"command", tomlString(s.Command)}, {"args", tomlStrings(s.Args)},
	}
	t, err := findTable(all)
	if err != nil {
		return "", err
	}
	if t.header < 0 {
		body := "[" + strings.Join(section, ".") + "]" + newline
		for _, k := range keys {
			body += k.name + " = " + k.value + newline
		}
		switch {
		case text == "":
			return body, nil
		case !strings.HasSuffix(text, "\n"):
			text += newline
		}
		return text + newline + body, nil
	}
	// From the end on, so that positions before it stay right.
	var missing string
	var edits []edit
	for _, k := range keys {
		if st, ok := t.keys[k.name]; ok {
			edits = append(edits, edit{st.value, k.value})
		} else {
			missing += k.name + " = " + k.value + newline
		}
	}
	end := all[t.header].end
	if missing != "" && !strings.HasSuffix(text[:end], "\n") {
		missing = newline + missing
	}
	return apply(text, append(edits, edit{span{end, end}, missing})), nil
}

type edit struct {
	at   span
	with string
}

func apply(text string, edits []edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return b.at.start - a.at.start })
	for _, e := range edits {
		text = text[:e.at.start] + e.with + text[e.at.end:]
	}
	return text
}

// statement is one line of TOML, or several where its value goes on. Positions
// are in the text.
type statement struct {
	start, end int // with its line end
	header     bool
	array      bool // [[...]]
	key        []string
	value      span // without blanks and comment
}

// table is what the file says of tranca.
type table struct {
	header int // index of its statement, or -1
	keys   map[string]statement
}

func findTable(all []statement) (table, error) {
	t := table{header: -1, keys: map[string]statement{}}
	var current []string
	other := fmt.Errorf("%w: it says something of %s in a way that is not edited", tranca.ErrInvalid, strings.Join(section, "."))
	for i, st := range all {
		full := st.key
		if !st.header {
			full = slices.Concat(current, st.key)
		} else if current = st.key; !st.array && slices.Equal(st.key, section) {
			if t.header >= 0 {
				return t, other
			}
			t.header = i
			continue
		}
		switch {
		case !st.header && slices.Equal(current, section) && len(st.key) == 1:
			t.keys[st.key[0]] = st
		case hasPrefix(current, section) && !(st.array && slices.Equal(current, section)):
			// Something of the user's in it or below it.
		case hasPrefix(full, section), slices.Equal(full, section[:1]) && (!st.header || st.array):
			return t, other
		}
	}
	return t, nil
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// statements cuts a file into its statements, without empty lines and comments.
func statements(text string) ([]statement, error) {
	var all []statement
	for at := 0; at < len(text); {
		st, err := scan(text, at)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d is not TOML: %w", tranca.ErrInvalid, strings.Count(text[:at], "\n")+1, err)
		}
		if st.key != nil {
			all = append(all, st)
		}
		at = st.end
	}
	return all, nil
}

// scan reads the statement at a position, which is the start of a line.
func scan(text string, at int) (statement, error) {
	st := statement{start: at, end: at}
	end, comment, err := statementEnd(text, at)
	if err != nil {
		return st, err
	}
	st.end = end
	line := text[at:comment]
	body := strings.TrimLeft(line, " \t\ufeff")
	body = strings.TrimRight(body, " \t\r\n")
	if body == "" {
		return st, nil
	}
	if strings.HasPrefix(body, "[") {
		st.header = true
		inner, ok := strings.CutPrefix(body, "[[")
		if st.array = ok; ok {
			inner, ok = strings.CutSuffix(inner, "]]")
		} else {
			inner, ok = strings.CutSuffix(body[1:], "]")
		}
		key, rest, err := parseKey(inner)
		if err != nil || !ok || rest != "" {
			return st, fmt.Errorf("a table's name is broken")
		}
		st.key = key
		return st, nil
	}
	key, rest, err := parseKey(body)
	if err != nil || !strings.HasPrefix(rest, "=") {
		return st, fmt.Errorf("a key and = were expected")
	}
	st.key = key
	value := strings.TrimLeft(rest[1:], " \t")
	start := at + strings.Index(line, body) + len(body) - len(value)
	st.value = span{start, start + len(value)}
	return st, nil
}

// statementEnd returns where the statement ends, and where its last comment or
// its end is. Strings and brackets may hold line ends.
func statementEnd(text string, at int) (end, comment int, err error) {
	depth := 0
	for i := at; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			if depth == 0 {
				return i + 1, i, nil
			}
		case '#':
			nl := strings.IndexByte(text[i:], '\n')
			switch {
			case depth == 0 && nl < 0:
				return len(text), i, nil
			case depth == 0:
				return i + nl + 1, i, nil
			case nl < 0:
				return 0, 0, fmt.Errorf("a bracket is not closed")
			}
			i += nl
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '"', '\'':
			if i, err = stringEnd(text, i); err != nil {
				return 0, 0, err
			}
		}
	}
	if depth != 0 {
		return 0, 0, fmt.Errorf("a bracket is not closed")
	}
	return len(text), len(text), nil
}

// stringEnd returns the position of the last quote of the string at i.
func stringEnd(text string, i int) (int, error) {
	quote := text[i : i+1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(text[i:], long) {
		for j := i + 3; j < len(text); j++ {
			if text[j] == '\\' && quote == `"` {
				j++
			} else if strings.HasPrefix(text[j:], long) {
				// Up to two quotes may stand before the three that end it.
				for j += 2; j+1 < len(text) && text[j+1:j+2] == quote; j++ {
				}
				return j, nil
			}
		}
		return 0, fmt.Errorf("a string is not closed")
	}
	for j := i + 1; j < len(text) && text[j] != '\n'; j++ {
		if text[j] == '\\' && quote == `"` {
			j++
		} else if text[j:j+1] == quote {
			return j, nil
		}
	}
	return 0, fmt.Errorf("a string is not closed")
}

// parseKey reads a key with its dots and returns what follows it.
func parseKey(s string) (key []string, rest string, err error) {
	for {
		s = strings.TrimLeft(s, " \t")
		part, after, err := parsePart(s)
		if err != nil {
			return nil, "", err
		}
		key = append(key, part)
		s = strings.TrimLeft(after, " \t")
		if !strings.HasPrefix(s, ".") {
			return key, s, nil
		}
		s = s[1:]
	}
}

func parsePart(s string) (part, rest string, err error) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		end, err := stringEnd(s, 0)
		if err != nil {
			return "", "", err
		}
		if s[0] == '\'' {
			return s[1:end], s[end+1:], nil
		}
		part, err := strconv.Unquote(s[:end+1])
		return part, s[end+1:], err
	}
	n := strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
	if n < 0 {
		n = len(s)
	}
	if n == 0 {
		return "", "", fmt.Errorf("a key is empty")
	}
	return s[:n], s[n:], nil
}

// tomlString writes a basic string. TOML knows the escapes of JSON.
func tomlString(s string) string {
	text, err := encode(s)
	if err != nil {
		return `""`
	}
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`)
}

func tomlStrings(all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = tomlString(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
