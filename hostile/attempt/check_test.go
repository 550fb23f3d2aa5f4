package attempt_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tranca/hostile/attempt"
	"tranca/internal/require"
)

func read(text string) error {
	_, err := attempt.Read(strings.NewReader(text))
	return err
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	deep := strings.Repeat(`{"do":"spawn","steps":[`, 4) + `{"do":"ignore"}` + strings.Repeat(`]}`, 4)
	for steps, want := range map[string]string{
		`{"do":"fly"}`:                                                        `[0].do: no act is called "fly"`,
		`{"do":"ignore"},{}`:                                                  `[1].do: no act is called ""`,
		`{"do":"read"}`:                                                       `[0].path: read needs it`,
		`{"do":"read","path":"/a","to":"/b"}`:                                 `[0].to: read has no such field`,
		`{"do":"read","path":"/a","size":-1}`:                                 `[0].size: -1 is not between 0 and`,
		`{"do":"read","path":"/a","size":17592186044417}`:                     `[0].size: 17592186044417 is not`,
		`{"do":"read","path":"/a\u0000b"}`:                                    `[0].path: more than 4096 bytes, or one that is NUL`,
		`{"do":"open","path":"/a","flags":"x"}`:                               `[0].flags: "x" is none of`,
		`{"do":"chmod","path":"/a","mode":"999"}`:                             `[0].mode: "999" is no octal mode`,
		`{"do":"chmod","path":"/a","mode":"17777"}`:                           `[0].mode: "17777" is no octal mode`,
		`{"do":"mknod","path":"/a","mode":"c 1"}`:                             `[0].mode: "c 1" is not like`,
		`{"do":"mknod","path":"/a","mode":"p 1 3"}`:                           `[0].mode: "p 1 3" is not like`,
		`{"do":"forks","count":2000000}`:                                      `[0].count: 2000000 is not`,
		`{"do":"sleep","for":3600000}`:                                        `[0].for: 3600000 is not`,
		`{"do":"spin","for":1,"threads":999}`:                                 `[0].threads: 999 is not`,
		`{"do":"raise","signal":99}`:                                          `[0].signal: 99 is not`,
		`{"do":"exit","code":256}`:                                            `[0].code: 256 is not`,
		`{"do":"print","data":"x","stream":"both"}`:                           `[0].stream: "both" is neither`,
		`{"do":"write","path":"/a","data":"hex:0"}`:                           `[0].data: "hex:0" has no hexadecimal bytes`,
		`{"do":"repeat","steps":[{"do":"ignore"}]}`:                           `[0]: repeat needs one of for, count`,
		`{"do":"repeat","for":1,"count":1,"steps":[{"do":"ignore"}]}`:         `not both`,
		`{"do":"spawn"}`:                                                      `[0].steps: spawn needs it`,
		`{"do":"spawn","steps":[]}`:                                           `[0].steps: there are none`,
		`{"do":"spawn","steps":[{"do":"read"}]}`:                              `[0].steps[0].path: read needs it`,
		deep:                                                                  `[0].steps[0].steps[0].steps[0].steps: steps inside steps go 4 deep at most`,
		strings.Repeat(`{"do":"ignore"},`, 64) + `{"do":"ignore"}`:            `65 steps`,
		`{"do":"spawn","new":"user+disk","steps":[{"do":"ignore"}]}`:          `[0].new: "user+disk" is not some of user, mount,`,
		`{"do":"spawn","new":"pid+pid","steps":[{"do":"ignore"}]}`:            `[0].new: "pid+pid" is not some of`,
		`{"do":"spawn","new":"+","steps":[{"do":"ignore"}]}`:                  `[0].new: "+" is not some of`,
		`{"do":"repeat","new":"pid","count":1,"steps":[{"do":"ignore"}]}`:     `[0].new: repeat has no such field`,
		`{"do":"listen","network":"icmp","address":"x","for":1}`:              `[0].network: "icmp" is none of tcp, udp, unix`,
		`{"do":"listen","network":"tcp","address":"x"}`:                       `[0].for: listen needs it`,
		`{"do":"mmap"}`:                                                       `[0]: mmap needs one of path, size`,
		`{"do":"mmap","path":"/a","data":"x","size":1}`:                       `[0]: mmap of a path has no size and no flags`,
		`{"do":"mmap","path":"/a"}`:                                           `[0].data: mmap of a path needs it`,
		`{"do":"mmap","size":1,"data":"x"}`:                                   `[0].data: mmap without a path has none`,
		`{"do":"mmap","size":1,"flags":"rw"}`:                                 `[0].flags: "rw" is none of hugetlb, locked`,
		`{"do":"syscall","call":"read","args":["fd:"]}`:                       `[0].args[0]: "fd:" has no path`,
		`{"do":"syscall","call":"read","args":["fdw:a\u0000b"]}`:              `[0].args[0]: "fdw:a\x00b" has no path`,
		`{"do":"ia32","number":1,"args":["fdp:/"]}`:                           `[0].args[0]: ia32 takes numbers alone`,
		`{"do":"check","path":"/a"}`:                                          `[0]: check needs one of equals, differs, contains`,
		`{"do":"connect","network":"sctp","address":"x"}`:                     `[0].network: "sctp" is none of`,
		`{"do":"echo","network":"icmp"}`:                                      `[0].network: "icmp" is none of tcp, udp, unix`,
		`{"do":"echo","network":"unix"}`:                                      `[0].path: the network unix needs it`,
		`{"do":"echo","network":"tcp","path":"/a"}`:                           `[0].path: the network unix needs it`,
		`{"do":"kill","pid":"one"}`:                                           `[0].pid: "one" is no number`,
		`{"do":"kill","pid":"0x"}`:                                            `[0].pid: "0x" is no number`,
		`{"do":"shm","key":"-0x8000000000000001"}`:                            `[0].key: "-0x8000000000000001" is no number`,
		`{"do":"syscall","call":"read","args":["a"]}`:                         `[0].args[0]: "a" is no number`,
		`{"do":"syscall","call":"read","args":["buf:9999999"]}`:               `[0].args[0]: "buf:9999999" is not between`,
		`{"do":"syscall","call":"read","args":["hex:"]}`:                      `[0].args[0]: "hex:" has no`,
		`{"do":"syscall","call":"read","args":["1","1","1","1","1","1","1"]}`: `[0].args: syscall takes 6`,
		`{"do":"ia32","number":1,"args":["1","1","1"]}`:                       `[0].args: ia32 takes 2`,
		`{"do":"ia32","number":1,"args":["text:x"]}`:                          `[0].args[0]: ia32 takes numbers alone`,
		`{"do":"run","args":["a\u0000"]}`:                                     `[0].args[0]: more than`,
		`{"do":"ignore","speed":1}`:                                           `unknown field "speed"`,
		`{"do":"ignore","count":"1"}`:                                         `cannot unmarshal string`,
	} {
		err := read(`{"steps":[` + steps + `]}`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", steps, err, want)
		}
	}
	for _, steps := range []string{
		`{"do":"kill","pid":"{victim}"}`, `{"do":"shm","key":"{shm.key}"}`,
		`{"do":"syscall","call":"read","args":["{victim}","text:a","hex:00","buf:1","self","-0x1"]}`,
		`{"do":"syscall","call":"read","args":["fd:/","fdw:{rw}/a","fdp:."]}`,
		`{"do":"spawn","new":"user+mount+pid+net+ipc+uts+cgroup+time","session":true,"steps":[{"do":"ignore"}]}`,
		`{"do":"mmap","size":1}`, `{"do":"mmap","size":1,"flags":"locked"}`, `{"do":"mmap","path":"a","data":"hex:00"}`,
		`{"do":"syscall","call":"read","args":["0xffffffffffffffff"]}`, `{"do":"exit"}`,
		`{"do":"read","path":"{canary.home}","as":"key","child":true,"reach":true,"setup":true,"need":true}`,
	} {
		if err := read(`{"steps":[` + steps + `]}`); err != nil {
			t.Errorf("%s: %v", steps, err)
		}
	}
}

