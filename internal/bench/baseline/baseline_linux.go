package baseline

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tranca"
	"tranca/internal/bench"
	"tranca/internal/bench/measure"
	"tranca/internal/interpreter"
)

// The names of the baselines.
const (
	Bare       = "bare"
	Bubblewrap = "bubblewrap"
	Firejail   = "firejail"
	RunscDo    = "runsc-do"
	DockerRun  = "docker-run"
)

// Options say what is there.
type Options struct {
	// Getenv is [os.Getenv].
	Getenv func(string) string
	// Policy is what sandboxes of ours get, as far as others can be asked for
	// the same.
	Policy tranca.Policy
	// Runtimes are those of the container engine, besides its default one.
	Runtimes []string
}

// Python returns the interpreter that is measured, from where sandboxes of the
// host's tree have theirs.
func Python() (string, error) {
	python, err := interpreter.Find("python")
	if err != nil {
		return "", err
	}
	if path := python.HostProgram(); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%w: python3 is at none of %s: install it", tranca.ErrNotFound, strings.Join(python.Programs, ", "))
}

// Loop does a bare start as anybody would.
func Loop(ctx context.Context) error {
	python, err := Python()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, python, "-I", "-c", measure.StartCode).Output()
	if err == nil && string(out) != measure.Answer {
		err = fmt.Errorf("it printed %q", out)
	}
	return err
}

// Subjects lists the baselines, bare first. What isn't installed is listed with
// the reason.
func Subjects(ctx context.Context, o Options) []measure.Subject {
	python, err := Python()
	if err != nil {
		return []measure.Subject{{About: bench.Subject{Name: Bare, Kind: bench.KindBare, Unavailable: err.Error()}}}
	}
	all := []measure.Subject{
		subject(bench.Subject{Name: Bare, Kind: bench.KindBare, Version: version(ctx, python, "--version")},
			command{argv: []string{python, "-I", "-c", codeWord}}),
		bubblewrap(ctx, python), firejail(ctx, python), runscDo(ctx, python),
	}
	return append(all, dockerRuns(ctx, o)...)
}

// missing is a baseline that can't run here.
func missing(about bench.Subject, why string) measure.Subject {
	about.Unavailable = why
	return measure.Subject{About: about}
}

func like(name string, level tranca.Level) bench.Subject {
	return bench.Subject{Name: name, Kind: bench.KindBaseline, Isolation: level.String()}
}

// bubblewrap is as near to the process backend as it has it: all namespaces,
// read-only system folders, fresh proc, dev and places to write.
func bubblewrap(ctx context.Context, python string) measure.Subject {
	about := like(Bubblewrap, tranca.LevelProcess)
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return missing(about, "bwrap is not installed")
	}
	about.Version = version(ctx, path, "--version")
	argv := []string{path, "--unshare-all", "--die-with-parent", "--clearenv", "--ro-bind", "/usr", "/usr"}
	for _, dir := range []string{"/bin", "/lib", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			argv = append(argv, "--symlink", target, dir)
		} else if _, err := os.Stat(dir); err == nil {
			argv = append(argv, "--ro-bind", dir, dir)
		}
	}
	argv = append(argv, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/work", "--chdir", "/work",
		python, "-I", "-c", codeWord)
	return subject(about, command{argv: argv})
}

// firejail has no network, no capability, its own filter, and a home and a
// folder for temporary files that are empty.
func firejail(ctx context.Context, python string) measure.Subject {
	about := like(Firejail, tranca.LevelProcess)
	path, err := exec.LookPath("firejail")
	if err != nil {
		return missing(about, "firejail is not installed")
	}
	about.Version = version(ctx, path, "--version")
	return subject(about, command{argv: []string{
		path, "--quiet", "--noprofile", "--net=none", "--private", "--private-dev", "--private-tmp",
		"--private-cwd=/tmp", "--caps.drop=all", "--nonewprivs", "--noroot", "--seccomp", "--ipc-namespace", "--",
		python, "-I", "-c", codeWord,
	}})
}

// runscDo is gVisor's own command for one program: without a network and in the
// caller's groups, which is the least that it can be asked for. It is runsc
// where that is installed, else tranca's build of it.
func runscDo(ctx context.Context, python string) measure.Subject {
	about := like(RunscDo, tranca.LevelGVisor)
	path := sentry()
	if path == "" {
		return missing(about, "neither runsc nor tranca-sentry is installed")
	}
	about.Version = version(ctx, path, "--version")
	argv := []string{path, "--root", folderWord, "--platform", "systrap", "--network", "none", "--ignore-cgroups"}
	if os.Geteuid() != 0 {
		argv = append(argv, "--rootless")
	}
	return subject(about, command{argv: append(argv, "do", python, "-I", "-c", codeWord), dir: "/tmp"})
}

func sentry() string {
	if path, err := exec.LookPath("runsc"); err == nil {
		return path
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "tranca-sentry")
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside
		}
	}
	if path, err := exec.LookPath("tranca-sentry"); err == nil {
		return path
	}
	return ""
}

// version asks a program for its version, and returns the first line of the
// answer.
func version(ctx context.Context, path string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "unknown: " + err.Error()
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line[:min(len(line), 200)]
}

func random() string { return strings.ToLower(rand.Text())[:16] }
