// Package interpreter knows how code in a language becomes a command.
//
// # Python
//
// Python's code goes to the program at the head of its standard input, and a
// few lines that are given by -c take it from there (python_boot.py). So code
// of any size goes the same way, with no round trip of its own and without
// needing room in the sandbox; code, line numbers, __file__, sys.argv and
// tracebacks look as if "python3 FILE" had been started. Measured with Python
// 3.11, it costs 0.8 ms over "python3 -I -c CODE", whose code is bounded by
// 128 KiB and whose tracebacks show no lines.
//
// It runs with -I: neither the working folder nor the user's own packages nor
// variables stand before the standard library. The working folder is appended
// to sys.path, so a module beside the code can be imported, but can't shadow
// another.
//
// # Other languages
//
// Their code is one argument, which the kernel bounds to 128 KiB.
//
// Interpreters are looked for at fixed places inside the sandbox, never in the
// PATH of anybody. All functions are safe for concurrent use.
package interpreter

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"tranca"
)

const (
	// MaxStreamed bounds the bytes of code that go by standard input.
	MaxStreamed = 64 << 20
	// MaxArgument bounds the bytes of code that are one argument.
	MaxArgument = 120 << 10
	// Default is the language where none is named.
	Default = "python"
)

// Language is one language that code can be written in.
type Language struct {
	// Name is the word in requests and flags.
	Name string
	// Programs are the places of the interpreter, tried in order.
	Programs []string
	// maxCode bounds the bytes of code.
	maxCode int
	command func(program string, s Source) ([]string, io.Reader)
}

// Source is code and what it is run with.
type Source struct {
	Code string
	Args []string
	// Stdin is the program's own input; nil is empty.
	Stdin io.Reader
	// Workdir is the folder in which it starts.
	Workdir string
}

//go:embed python_boot.py
var pythonBootFile string

var pythonBoot = withoutComments(pythonBootFile)

var languages = []Language{
	{
		Name: "python", Programs: places("python3"), maxCode: MaxStreamed,
		command: func(program string, s Source) ([]string, io.Reader) {
			args := []string{program, "-I", "-c", pythonBoot, strconv.Itoa(len(s.Code)), s.Workdir}
			return append(args, s.Args...), after(s.Code, s.Stdin)
		},
	},
	{
		Name: "sh", Programs: []string{"/bin/sh", "/usr/bin/sh"}, maxCode: MaxArgument,
		command: argument("-c", "--", "", "sh"),
	},
	{
		Name: "bash", Programs: places("bash"), maxCode: MaxArgument,
		command: argument("-c", "--", "", "bash"),
	},
	{
		Name: "node", Programs: places("node"), maxCode: MaxArgument,
		command: argument("--eval=", "--"),
	},
	{
		Name: "perl", Programs: places("perl"), maxCode: MaxArgument,
		command: argument("-e", "", "--"),
	},
	{
		Name: "ruby", Programs: places("ruby"), maxCode: MaxArgument,
		command: argument("-e", "", "--"),
	},
}

// places lists where distributions and images put a program.
func places(name string) []string {
	return []string{"/usr/bin/" + name, "/usr/local/bin/" + name, "/bin/" + name}
}

// argument makes a command of a pattern: an empty word, or one that ends in
// "=", takes the code; the program's arguments follow.
func argument(words ...string) func(string, Source) ([]string, io.Reader) {
	return func(program string, s Source) ([]string, io.Reader) {
		args := []string{program}
		for _, w := range words {
			if w == "" || strings.HasSuffix(w, "=") {
				w += s.Code
			}
			args = append(args, w)
		}
		return append(args, s.Args...), s.Stdin
	}
}

// after returns the code followed by the program's own input.
func after(code string, stdin io.Reader) io.Reader {
	if stdin == nil {
		return strings.NewReader(code)
	}
	return io.MultiReader(strings.NewReader(code), stdin)
}

// Find returns the language of a name; the empty name is [Default]. The error
// wraps [tranca.ErrInvalid] and lists the names there are.
func Find(name string) (*Language, error) {
	if name == "" {
		name = Default
	}
	for i := range languages {
		if languages[i].Name == name {
			return &languages[i], nil
		}
	}
	return nil, fmt.Errorf("%w: language %q is not known: want one of %s", tranca.ErrInvalid, name, strings.Join(Names(), ", "))
}

// Names returns the names of all languages. Whether a sandbox has the
// interpreter shows when it is started.
func Names() []string {
	names := make([]string, len(languages))
	for i, l := range languages {
		names[i] = l.Name
	}
	return names
}

// OnHost returns the names of the languages whose interpreter this host has
// in one of the known places, and so every sandbox made of the host's tree.
func OnHost() []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		l, err := Find(name)
		return err != nil || l.HostProgram() == ""
	})
}

// HostProgram returns the path of this host's interpreter; "" where there is
// none in the known places.
func (l *Language) HostProgram() string {
	if i := slices.IndexFunc(l.Programs, executable); i >= 0 {
		return l.Programs[i]
	}
	return ""
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Check reports code that can't be run whatever it says. Errors wrap
// [tranca.ErrInvalid]. Code that isn't valid UTF-8 is not among it: that is
// for the language to say.
func (l *Language) Check(code string) error {
	if strings.TrimSpace(code) == "" {
		return fmt.Errorf("%w: the code is empty: there is nothing to run", tranca.ErrInvalid)
	}
	if at := strings.IndexByte(code, 0); at >= 0 {
		return fmt.Errorf("%w: the code has a NUL byte at %d (line %d), and %s takes none: write it as an escape in a string",
			tranca.ErrInvalid, at, 1+strings.Count(code[:at], "\n"), l.Name)
	}
	if len(code) > l.maxCode {
		return fmt.Errorf("%w: the code has %d bytes: %s code can have at most %d; put data into a file or standard input",
			tranca.ErrInvalid, len(code), l.Name, l.maxCode)
	}
	return nil
}

// Command returns the arguments, the program first, and the standard input
// that run the code with the interpreter at one of l.Programs. The code must
// have passed Check.
func (l *Language) Command(program string, s Source) (args []string, stdin io.Reader) {
	return l.command(program, s)
}

// withoutComments leaves out the lines that are comments.
func withoutComments(python string) string {
	var b strings.Builder
	for line := range strings.Lines(python) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