func TestCheckSaysWhere(t *testing.T) {
	errs := attempt.Check([]attempt.Step{{Do: "ignore"}, {Do: "repeat", Count: 1, Steps: []attempt.Step{{Do: "read"}}}})
	var e *attempt.Error
	if len(errs) != 1 || !errors.As(errs[0], &e) || e.At != "[1].steps[0].path" {
		t.Errorf("%v, want one at [1].steps[0].path", errs)
	}
}

func TestReadIsBounded(t *testing.T) {
	big := `{"mark":"` + strings.Repeat("a", attempt.MaxProgram) + `"}`
	if err := read(big); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("%d bytes: %v", len(big), err)
	}
	if err := read(`{"steps":[`); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("half a program: %v", err)
	}
	if err := read(`{"steps":[]} {`); err != nil {
		t.Errorf("what follows a program was read: %v", err)
	}
	if _, err := attempt.Python(attempt.Program{Mark: strings.Repeat("a", attempt.MaxProgram)}); err == nil {
		t.Error("a script was made of a program that is too large")
	}
}

// TestActsAreTheSame holds the document, the table of Check and both
// interpreters against each other; the one in Go has its own half.
func TestActsAreTheSame(t *testing.T) {
	text, err := os.ReadFile("../../docs/PROBES.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := actsOf(t, string(text))
	script, err := os.ReadFile("attempt.py")
	if err != nil {
		t.Fatal(err)
	}
	var python []string
	for _, m := range regexp.MustCompile(`(?m)^def do_(\w+)\(it, s\):`).FindAllStringSubmatch(string(script), -1) {
		python = append(python, m[1])
	}
	for _, a := range attempt.Acts() {
		fields := slices.Sorted(slices.Values(slices.Concat(a.Needs, a.May, a.Or)))
		if want, ok := documented[a.Do]; !ok || !slices.Equal(fields, want) {
			t.Errorf("%s: fields %v, docs/PROBES.md has %v", a.Do, fields, want)
		}
		delete(documented, a.Do)
		i := slices.Index(python, a.Do)
		if i < 0 {
			t.Errorf("attempt.py has no %s", a.Do)
			continue
		}
		python = slices.Delete(python, i, i+1)
	}
	if len(documented) != 0 || len(python) != 0 {
		t.Errorf("unknown to Check: of docs/PROBES.md %v, of attempt.py %v", documented, python)
	}
}

// actsOf reads the document's table: acts and their fields. What stands in
// brackets are values.
func actsOf(t *testing.T, text string) map[string][]string {
	t.Helper()
	_, table, ok := strings.Cut(text, "| do | fields | succeeds when |\n|---|---|---|\n")
	if !ok {
		t.Fatal("docs/PROBES.md has no table of acts")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	word := regexp.MustCompile("`([a-z0-9_]+)`")
	brackets := regexp.MustCompile(`\([^)]*\)`)
	acts := map[string][]string{}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, " | ")
		var fields []string
		for _, m := range word.FindAllStringSubmatch(brackets.ReplaceAllString(cells[1], ""), -1) {
			fields = append(fields, m[1])
		}
		slices.Sort(fields)
		for _, m := range word.FindAllStringSubmatch(cells[0], -1) {
			acts[m[1]] = fields
		}
	}
	return acts
}

