package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// suite is one package's compiled tests. Its fields are what index.json holds.
type suite struct {
	Package string // import path
	Dir     string // the package's folder, relative to the module's root
	Binary  string // file name within the folder of binaries
}

func build(args []string) error {
	flags := flag.NewFlagSet("build", flag.ExitOnError)
	out := flags.String("o", ".cache/testbin", "folder for the binaries")
	flags.Parse(args)
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	suites, err := find(patterns)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(*out); err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	if err := compileAll(suites, *out); err != nil {
		return err
	}
	index, err := json.MarshalIndent(suites, "", "\t")
	if err != nil {
		return err
	}
	fmt.Printf("testrun: %d packages with tests compiled\n", len(suites))
	return os.WriteFile(filepath.Join(*out, "index.json"), index, 0o644)
}

// find lists the packages that have tests.
func find(patterns []string) ([]suite, error) {
	const format = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"
	cmd := exec.Command("go", append([]string{"list", "-f", format}, patterns...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var suites []suite
	for line := range strings.Lines(string(text)) {
		path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		rel, err := filepath.Rel(cwd, dir)
		if err != nil {
			return nil, err
		}
		suites = append(suites, suite{path, rel, strings.ReplaceAll(path, "/", "_") + ".test"})
	}
	if len(suites) == 0 {
		return nil, fmt.Errorf("no package in %v has tests", patterns)
	}
	return suites, nil
}

func compileAll(suites []suite, out string) error {
	work := make(chan suite)
	errs := make([]error, 0)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for s := range work {
				if err := compile(s, filepath.Join(out, s.Binary)); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, s := range suites {
		work <- s
	}
	close(work)
	wg.Wait()
	return errors.Join(errs...)
}

func compile(s suite, to string) error {
	text, err := exec.Command("go", "test", "-c", "-o", to, s.Package).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s [build failed]\n%s", s.Package, text)
	}
	return nil
}
