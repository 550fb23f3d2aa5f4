package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/policy"
)

// valueFlag is a flag whose value becomes a part of [policy.Overrides]. The
// word in backquotes in its usage stands for the value.
type valueFlag struct {
	name, usage string
	set         func(o *policy.Overrides, text string) error
}

// limitFlags are the flags for limits.
func limitFlags() []valueFlag {
	l := policy.Default().Limits
	size := func(n int64) string { return " (" + policy.FormatSize(n) + ")" }
	count := func(n int64) string { return " (" + strconv.FormatInt(n, 10) + ")" }
	return []valueFlag{
		{"timeout", "end it after this `TIME` (" + policy.FormatDuration(l.Wall) + ")", into(policy.ParseDuration, func(o *policy.Overrides) **time.Duration { return &o.Wall })},
		{"cpu-time", "end it when all processes together used this `TIME` on CPUs (" + policy.FormatDuration(l.CPUTime) + ")", into(policy.ParseDuration, func(o *policy.Overrides) **time.Duration { return &o.CPUTime })},
		{"cpus", "share of CPUs: a `NUMBER` such as 0.5 (" + policy.FormatCPUs(l.MilliCPUs) + ")", into(policy.ParseCPUs, func(o *policy.Overrides) **int64 { return &o.MilliCPUs })},
		{"memory", "end it when all processes together need more than this `SIZE`" + size(l.Memory), into(policy.ParseSize, func(o *policy.Overrides) **int64 { return &o.Memory })},
		{"pids", "at most this `NUMBER` of processes and threads at once" + count(l.Processes), into(parseCount, func(o *policy.Overrides) **int64 { return &o.Processes })},
		{"open-files", "at most this `NUMBER` of open files in each process" + count(l.OpenFiles), into(parseCount, func(o *policy.Overrides) **int64 { return &o.OpenFiles })},
		{"file-size", "no file larger than this `SIZE`" + size(l.FileSize), into(policy.ParseSize, func(o *policy.Overrides) **int64 { return &o.FileSize })},
		{"disk", "/work, /tmp and /dev/shm together take this `SIZE`" + size(l.Disk.Size), into(policy.ParseSize, func(o *policy.Overrides) **int64 { return &o.DiskSize })},
		{"inodes", "and this `NUMBER` of files and folders" + count(l.Disk.Inodes), into(parseCount, func(o *policy.Overrides) **int64 { return &o.DiskInodes })},
		{"output-limit", "keep this `SIZE` of each of stdout and stderr" + size(l.Output.Size), into(policy.ParseSize, func(o *policy.Overrides) **int64 { return &o.Output })},
	}
}

// placeFlags are the flags that choose where code runs.
func placeFlags() []valueFlag {
	return []valueFlag{
		{"backend", "use the backend of this `NAME` and no other", into(named, func(o *policy.Overrides) **string { return &o.Backend })},
		{"isolation", "nothing below this isolation `LEVEL` (" + policy.Default().Floor.String() + ")", setFloor},
		{"image", "run in the tree of the image of this `NAME` or digest, or in the \"host\"'s own", into(named, func(o *policy.Overrides) **string { return &o.Image })},
		{"runtime", "run containers by the OCI runtime of this `NAME`", into(named, func(o *policy.Overrides) **string { return &o.Runtime })},
	}
}

// sightFlags are the flags that say what code sees.
func sightFlags() []valueFlag {
	return []valueFlag{
		{"mount", "show a file or folder of this host, `SRC:DST[:ro|rw|cow]`, read-only unless rw, or cow to write to a copy; may be repeated", addMount},
		{"env", "set a variable, `NAME=VALUE`; nothing is inherited; may be repeated", addEnv},
		{"workdir", "start in this `FOLDER` inside", setWorkdir},
		{"waive", "do without enforcing this `ITEM`; may be repeated", addWaiver},
	}
}

