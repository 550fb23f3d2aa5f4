package cli

import (
	"fmt"
	"io"
	"os"

	"tranca"
	"tranca/internal/bench"
	"tranca/internal/statefile"
)

// earlier reads the result that a flag names; nil for none.
func earlier[T any](flag, path string, read func(io.Reader) (*T, error)) (*T, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: --%s: %w", tranca.ErrInvalid, flag, err)
	}
	defer f.Close()
	r, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, path, err)
	}
	return r, nil
}

// keepBench keeps a whole result where `tranca advise` looks for one. A quick one
// doesn't take the place of a full one.
func (a *app) keepBench(res *bench.Result) {
	if res.Partial || len(res.Only) > 0 {
		return
	}
	path, err := statefile.Path(a.Getenv, statefile.Bench)
	if err != nil {
		return // a user without a home has nowhere to keep it
	}
	if res.Quick && fullThere(path) {
		return
	}
	a.keepState(path, res.Write)
}

func fullThere(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	old, err := bench.Read(f)
	return err == nil && !old.Quick
}
