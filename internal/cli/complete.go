package cli

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/terminal"
)

// completePatience is how long a person who pressed a key waits for the server.
const completePatience = 300 * time.Millisecond

// completion is a question of a shell, and its answer.
type completion struct {
	a   *app
	cmd *cli.Command
	// before are the arguments that stand before the word, without flags.
	before []string
	// word is to be completed.
	word string
	// value is the flag whose value the word is, or "".
	value string
	// dashed says that -- stands before the word.
	dashed bool
	server string

	fits           []string
	files, nospace bool
}

// newCompletion reads the words as the parser would.
func newCompletion(a *app, root *cli.Command, words []string) *completion {
	q := &completion{a: a, cmd: root}
	if len(words) == 0 {
		return q
	}
	q.word = words[len(words)-1]
	for _, w := range words[:len(words)-1] {
		q.read(w)
	}
	return q
}

func (q *completion) read(w string) {
	switch {
	case q.value != "":
		if q.value == "server" {
			q.server = w
		}
		q.value = ""
	case q.dashed:
		q.before = append(q.before, w)
	case w == "--":
		q.dashed = true
	case len(w) > 1 && w[0] == '-':
		name, value, given := strings.Cut(strings.TrimLeft(w, "-"), "=")
		f := findFlag(q.cmd, name)
		switch {
		case f == nil || !takesValue(f):
		case !given:
			q.value = f.Names()[0]
		case name == "server":
			q.server = value
		}
	default:
		if sub := q.cmd.Command(w); sub != nil && len(q.before) == 0 {
			q.cmd = sub
			return
		}
		q.before = append(q.before, w)
	}
}

func findFlag(c *cli.Command, name string) cli.Flag {
	for _, f := range c.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// answer finds what fits.
func (q *completion) answer(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, completePatience)
	defer cancel()
	switch {
	case q.value != "":
		q.values(ctx)
	case !q.dashed && strings.HasPrefix(q.word, "-"):
		q.flags()
	case len(q.cmd.Commands) > 0:
		q.commands()
	default:
		q.arguments(ctx)
	}
}

// fit adds what may be meant. It goes into a command line as it stands, so what
// a shell would take for more than a word is left out: names may come from a
// sandbox.
func (q *completion) fit(word, about string) {
	if !strings.HasPrefix(word, q.word) || !plainWord(word) {
		return
	}
	q.fits = append(q.fits, word+"\t"+terminal.Clean(cut(about, 70)))
}

// lines is the answer as it is printed.
func (q *completion) lines() []string {
	lines := q.fits
	if q.nospace && len(q.fits) > 0 {
		lines = append(lines, ":nospace")
	}
	if q.files {
		lines = append(lines, ":files")
	}
	return lines
}

func (q *completion) commands() {
	for _, sub := range q.cmd.Commands {
		if !sub.Hidden {
			q.fit(sub.Name, sub.Usage)
		}
	}
}

func (q *completion) flags() {
	for _, f := range q.cmd.Flags {
		usage := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			usage = strings.ReplaceAll(d.GetUsage(), "`", "")
		}
		q.fit(dashed(f.Names()[0]), usage)
	}
	if findFlag(q.cmd, "help") == nil {
		q.fit("--help", "show help") // the parser has it in the commands that it comes by
	}
}

// values completes the value of a flag.
func (q *completion) values(ctx context.Context) {
	switch q.value {
	case "attach":
		q.processes(ctx)
	case "signal":
		for _, names := range []map[tranca.Signal]string{signalNames, furtherSignals} {
			for _, name := range names {
				q.fit(strings.TrimPrefix(name, "SIG"), "")
			}
		}
		slices.Sort(q.fits)
	case "profile":
		if q.cmd.Name == "serve" {
			q.files = true
			return
		}
		q.ask(func(s *client.Client) {
			info, err := s.Info(ctx)
			if err != nil {
				return
			}
			for _, p := range info.Profiles {
				q.fit(p.Name, "")
			}
		})
	case "backend":
		for _, level := range tranca.Levels() {
			if level != tranca.LevelMicroVM { // there is none yet
				q.fit(level.String(), "")
			}
		}
	case "waive":
		for _, item := range tranca.Waivable() {
			q.fit(string(item), "")
		}
	case "only":
		if q.cmd.Name == "hostile" {
			q.probes()
		}
	case "server", "socket", "policy", "key-file", "mount", "compare", "html", "probes":
		q.files = true
	}
}

