package agentconfig

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tranca"
)

var wanted = []field{{"type", "stdio"}, {"command", "/opt/a & b/tranca"}, {"args", []string{"mcp"}}}

const entry = `"tranca": {
      "type": "stdio",
      "command": "/opt/a & b/tranca",
      "args": [
        "mcp"
      ]
    }`

func TestSetJSON(t *testing.T) {
	for _, c := range []struct{ name, before, after string }{
		{"empty", "", "{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}\n"},
		{"blank", " \n", "{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}\n"},
		{
			"others", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"}\n  },\n  \"b\": 12345678901234567890\n}",
			"{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"},\n    " + entry + "\n  },\n  \"b\": 12345678901234567890\n}",
		},
		{
			"comments", "{ // mine\n  \"mcpServers\": {\n    // first\n    \"x\": {}, // \"tranca\": {}\n    /* , } */\n  },\n}\n",
			"{ // mine\n  \"mcpServers\": {\n    // first\n    \"x\": {},\n    " + entry + ", // \"tranca\": {}\n    /* , } */\n  },\n}\n",
		},
		{
			"empty with a comment", "{\n  \"mcpServers\": { // none yet\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    " + entry + " // none yet\n  }\n}\n",
		},
		{
			"own settings stay", "{\n  \"mcpServers\": {\n    \"tranca\": {\"command\": \"/old\", \"env\": {\"A\": \"b\"}, \"args\": [ \"mcp\" ]}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"tranca\": {\"command\": \"/opt/a & b/tranca\", \"env\": {\"A\": \"b\"}, \"args\": [ \"mcp\" ], \"type\":\"stdio\"}\n  }\n}\n",
		},
		{
			"one line", `{"mcpServers":{"x":{}}}`,
			`{"mcpServers":{"x":{}, "tranca":{"type":"stdio"`,
		},
		{"line ends", "{\r\n\t\"a\": {}\r\n}\r\n", "{\r\n\t\"a\": {},\r\n\t\"mcpServers\": {\r\n\t\t\"tranca\": {\r\n\t\t\t\"type\": \"stdio\""},
		{"a byte order mark", "\ufeff{\"a\": 1}", "\ufeff{\"a\": 1, \"mcpServers\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, err := setJSON(c.before, "mcpServers", wanted)
			if err != nil || !strings.HasPrefix(after, c.after) {
				t.Fatalf("%v\ngot:\n%s\nwant:\n%s", err, after, c.after)
			}
			again, err := setJSON(after, "mcpServers", wanted)
			if err != nil || again != after {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

func TestSetJSONRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":           "mcpServers: {}",
		"half":              `{"mcpServers": {`,
		"open comment":      `{"a": 1} /* `,
		"a list":            `[]`,
		"servers are none":  `{"mcpServers": []}`,
		"twice":             `{"mcpServers": {}, "mcpServers": {}}`,
		"entry is none":     `{"mcpServers": {"tranca": "x"}}`,
		"entry twice":       `{"mcpServers": {"tranca": {}, "tranca": {}}}`,
		"more than one":     `{} {}`,
		"a string is open":  `{"a": "b`,
		"not even a comma ": `{"a": 1 "b": 2}`,
	} {
		if after, err := setJSON(text, "mcpServers", wanted); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v\n%s", name, err, after)
		}
	}
}

// TestSetJSONKeepsAllElse draws files and edits them: what is not tranca's is
// the same afterwards, and the entry says what it should.
func TestSetJSONKeepsAllElse(t *testing.T) {
	word := rapid.StringMatching(`[a-z"\\/*,{}\[\]: é]{0,8}`)
	rapid.Check(t, func(rt *rapid.T) {
		servers := rapid.MapOf(word, word).Draw(rt, "servers")
		file := map[string]any{}
		for k, v := range rapid.MapOf(word, word).Draw(rt, "others") {
			file[k] = v
		}
		if rapid.Bool().Draw(rt, "has servers") {
			file["mcpServers"] = servers
		}
		text, err := json.MarshalIndent(file, "", rapid.SampledFrom([]string{"", " ", "\t", "    "}).Draw(rt, "indent"))
		if rapid.Bool().Draw(rt, "compact") {
			text, err = json.Marshal(file)
		}
		if err != nil {
			rt.Fatal(err)
		}
		after, err := setJSON(string(text), "mcpServers", wanted)
		if _, ours := servers[Name]; ours && err != nil {
			return // it was a text, and no entry
		}
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		var got struct {
			Servers map[string]json.RawMessage `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(after), &got); err != nil {
			rt.Fatalf("%v\n%s", err, after)
		}
		var own struct {
			Command string
			Args    []string
		}
		if err := json.Unmarshal(got.Servers[Name], &own); err != nil || own.Command != "/opt/a & b/tranca" || len(own.Args) != 1 {
			rt.Fatalf("%v\n%s", err, after)
		}
		if again, err := setJSON(after, "mcpServers", wanted); err != nil || again != after {
			rt.Fatalf("a second time: %v\n%s\n%s", err, after, again)
		}
	})
}

// FuzzSetJSON edits anything: it is refused, or the rest stays as it was, which
// setJSON itself makes sure of, and a second edit changes nothing.
func FuzzSetJSON(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"mcpServers": {"tranca": {"command": 1}}}`, "{ // x\n\"a\": [1, 2,], }", "\ufeff{}", `{"mcpServers":{"x":{}}}`,
		"{\"mcpServers\": {\n// }\n}}", `{"a": "//", "b": "/*", "\"": ","}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		after, err := setJSON(text, "mcpServers", wanted)
		if err != nil {
			return
		}
		if again, err := setJSON(after, "mcpServers", wanted); err != nil || again != after {
			t.Errorf("%q became %q and then %q: %v", text, after, again, err)
		}
	})
}
