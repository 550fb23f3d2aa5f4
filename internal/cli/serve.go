package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/api"
	"tranca/internal/policy"
)

// ServeSetup is what a server is made from. A bound of 0 is the server's own.
type ServeSetup struct {
	// Socket is where it listens; empty is the user's default.
	Socket string
	// Listen is a further HOST:PORT, for those who have the key in KeyFile.
	Listen, KeyFile string
	// Profiles are the operator's policies, the default one first.
	Profiles []Profile

	MaxSandboxes            int
	MaxMemory, MaxMilliCPUs int64
	MaxTTL, DefaultTTL      time.Duration
	// Ready is how many sandboxes are kept booted ahead.
	Ready int
	// Grace is how long calls may go on when the server is told to stop.
	Grace time.Duration

	// Log takes lines of JSON of at least Level: "debug", "info", "warn" or
	// "error". LogCode lets code and arguments into it.
	Log     io.Writer
	Level   string
	LogCode bool
	Version string
	// Listening is told, once, where the server is reached.
	Listening func(places []string)
}

// Profile is a policy by a name.
type Profile struct {
	Name   string
	Policy tranca.Policy
}

const serveHelp = `Answers HTTP at a unix socket that only you and root can connect to, so that
sandboxes outlive a command and programs can use them; docs/API.md describes
the calls. A request names one of the profiles given here and may narrow it; it
never carries a policy. By --listen it answers at TCP too, there only to those
who have the key.

SIGTERM or SIGINT stops it: calls that are under way may end for the time that
--grace gives, then all sandboxes are destroyed. A second signal ends it at
once.

Examples:
  tranca serve
  tranca serve --policy agent.yaml --profile strict=strict.yaml
  tranca serve --listen 127.0.0.1:7070 --key-file /etc/tranca/key --max-sandboxes 32

`

func (a *app) serveCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "socket", Usage: "listen at this `PATH`", HideDefault: true},
		&cli.StringFlag{Name: "listen", Usage: "also at this `HOST:PORT`, for those who have the key", HideDefault: true},
		&cli.StringFlag{Name: "key-file", Usage: "`FILE` with the key, of at least 32 characters, that only you can read", HideDefault: true},
		&cli.StringFlag{Name: "policy", Usage: "read the policy of the profile default from `FILE`", HideDefault: true},
		&cli.GenericFlag{Name: "profile", Usage: "`NAME=FILE`: a further policy that requests may name; may be repeated", HideDefault: true, Value: &values{}},
		&cli.StringFlag{Name: "grace", Usage: "let calls go on for this `TIME` after a signal", Value: "10s"},
		&cli.IntFlag{Name: "ready", Usage: "keep this `NUMBER` of sandboxes booted ahead", HideDefault: true},
		&cli.StringFlag{Name: "log-level", Usage: "debug, info, warn or error: what to log at least, as JSON to standard error", Value: "info"},
		&cli.BoolFlag{Name: "log-code", Usage: "let code, commands and arguments into the log"},
	}
	return &cli.Command{
		Name:        "serve",
		Usage:       "answer requests of programs and of other commands",
		Description: serveHelp + statusHelp("0      it was told to stop, and nothing is left"),
		Flags:       append(flags, valueFlags("Bounds over all sandboxes", boundNames())...),
		Action:      a.serve,
	}
}

// bound is a flag of serve for a bound.
type bound struct {
	name, usage string
	set         func(s *ServeSetup, text string) error
}

func bounds() []bound {
	return []bound{
		{"max-sandboxes", "at most this `NUMBER` at once; more wait", bounded(parseCount, func(s *ServeSetup, n int64) { s.MaxSandboxes = int(min(n, 1<<20)) })},
		{"max-memory", "all together may use this `SIZE`", bounded(policy.ParseSize, func(s *ServeSetup, n int64) { s.MaxMemory = n })},
		{"max-cpus", "all together may use this `NUMBER` of CPUs", bounded(policy.ParseCPUs, func(s *ServeSetup, n int64) { s.MaxMilliCPUs = n })},
		{"max-ttl", "none lives longer than this `TIME` unless it is kept alive (24h)", bounded(policy.ParseDuration, func(s *ServeSetup, d time.Duration) { s.MaxTTL = d })},
		{"default-ttl", "one for which no time was asked lives for this `TIME` (10m)", bounded(policy.ParseDuration, func(s *ServeSetup, d time.Duration) { s.DefaultTTL = d })},
	}
}

func bounded[T any](parse func(string) (T, error), set func(*ServeSetup, T)) func(*ServeSetup, string) error {
	return func(s *ServeSetup, text string) error {
		v, err := parse(text)
		if err == nil {
			set(s, v)
		}
		return err
	}
}

// boundNames are the bounds as flags of the parser.
func boundNames() []valueFlag {
	var all []valueFlag
	for _, b := range bounds() {
		all = append(all, valueFlag{name: b.name, usage: b.usage})
	}
	return all
}

func (a *app) serve(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	setup, err := a.settleServe(c)
	if err != nil {
		return err
	}
	return a.Serve(ctx, setup)
}

// settleServe reads the flags and the policies.
func (a *app) settleServe(c *cli.Command) (ServeSetup, error) {
	s := ServeSetup{
		Socket: c.String("socket"), Listen: c.String("listen"), KeyFile: c.String("key-file"),
		Ready: c.Int("ready"), Log: a.Stderr, Level: c.String("log-level"), LogCode: c.Bool("log-code"),
		Version: Version, Listening: a.listening,
	}
	wrong := func(format string, args ...any) (ServeSetup, error) {
		return s, &usageError{c.FullName(), fmt.Sprintf(format, args...)}
	}
	switch {
	case (s.Listen == "") != (s.KeyFile == ""):
		return wrong("--listen and --key-file go together: whoever comes by TCP needs a key")
	case s.Ready < 0 || s.Ready > 64:
		return wrong("--ready: %d is not 0 to 64", s.Ready)
	}
	var err error
	if s.Grace, err = policy.ParseDuration(c.String("grace")); err != nil {
		return wrong("--grace: %s", plain(err))
	}
	for _, b := range bounds() {
		given, _ := c.Generic(b.name).(*values)
		for _, text := range *given {
			if err := b.set(&s, text); err != nil {
				return wrong("--%s: %s", b.name, plain(err))
			}
		}
	}
	p, found, err := a.FindPolicy(c.String("policy"))
	if err != nil {
		return s, err
	}
	if !found {
		p = policy.Default()
	}
	s.Profiles = []Profile{{"default", p}}
	named, _ := c.Generic("profile").(*values)
	for _, text := range *named {
		name, file, ok := strings.Cut(text, "=")
		if !ok || name == "" || file == "" {
			return wrong("--profile: %q is not NAME=FILE", text)
		}
		p, _, err := a.FindPolicy(file)
		if err != nil {
			return s, err
		}
		s.Profiles = append(s.Profiles, Profile{name, p})
	}
	return s, nil
}

// listening says where the server is reached, and how.
func (a *app) listening(places []string) {
	how := "tranca create"
	if places[0] != "unix://"+api.DefaultSocket() {
		how = client.EnvServer + "=" + places[0] + " " + how
	}
	fmt.Fprintf(a.Stdout, "listening at %s; use it: %s\n", strings.Join(places, " and "), how)
}