// probes completes the id of a probe of this build.
func (q *completion) probes() {
	if q.a.HostileProbes == nil {
		return
	}
	all, _ := q.a.HostileProbes("")
	for _, p := range all {
		q.fit(p.ID, p.Try)
	}
}

// arguments completes what is no flag.
func (q *completion) arguments(ctx context.Context) {
	n := len(q.before)
	switch name := q.cmd.Name; {
	case n == 0 && (name == "diff" || name == "apply"):
		q.changes(ctx)
	case name == "rm", n == 0 && slices.Contains([]string{"keep", "exec", "shell", "ps", "logs", "kill", "port"}, name):
		q.sandboxes(ctx, "")
	case n == 1 && (name == "logs" || name == "kill"):
		q.processes(ctx)
	case name == "cp" && strings.Contains(q.word, ":"):
		q.paths(ctx)
	case name == "cp":
		q.files, q.nospace = true, true
		q.sandboxes(ctx, ":")
	case name == "run", q.cmd.Name == "check", q.cmd.Name == "explain":
		q.files = true
	}
}

// ask asks the server something, or nothing where there is none.
func (q *completion) ask(question func(*client.Client)) {
	var opts []client.Option
	if q.server != "" {
		opts = append(opts, client.WithServer(q.server, q.a.Getenv(client.EnvKey)))
	}
	s, err := client.New(opts...)
	if err != nil {
		return
	}
	defer s.Close()
	question(s)
}

func (q *completion) sandboxes(ctx context.Context, suffix string) {
	q.ask(func(s *client.Client) {
		all, err := s.List(ctx, client.ListOptions{})
		if err != nil {
			return
		}
		for _, info := range all {
			if !slices.Contains(q.before, string(info.ID)) {
				q.fit(string(info.ID)+suffix, strings.TrimSpace(info.Profile+" "+pairText(info.Metadata)))
			}
		}
	})
}

// changes completes the id of changes that are kept.
func (q *completion) changes(ctx context.Context) {
	_ = q.a.atChanges(ctx, func(ctx context.Context, kept Changes) error {
		all, err := kept.List(ctx)
		for _, info := range all {
			q.fit(string(info.ID), fmt.Sprintf("%d changes in %s", info.Changes, info.Mounts[0].Source))
		}
		return err
	})
}

func (q *completion) processes(ctx context.Context) {
	if len(q.before) == 0 {
		return
	}
	q.ask(func(s *client.Client) {
		box, err := s.Sandbox(ctx, tranca.ID(q.before[0]))
		if err != nil {
			return
		}
		all, err := box.Processes(ctx, "")
		if err != nil {
			return
		}
		for _, p := range all {
			if p.Exit == nil || q.cmd.Name == "logs" {
				q.fit(string(p.ID), strings.TrimSpace(p.Tag+" "+commandText(p.Args)))
			}
		}
	})
}

// paths completes the path of a sandbox.
func (q *completion) paths(ctx context.Context) {
	id, typed, _ := strings.Cut(q.word, ":")
	folder := typed[:strings.LastIndexByte(typed, '/')+1]
	q.nospace = true
	q.ask(func(s *client.Client) {
		box, err := s.Sandbox(ctx, tranca.ID(id))
		if err != nil {
			return
		}
		all, err := box.Files().List(ctx, path.Clean(parsePlace(id+":"+folder).path), 1)
		if err != nil {
			return
		}
		for _, f := range all {
			end := ""
			if f.Type == tranca.FileDirectory {
				end = "/"
			}
			q.fit(id+":"+folder+f.Name+end, "")
		}
	})
}
