package agentconfig

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/require"
)

var server = Server{Command: `/opt/a "b"\c/tranca`, Args: []string{"mcp", "--policy", "/p.yaml"}}

const tomlEntry = "[mcp_servers.tranca]\ncommand = \"/opt/a \\\"b\\\"\\\\c/tranca\"\nargs = [\"mcp\", \"--policy\", \"/p.yaml\"]\n"

var tomlFiles = []struct{ name, before, after string }{
	{"empty", "", tomlEntry},
	{"others", "model = \"x\" # mine\n\n[mcp_servers.docs]\ncommand = \"d\"", "model = \"x\" # mine\n\n[mcp_servers.docs]\ncommand = \"d\"\n\n" + tomlEntry},
	{
		"its own settings stay",
		"[mcp_servers.tranca] # it\nenabled = true\nargs = [ # old\n  \"mcp\",\n] # args\n[mcp_servers.tranca.env]\nA = \"b\"\n",
		"[mcp_servers.tranca] # it\ncommand = \"/opt/a \\\"b\\\"\\\\c/tranca\"\nenabled = true\nargs = [\"mcp\", \"--policy\", \"/p.yaml\"] # args\n[mcp_servers.tranca.env]\nA = \"b\"\n",
	},
	{
		"quoted names", "[ \"mcp_servers\" . 'tranca' ]\ncommand='x'\nargs=[]",
		"[ \"mcp_servers\" . 'tranca' ]\ncommand=\"/opt/a \\\"b\\\"\\\\c/tranca\"\nargs=[\"mcp\", \"--policy\", \"/p.yaml\"]",
	},
	{
		"what only looks like it", "a = \"\"\"\n[mcp_servers.tranca]\n\"\"\"\nb = [\n'[mcp_servers.tranca]',\n]\nc = '''\n[mcp_servers.tranca]'''\n",
		"a = \"\"\"\n[mcp_servers.tranca]\n\"\"\"\nb = [\n'[mcp_servers.tranca]',\n]\nc = '''\n[mcp_servers.tranca]'''\n\n" + tomlEntry,
	},
	{"the table above", "[mcp_servers]\n", "[mcp_servers]\n\n" + tomlEntry},
	{"line ends", "a = 1\r\n", "a = 1\r\n\r\n" + strings.ReplaceAll(tomlEntry, "\n", "\r\n")},
	{"a header alone", "[mcp_servers.tranca]", "[mcp_servers.tranca]\n" + strings.SplitN(tomlEntry, "\n", 2)[1]},
}

func TestSetTOML(t *testing.T) {
	for _, c := range tomlFiles {
		t.Run(c.name, func(t *testing.T) {
			after, err := setTOML(c.before, server)
			if err != nil || after != c.after {
				t.Fatalf("%v\ngot:\n%s\nwant:\n%s", err, after, c.after)
			}
			if again, err := setTOML(after, server); err != nil || again != after {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

// TestAnotherParserReadsIt has Python's parser read what comes out.
func TestAnotherParserReadsIt(t *testing.T) {
	python := require.Program(t, "python3")
	for _, c := range tomlFiles {
		after, err := setTOML(c.before, server)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "-c", "import json, sys, tomllib\nprint(json.dumps(tomllib.loads(sys.stdin.buffer.read().decode())['mcp_servers']['tranca']))")
		cmd.Stdin = strings.NewReader(after)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", c.name, err, out, after)
		}
		var got Server
		if err := json.Unmarshal(out, &got); err != nil || got.Command != server.Command || strings.Join(got.Args, " ") != strings.Join(server.Args, " ") {
			t.Errorf("%s: %v, it read %s", c.name, err, out)
		}
	}
}

func TestSetTOMLRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"inline":        "mcp_servers = {tranca = {command = \"x\"}}\n",
		"inline table":  "[mcp_servers]\ntranca = {command = \"x\"}\n",
		"dotted":        "mcp_servers.tranca.command = \"x\"\n",
		"a list":        "[[mcp_servers]]\n",
		"a list of it":  "[[mcp_servers.tranca]]\n",
		"twice":         "[mcp_servers.tranca]\n[mcp_servers.tranca]\n",
		"open string":   "a = \"x\n",
		"open text":     "a = \"\"\"x\n",
		"open bracket":  "a = [1,\n",
		"no key":        "= 1\n",
		"no value":      "a\n",
		"broken header": "[a\n",
		"empty header":  "[]\n",
	} {
		if after, err := setTOML(text, server); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v\n%s", name, err, after)
		}
	}
}

func FuzzSetTOML(f *testing.F) {
	for _, c := range tomlFiles {
		f.Add(c.before)
		f.Add(c.after)
	}
	f.Fuzz(func(t *testing.T, text string) {
		after, err := setTOML(text, server)
		if err != nil {
			return
		}
		if again, err := setTOML(after, server); err != nil || again != after {
			t.Errorf("%q became %q and then %q: %v", text, after, again, err)
		}
	})
}
