package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/policy"
)

// valueFlag is a flag whose value becomes a part of [policy.Overrides].
type valueFlag struct {
	name, value, usage string
	set                func(o *policy.Overrides, text string) error
}

// limitFlags are the flags for limits, in the order of the help.
func limitFlags() []valueFlag {
	return []valueFlag{
		{"timeout", "30s", "wall-clock time of the run", into(policy.ParseDuration, func(o *policy.Overrides) **time.Duration { return &o.Wall })},
		{"cpu-time", "30s", "CPU time of all processes together", into(policy.ParseDuration, func(o *policy.Overrides) **time.Duration { return &o.CPUTime })},
		{"cpus", "0.5", "share of CPUs", into(policy.ParseCPUs, func(o *policy.Overrides) **int64 { return &o.MilliCPUs })},
		{"memory", "256MiB", "memory of all processes together", into(policy.ParseSize, func(o *policy.Overrides) **int64 { return &o.Memory })},
		{"pids", "64", "processes and threads at one moment", into(parseCount, func(o *policy.Overrides) **int64 { return &o.Processes })},
		{"open-files", "256", "open files of each process", into(parseCount, func(o *policy.Overrides) **int64 { return &o.OpenFiles })},
		{"file-size", "64MiB", "size of any one file", into(policy.ParseSize, func(o *policy.Overrides) **int64 { return &o.FileSize })},
		{"disk", "64MiB", "space of /work, /tmp and /dev/shm together", into(policy.ParseSize, func(o *policy.Overrides) **int64 { return &o.DiskSize })},
		{"inodes", "16384", "files and folders in that space", into(parseCount, func(o *policy.Overrides) **int64 { return &o.DiskInodes })},
		{"output-limit", "1MiB", "bytes kept of each of stdout and stderr", into(policy.ParseSize, func(o *policy.Overrides) **int64 { return &o.Output })},
	}
}

// placeFlags are the flags that choose where code runs.
func placeFlags() []valueFlag {
	return []valueFlag{
		{"backend", "NAME", "use this backend and no other", setBackend},
		{"isolation", "LEVEL", "the lowest isolation level that will do", setFloor},
	}
}

// sightFlags are the flags that say what code sees.
func sightFlags() []valueFlag {
	return []valueFlag{
		{"mount", "SRC:DST[:ro|rw]", "show a file or folder of this host, read-only unless rw (repeatable)", addMount},
		{"env", "NAME=VALUE", "set a variable; nothing is inherited (repeatable)", addEnv},
		{"workdir", "DIR", "where the code starts, inside", setWorkdir},
		{"waive", "ITEM", "do without the enforcement of this item (repeatable)", addWaiver},
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

func setBackend(o *policy.Overrides, text string) error {
	if text == "" {
		return fmt.Errorf("%w: the name is empty", tranca.ErrInvalid)
	}
	o.Backend = &text
	return nil
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

// valueFlags makes the parser's flags. All take their value as it stands.
func valueFlags(category string, all []valueFlag) []cli.Flag {
	flags := make([]cli.Flag, len(all))
	for i, f := range all {
		flags[i] = &cli.StringSliceFlag{
			Name: f.name, Category: category, HideDefault: true,
			Usage: f.usage + " `" + f.value + "`",
		}
	}
	return flags
}

// overrides reads what the flags say. Of a flag that is not repeatable, the
// last one counts.
func overrides(c *cli.Command, sets ...[]valueFlag) (policy.Overrides, error) {
	var o policy.Overrides
	for _, set := range sets {
		for _, f := range set {
			for _, text := range c.StringSlice(f.name) {
				if err := f.set(&o, text); err != nil {
					return o, &usageError{c.FullName(), "--" + f.name + ": " + plain(err)}
				}
			}
		}
	}
	return o, nil
}

// plain is an error's text without the name of its class in front.
func plain(err error) string {
	return strings.TrimPrefix(err.Error(), tranca.ErrInvalid.Error()+": ")
}
