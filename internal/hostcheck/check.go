package hostcheck

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/listfile"
)

// Schema is what a list's file says it is.
const Schema = "tranca.hostchecks/1"

// SystemFile is where an operator puts a newer copy of the list.
const SystemFile = "/etc/tranca/hostchecks.json"

// Verdict says how a check came out.
type Verdict string

// The verdicts. The zero value is none.
const (
	// OK: as it should be.
	OK Verdict = "ok"
	// Weak: a part of what the host could put in the way is missing.
	Weak Verdict = "weak"
	// Open: the host puts nothing in the way.
	Open Verdict = "open"
	// Unknown: it could not be looked at.
	Unknown Verdict = "unknown"
)

// rank orders verdicts from good to bad.
func (v Verdict) rank() int { return slices.Index([]Verdict{OK, Unknown, Weak, Open}, v) }

func (v Verdict) valid() bool { return v.rank() >= 0 }

// Kind is a way of looking. Each finds words, which the rules of a row judge.
type Kind string

// The kinds.
const (
	// KindFile reads the first of some files below /proc and /sys that is there.
	KindFile Kind = "file"
	// KindEach reads every file that matches, and the worst verdict counts.
	KindEach Kind = "each"
	// KindMount finds the file system of the first of some folders that is there.
	KindMount Kind = "mount"
	// KindModule says of a module of the kernel: builtin, loaded, loadable,
	// blocked, absent.
	KindModule Kind = "module"
	// KindVersion asks a program of the distribution for its version, and the
	// table of known holes about that: clean, mended, holes, unread, absent.
	KindVersion Kind = "version"
	// KindItem says of items what a trial sandbox of a backend has shown: held,
	// part, none, unusable.
	KindItem Kind = "item"
	// KindTrial does something; see [Trials].
	KindTrial Kind = "trial"
)

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{KindFile, KindEach, KindMount, KindModule, KindVersion, KindItem, KindTrial}
}

// Check is one row of the list.
type Check struct {
	ID    string `json:"id"`
	Group string `json:"group"`
	// Looks says what is looked at, for people.
	Looks string `json:"looks"`
	Kind  Kind   `json:"kind"`
	// Paths are what KindFile, KindEach and KindMount look at, without the
	// leading slash; of KindEach they are patterns.
	Paths []string `json:"paths,omitempty"`
	// Module, Program, Backend with Items, and Trial are what the kinds of these
	// names look at. Component is the program's name in the table of holes.
	Module    string        `json:"module,omitempty"`
	Program   string        `json:"program,omitempty"`
	Component string        `json:"component,omitempty"`
	Backend   string        `json:"backend,omitempty"`
	Items     []tranca.Item `json:"items,omitempty"`
	Trial     string        `json:"trial,omitempty"`
	// Rules judge; the first that matches counts.
	Rules []Rule `json:"rules"`
	// Absent is the verdict where none of the paths is there.
	Absent Verdict `json:"absent,omitempty"`
	// Probes are the hostile probes that it decides.
	Probes []string `json:"probes"`
	// Risk is one sentence; Mend is one command, or a change in words.
	Risk string `json:"risk"`
	Mend string `json:"mend,omitempty"`
}

// Rule is a condition, or none, and a verdict. All of its conditions have to
// match.
type Rule struct {
	// In lists words, one of which it is.
	In []string `json:"in,omitempty"`
	// Min and Max bound a number.
	Min *int64 `json:"min,omitempty"`
	Max *int64 `json:"max,omitempty"`
	// Version is the lowest version.
	Version string `json:"version,omitempty"`
	// Prefix and Contains look at text.
	Prefix   string `json:"prefix,omitempty"`
	Contains string `json:"contains,omitempty"`
	// Option is one of a mount's options.
	Option string  `json:"option,omitempty"`
	Is     Verdict `json:"is"`
}

//go:embed checks.json
var builtInText []byte

// List is a list of checks.
type List = listfile.List[Check]

var lists = listfile.New(Schema, builtInText, func() func(*Check) error {
	seen := map[string]bool{}
	return func(c *Check) error {
		if seen[c.ID] {
			return fmt.Errorf("the check %q is listed twice", c.ID)
		}
		seen[c.ID] = true
		return c.validate()
	}
})

// Parse reads a list. Errors wrap [tranca.ErrInvalid] and name file, line, and
// what is wrong.
func Parse(name string, data []byte) (*List, error) { return lists.Parse(name, data) }

// BuiltIn is the list that came with this program.
func BuiltIn() *List { return lists.BuiltIn() }

// Installed returns the list that counts on this host: the operator's at the
// path, where it is valid and newer, else the one that is built in.
func Installed(path string, read listfile.Reader) *List { return lists.Installed(path, read) }