// TestTwinCompiles: the script is Python as old as is promised.
func TestTwinCompiles(t *testing.T) {
	python := require.Program(t, "python3")
	script, err := os.ReadFile("attempt.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-I", "-c", "import ast, sys; ast.parse(sys.stdin.read(), feature_version=(3, 8))")
	cmd.Stdin = strings.NewReader(string(script))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"steps":[{"do":"read","path":"/a"}],"calls":{"x":1},"mark":"m","within":{"step":1,"until":5}}`)
	f.Add(`{"steps":[{"do":"spawn","steps":[{"do":"repeat","for":5,"steps":[{"do":"ignore"}]}]}]}`)
	f.Add(`{"steps":[{"do":"syscall","call":"a","args":["buf:1","hex:00","text:a","self","-0x1","7"]}]}`)
	f.Add(`{"steps":[{"do":"syscall","call":"a","args":["fd:/a","fdw:b","fdp:."]},{"do":"mmap","path":"a","data":"x"}]}`)
	f.Add(`{"steps":[{"do":"spawn","new":"user+pid","steps":[{"do":"listen","network":"tcp","address":"a","for":1}]}]}`)
	f.Add(`{"steps":[{"do":"mknod","path":"a","mode":"c 1 3"},{"do":"chmod","path":"a","mode":"07777"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := attempt.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		if errs := attempt.Check(p.Steps); len(errs) != 0 {
			t.Errorf("read, but: %v", errs)
		}
		if n := count(p.Steps, 1); n > attempt.MaxSteps {
			t.Errorf("%d steps were read", n)
		}
		if len(text) <= attempt.MaxText {
			if _, err := attempt.Python(p); err != nil {
				t.Errorf("read, but no script: %v", err)
			}
		}
	})
}

// count counts all steps; too deep counts as too many.
func count(steps []attempt.Step, depth int) int {
	if depth > attempt.MaxNesting && len(steps) > 0 {
		return attempt.MaxSteps + 1
	}
	n := len(steps)
	for _, s := range steps {
		n += count(s.Steps, depth+1)
	}
	return n
}
