package attempt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The bounds of a program. Steps are counted with those that they contain.
const (
	MaxSteps   = 64
	MaxNesting = 4
	MaxText    = 64 << 10
	MaxCount   = 1_000_000
	MaxThreads = 256
	MaxTime    = Millis(10 * 60 * 1000)
	MaxSize    = Bytes(16 << 40)
)

// Error is one thing that is wrong with a step.
type Error struct {
	// At is where, from the list on: "[2].path", "[0].steps[1].do". The caller
	// knows what the list is called.
	At   string
	Text string
}

func (e *Error) Error() string { return e.At + ": " + e.Text }

// Check holds steps against the language: each act has its fields and no
// others, with values in range. Steps may still have placeholders. Each error
// is an *[Error].
func Check(steps []Step) []error {
	c := checker{acts: actsByName()}
	c.list("", steps, 1)
	if c.count > MaxSteps {
		c.add("", "%d steps, with those inside others: at most %d", c.count, MaxSteps)
	}
	return c.errs
}

type checker struct {
	acts  map[string]Act
	count int
	errs  []error
}

func (c *checker) add(at, format string, args ...any) {
	c.errs = append(c.errs, &Error{at, fmt.Sprintf(format, args...)})
}

func (c *checker) list(at string, steps []Step, depth int) {
	if depth > MaxNesting {
		c.add(at, "steps inside steps go %d deep at most", MaxNesting)
		return
	}
	c.count += len(steps)
	if c.count > MaxSteps {
		return
	}
	for i := range steps {
		c.step(at+"["+strconv.Itoa(i)+"]", &steps[i], depth)
	}
}

func (c *checker) step(at string, s *Step, depth int) {
	act, ok := c.acts[s.Do]
	if !ok {
		c.add(at+".do", "no act is called %q; docs/PROBES.md lists them", s.Do)
		return
	}
	set := s.fields()
	for _, name := range act.Needs {
		if !set[name] {
			c.add(at+"."+name, "%s needs it, and not empty or 0", s.Do)
		}
	}
	if len(act.Or) > 0 && !slices.ContainsFunc(act.Or, func(n string) bool { return set[n] }) {
		c.add(at, "%s needs one of %s", s.Do, strings.Join(act.Or, ", "))
	}
	var wrong []string
	for name := range set {
		if !slices.Contains(slices.Concat(act.Needs, act.May, act.Or), name) {
			wrong = append(wrong, name)
		}
	}
	slices.Sort(wrong)
	for _, name := range wrong {
		c.add(at+"."+name, "%s has no such field", s.Do)
	}
	c.ranges(at, s)
	c.values(at, s, act)
	if s.Steps != nil {
		if len(s.Steps) == 0 {
			c.add(at+".steps", "there are none")
		}
		c.list(at+".steps", s.Steps, depth+1)
	}
}

// ranges bounds every number and text, whatever the act.
func (c *checker) ranges(at string, s *Step) {
	for _, n := range []struct {
		name             string
		value, low, high int64
	}{
		{"size", int64(s.Size), 0, int64(MaxSize)},
		{"count", int64(s.Count), 0, MaxCount},
		{"for", int64(s.For), 0, int64(MaxTime)},
		{"every", int64(s.Every), 0, int64(MaxTime)},
		{"threads", int64(s.Threads), 0, MaxThreads},
		{"uid", int64(s.UID), -1, 1<<32 - 2},
		{"gid", int64(s.GID), -1, 1<<32 - 2},
		{"signal", int64(s.Signal), 0, 64},
		{"code", int64(s.Code), 0, 255},
		{"family", int64(s.Family), 0, 1<<31 - 1},
		{"type", int64(s.Type), 0, 1<<31 - 1},
		{"protocol", int64(s.Protocol), 0, 1<<31 - 1},
		{"number", int64(s.Number), 0, 1<<31 - 1},
	} {
		if n.value < n.low || n.value > n.high {
			c.add(at+"."+n.name, "%d is not between %d and %d", n.value, n.low, n.high)
		}
	}
	for _, t := range []struct{ name, value string }{
		{"path", s.Path}, {"to", s.To}, {"address", s.Address}, {"name", s.Name},
		{"field", s.Field}, {"as", s.As}, {"pid", s.PID}, {"key", s.Key},
	} {
		if len(t.value) > 4096 || strings.ContainsRune(t.value, 0) {
			c.add(at+"."+t.name, "more than 4096 bytes, or one that is NUL")
		}
	}
	if len(s.Data) > MaxText {
		c.add(at+".data", "more than %d bytes", MaxText)
	}
	if len(s.Args) > MaxSteps {
		c.add(at+".args", "more than %d", MaxSteps)
	}
	for i, a := range s.Args {
		if len(a) > MaxText || s.Do == "run" && strings.ContainsRune(a, 0) {
			c.add(fmt.Sprintf("%s.args[%d]", at, i), "more than %d bytes, or one that is NUL", MaxText)
		}
	}
}

