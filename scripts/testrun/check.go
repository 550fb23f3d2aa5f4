package main

import (
	"bufio"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// request is what one test asked of the host over all runs.
type request struct {
	ran     bool            // in some run everything that it asked for was there
	missing map[string]bool // parts that were missing in some run
}

// check fails when a test asked for something in every run and in none was
// given all of it: then nobody has ever run it. Parts named by -absent are
// known to be missing in this kind of run and only reported.
func check(args []string) error {
	flags := flag.NewFlagSet("check", flag.ExitOnError)
	log := flags.String("log", ".cache/testlog", "folder of the require logs")
	absent := flags.String("absent", "", "parts that no run here can provide")
	flags.Parse(args)

	asked := map[string]*request{}
	err := filepath.WalkDir(*log, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".require" {
			return err
		}
		return readRun(path, asked)
	})
	if err != nil {
		return err
	}
	if len(asked) == 0 {
		return fmt.Errorf("check: no test asked for anything: are the logs in %s?", *log)
	}
	known := strings.Split(*absent, ",")
	var never []string
	for _, test := range slices.Sorted(maps.Keys(asked)) {
		r := asked[test]
		if r.ran {
			continue
		}
		parts := slices.Sorted(maps.Keys(r.missing))
		line := fmt.Sprintf("%s (needs %s)", test, strings.Join(parts, ", "))
		if slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(known, p) }) {
			fmt.Println("# not run here:", line)
			continue
		}
		never = append(never, line)
	}
	if len(never) > 0 {
		return fmt.Errorf("%d tests ran in no run; provide their parts:\n\t%s",
			len(never), strings.Join(never, "\n\t"))
	}
	fmt.Printf("# each of the %d tests that ask for a part of the host got it in some run\n", len(asked))
	return nil
}

// readRun adds one package's log of one run.
func readRun(path string, asked map[string]*request) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	pkg := strings.TrimSuffix(filepath.Base(path), ".require")
	complete := map[string]bool{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		fields := strings.Split(sc.Text(), "\t")
		if len(fields) != 3 {
			return fmt.Errorf("%s: malformed line %q", path, sc.Text())
		}
		part, there, test := fields[0], fields[1] == "provided", pkg+" "+fields[2]
		if asked[test] == nil {
			asked[test] = &request{missing: map[string]bool{}}
		}
		if _, seen := complete[test]; !seen {
			complete[test] = true
		}
		if !there {
			complete[test] = false
			asked[test].missing[part] = true
		}
	}
	for test, ok := range complete {
		asked[test].ran = asked[test].ran || ok
	}
	return sc.Err()
}