// into makes a setter from a parser and the place of its value.
func into[T any](parse func(string) (T, error), place func(*policy.Overrides) **T) func(*policy.Overrides, string) error {
	return func(o *policy.Overrides, text string) error {
		v, err := parse(text)
		if err != nil {
			return err
		}
		*place(o) = &v
		return nil
	}
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%w: %q is no whole number greater than 0", tranca.ErrInvalid, s)
	}
	return n, nil
}

func named(text string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("%w: the name is empty", tranca.ErrInvalid)
	}
	return text, nil
}

func setFloor(o *policy.Overrides, text string) error {
	level, err := tranca.ParseLevel(text)
	o.Floor = &level
	return err
}

func setWorkdir(o *policy.Overrides, text string) error {
	o.Workdir = &text
	return nil
}

// addMount takes a source that is relative to the working directory too, as
// every command does that takes paths.
func addMount(o *policy.Overrides, text string) error {
	source, rest, _ := strings.Cut(text, ":")
	if source != "" && !filepath.IsAbs(source) {
		absolute, err := filepath.Abs(source)
		if err != nil {
			return fmt.Errorf("%w: %w", tranca.ErrInvalid, err)
		}
		text = absolute + ":" + rest
	}
	m, err := policy.ParseMount(text)
	o.Mounts = append(o.Mounts, m)
	return err
}

func addEnv(o *policy.Overrides, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("%w: %q is not NAME=VALUE; no variable is taken over from the environment", tranca.ErrInvalid, text)
	}
	if o.Env == nil {
		o.Env = map[string]string{}
	}
	o.Env[name] = value
	return nil
}

func addWaiver(o *policy.Overrides, text string) error {
	var words []string
	for _, item := range tranca.Waivable() {
		if string(item) == text {
			o.Waive = append(o.Waive, item)
			return nil
		}
		words = append(words, string(item))
	}
	return fmt.Errorf("%w: %q can't be waived; these can: %s", tranca.ErrInvalid, text, strings.Join(words, ", "))
}

// valueFlags makes the parser's flags. All take their value as it stands, and
// may be repeated: of one that has a single value, the last one counts.
func valueFlags(category string, all []valueFlag) []cli.Flag {
	flags := make([]cli.Flag, len(all))
	for i, f := range all {
		flags[i] = &cli.GenericFlag{
			Name: f.name, Category: category, Usage: f.usage, HideDefault: true, Value: &values{},
		}
	}
	return flags
}

// values collects the values of one flag, as they stand.
type values []string

// Set appends a value.
func (v *values) Set(text string) error {
	*v = append(*v, text)
	return nil
}

// Get returns the values.
func (v *values) Get() any { return v }

// String is for the parser's help, which shows no default.
func (v *values) String() string { return "" }

// listFlag is one whose values are taken as they stand, and that may be repeated.
func listFlag(name, usage string) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, HideDefault: true, Value: &values{}}
}

// listed returns the values of a listFlag.
func listed(c *cli.Command, name string) []string {
	given, _ := c.Generic(name).(*values)
	if given == nil {
		return nil
	}
	return *given
}

// waived reads a listFlag --waive.
func waived(c *cli.Command) ([]tranca.Item, error) {
	o, err := overrides(c, []valueFlag{{name: "waive", set: addWaiver}})
	return o.Waive, err
}

// overrides reads what the flags say.
func overrides(c *cli.Command, sets ...[]valueFlag) (policy.Overrides, error) {
	var o policy.Overrides
	for _, f := range slices.Concat(sets...) {
		given, ok := c.Generic(f.name).(*values)
		if !ok {
			continue
		}
		for _, text := range *given {
			if err := f.set(&o, text); err != nil {
				return o, &usageError{c.FullName(), "--" + f.name + ": " + plain(err)}
			}
		}
	}
	return o, nil
}

// plain is an error's text without the name of its class in front of each line,
// where the rest says all.
func plain(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		for _, class := range []error{tranca.ErrInvalid, tranca.ErrNotFound} {
			lines[i] = strings.TrimPrefix(lines[i], class.Error()+": ")
		}
	}
	return strings.Join(lines, "\n")
}