// Named is Installed for a file that the operator named just now: one that
// can't be used is an error.
func Named(path string, read listfile.Reader) (*List, error) { return lists.Named(path, read) }

// The bounds of a row's parts.
const (
	maxName = 40
	maxText = 400
	maxMany = 32
)

func (c *Check) validate() error {
	switch {
	case !word(c.ID):
		return fmt.Errorf("id %.40q: want lower-case letters, digits and dashes", c.ID)
	case c.Group == "" || len(c.Group) > maxName:
		return errors.New("group: want a word")
	case c.Looks == "" || len(c.Looks) > maxText:
		return errors.New("looks: say in a few words what is looked at")
	case c.Risk == "" || len(c.Risk) > maxText || !strings.HasSuffix(c.Risk, "."):
		return errors.New("risk: want one sentence, with a full stop")
	case len(c.Mend) > maxText:
		return errors.New("mend: want one command")
	case len(c.Rules) == 0 || len(c.Rules) > maxMany || len(c.Probes) > maxMany || len(c.Paths) > maxMany || len(c.Items) > maxMany:
		return fmt.Errorf("rules, probes, paths, items: at most %d, and at least one rule", maxMany)
	}
	for _, id := range c.Probes {
		if !probe(id) {
			return fmt.Errorf("probe %.40q: want an id such as KRN-06", id)
		}
	}
	for i, r := range c.Rules {
		if err := r.validate(i == len(c.Rules)-1); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return c.validateKind()
}

func (r *Rule) validate(last bool) error {
	conditional := r.In != nil || r.Min != nil || r.Max != nil || r.Version != "" || r.Prefix != "" || r.Contains != "" || r.Option != ""
	switch {
	case !r.Is.valid():
		return fmt.Errorf("is %.40q: want ok, weak, open or unknown", r.Is)
	case conditional == last:
		return errors.New("all rules but the last have a condition, and the last has none")
	case len(r.In) > maxMany || len(r.Prefix)+len(r.Contains)+len(r.Option) > maxText:
		return errors.New("too long")
	}
	if r.Version != "" {
		if _, ok := numbers(r.Version); !ok {
			return fmt.Errorf("version %.40q: want numbers such as 5.14", r.Version)
		}
	}
	return nil
}

// validateKind refuses a row that lacks what its kind looks at, or has more.
func (c *Check) validateKind() error {
	want := map[Kind]string{
		KindFile: "paths", KindEach: "paths", KindMount: "paths", KindModule: "module",
		KindVersion: "program component", KindItem: "backend items", KindTrial: "trial",
	}[c.Kind]
	if want == "" {
		return fmt.Errorf("kind %.40q: want one of %v", c.Kind, Kinds())
	}
	for name, there := range map[string]bool{
		"paths": c.Paths != nil, "module": c.Module != "", "program": c.Program != "", "component": c.Component != "",
		"backend": c.Backend != "", "items": c.Items != nil, "trial": c.Trial != "",
	} {
		if there != slices.Contains(strings.Fields(want), name) {
			return fmt.Errorf("a check of kind %q has %s, and nothing else to look at", c.Kind, strings.Join(strings.Fields(want), " and "))
		}
	}
	if (c.Absent != "") != (c.Paths != nil) || c.Absent != "" && !c.Absent.valid() {
		return errors.New("absent: want ok, weak, open or unknown, for a check of paths alone")
	}
	for _, p := range c.Paths {
		if !fs.ValidPath(p) || c.Kind != KindMount && !strings.HasPrefix(p, "proc/") && !strings.HasPrefix(p, "sys/") {
			return fmt.Errorf("path %.60q: want one below proc/ or sys/, without a leading slash", p)
		}
	}
	for _, item := range c.Items {
		if !slices.Contains(tranca.Items(), item) {
			return fmt.Errorf("item %.40q: no policy knows it", item)
		}
	}
	switch {
	case c.Trial != "" && !slices.Contains(Trials(), c.Trial):
		return fmt.Errorf("trial %.40q: this program knows %s", c.Trial, strings.Join(Trials(), ", "))
	case c.Program != "" && !word(c.Program), c.Module != "" && !word(strings.ReplaceAll(c.Module, "_", "-")), len(c.Component)+len(c.Backend) > 2*maxName:
		return errors.New("program, module, component, backend: want a name")
	}
	return nil
}

// word reports whether s is a name of lower-case letters, digits and dashes.
func word(s string) bool {
	return s != "" && len(s) <= maxName && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}

// probe reports whether s has the form of a probe's id.
func probe(s string) bool {
	letters, digits, ok := strings.Cut(s, "-")
	return ok && len(letters) >= 2 && len(letters) <= 3 && strings.Trim(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" &&
		len(digits) == 2 && strings.Trim(digits, "0123456789") == ""
}
