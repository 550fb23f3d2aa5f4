package engine

import (
	"fmt"
	"io"
	"strings"

	"tranca"
	"tranca/internal/interpreter"
)

// Bounds of one request. The kernel has bounds of its own; these are below
// them, so that a request fails here with words instead of there without.
const (
	maxArgs     = 4096
	maxArg      = 128<<10 - 1 // bytes of one argument, without its NUL
	maxArgBytes = 1 << 20     // bytes of all arguments
)

// job is a request that was found well-formed.
type job struct {
	// tries are the commands to try in order: an interpreter may stand in one
	// of several places. Only a program that isn't found leads to the next.
	tries          func(workdir string) []attempt
	language       string
	stdout, stderr io.Writer
}

// attempt is one command with its own input, which holds the code where the
// language takes it from there.
type attempt struct {
	args  []string
	stdin io.Reader
}

// newJob checks a request. The error wraps [tranca.ErrInvalid].
func newJob(req tranca.Request) (job, error) {
	j := job{stdout: req.Stdout, stderr: req.Stderr}
	if err := checkArgs("argument", req.Args); err != nil {
		return job{}, err
	}
	if len(req.Command) > 0 {
		if req.Code != "" {
			return job{}, fmt.Errorf("%w: the request has both code and a command: give one", tranca.ErrInvalid)
		}
		return commandJob(j, req)
	}
	lang, err := interpreter.Find(req.Language)
	if err != nil {
		return job{}, err
	}
	if err := lang.Check(req.Code); err != nil {
		return job{}, err
	}
	j.language = lang.Name
	j.tries = func(workdir string) []attempt {
		all := make([]attempt, 0, len(lang.Programs))
		for _, program := range lang.Programs {
			args, stdin := lang.Command(program, interpreter.Source{
				Code: req.Code, Args: req.Args, Stdin: req.Stdin, Workdir: workdir,
			})
			all = append(all, attempt{args: args, stdin: stdin})
		}
		return all
	}
	return j, nil
}

func commandJob(j job, req tranca.Request) (job, error) {
	if req.Command[0] == "" {
		return job{}, fmt.Errorf("%w: the command's name is empty", tranca.ErrInvalid)
	}
	args := append(req.Command[:len(req.Command):len(req.Command)], req.Args...)
	if err := checkArgs("command", args); err != nil {
		return job{}, err
	}
	j.tries = func(string) []attempt { return []attempt{{args: args, stdin: req.Stdin}} }
	return j, nil
}

// checkArgs refuses what no program can be started with.
func checkArgs(what string, args []string) error {
	if len(args) > maxArgs {
		return fmt.Errorf("%w: %d arguments: at most %d can be given; use standard input", tranca.ErrInvalid, len(args), maxArgs)
	}
	total := 0
	for i, a := range args {
		if at := strings.IndexByte(a, 0); at >= 0 {
			return fmt.Errorf("%w: %s %d has a NUL byte at %d, and no program can be given one", tranca.ErrInvalid, what, i+1, at)
		}
		if len(a) > maxArg {
			return fmt.Errorf("%w: %s %d has %d bytes: one can have at most %d; use standard input", tranca.ErrInvalid, what, i+1, len(a), maxArg)
		}
		total += len(a) + 1
	}
	if total > maxArgBytes {
		return fmt.Errorf("%w: the arguments have %d bytes together: at most %d can be given; use standard input", tranca.ErrInvalid, total, maxArgBytes)
	}
	return nil
}
