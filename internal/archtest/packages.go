package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Module is this module's path.
const Module = "tranca"

// Package is what `go list -json` says of one package.
type Package struct {
	ImportPath   string
	Name         string
	Dir          string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
	Module       *struct {
		Path, Version string
		Main          bool
	}
}

// Ours reports whether the package belongs to this module.
func (p Package) Ours() bool { return within(p.ImportPath, Module) }

// List runs `go list -json` in dir with the given arguments, for linux and the
// architecture named, as the release is built.
func List(dir, goarch string, args ...string) ([]Package, error) {
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+goarch)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return decode(strings.NewReader(string(out)))
}

func decode(r io.Reader) ([]Package, error) {
	var all []Package
	for dec := json.NewDecoder(r); ; {
		var p Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// within reports whether path is root or lies below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