// values looks at fields that take a few values only.
func (c *checker) values(at string, s *Step, act Act) {
	if s.Flags != "" && act.Flags != nil && !slices.Contains(act.Flags, s.Flags) {
		c.add(at+".flags", "%q is none of %s", s.Flags, strings.Join(act.Flags, ", "))
	}
	if s.Stream != "" && s.Stream != "out" && s.Stream != "err" {
		c.add(at+".stream", "%q is neither out nor err", s.Stream)
	}
	if s.Network != "" && act.Networks != nil && !slices.Contains(act.Networks, s.Network) {
		c.add(at+".network", "%q is none of %s", s.Network, strings.Join(act.Networks, ", "))
	}
	if s.Mode != "" && s.Do == "mknod" {
		if _, _, _, err := deviceMode(s.Mode); err != nil {
			c.add(at+".mode", "%v", err)
		}
	} else if s.Mode != "" {
		if _, err := fileMode(s.Mode); err != nil {
			c.add(at+".mode", "%v", err)
		}
	}
	if _, err := dataBytes(s.Data); err != nil {
		c.add(at+".data", "%v", err)
	}
	if s.Do == "repeat" && s.For != 0 && s.Count != 0 {
		c.add(at, "repeat has one of for and count, not both")
	}
	if s.New != "" && s.Do == "spawn" {
		if err := newKinds(s.New); err != nil {
			c.add(at+".new", "%v", err)
		}
	}
	if s.Do == "mmap" {
		c.mapping(at, s)
	}
	if s.Do == "echo" && (s.Network == "unix") != (s.Path != "") {
		c.add(at+".path", "the network unix needs it, and no other has it")
	}
	c.numbers(at, s)
}

// mapping holds apart what mmap does to a file and to memory.
func (c *checker) mapping(at string, s *Step) {
	switch file := s.Path != ""; {
	case file && (s.Size != 0 || s.Flags != ""):
		c.add(at, "mmap of a path has no size and no flags")
	case file && s.Data == "":
		c.add(at+".data", "mmap of a path needs it, and not empty")
	case !file && s.Data != "":
		c.add(at+".data", "mmap without a path has none")
	}
}

// numbers looks at texts that become numbers, where no placeholder stands.
func (c *checker) numbers(at string, s *Step) {
	most := map[string]int{"syscall": 6, "ia32": 2}
	if n, ok := most[s.Do]; ok {
		if len(s.Args) > n {
			c.add(at+".args", "%s takes %d at most", s.Do, n)
		}
		for i, a := range s.Args {
			if _, _, err := argument(a, 0); err != nil && !placeholder(a) {
				c.add(fmt.Sprintf("%s.args[%d]", at, i), "%v", err)
			} else if s.Do == "ia32" && kindOf(a) != "" {
				c.add(fmt.Sprintf("%s.args[%d]", at, i), "ia32 takes numbers alone")
			}
		}
	}
	for _, t := range []struct{ name, value string }{{"pid", s.PID}, {"key", s.Key}} {
		if t.value == "" || placeholder(t.value) || t.name == "pid" && t.value == "self" {
			continue
		}
		if _, err := number(t.value); err != nil {
			c.add(at+"."+t.name, "%v", err)
		}
	}
}

func placeholder(text string) bool { return strings.Contains(text, "{") }
