package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// settings are the flags of one run.
type settings struct {
	bin, log, name string
	tests          string // which tests, for -test.run
	only, without  *regexp.Regexp
	timeout        time.Duration
	each           bool // tell the end of each test as it comes
}

func parseRun(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	flags.StringVar(&s.bin, "bin", ".cache/testbin", "folder of the binaries")
	flags.StringVar(&s.log, "log", ".cache/testlog", "folder for output and require logs")
	flags.StringVar(&s.name, "name", "", "what to call the run")
	flags.DurationVar(&s.timeout, "timeout", 15*time.Minute, "for one package")
	flags.BoolVar(&s.each, "each", false, "print a line for each test as it ends")
	flags.StringVar(&s.tests, "run", "", "only tests that match")
	only := flags.String("only", "", "only packages that match")
	without := flags.String("without", "^$", "no packages that match")
	flags.Parse(args)
	if s.name == "" {
		return s, fmt.Errorf("run: -name is missing")
	}
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return s, err
	}
	if s.without, err = regexp.Compile(*without); err != nil {
		return s, err
	}
	if s.bin, err = filepath.Abs(s.bin); err != nil {
		return s, err
	}
	if s.log, err = filepath.Abs(filepath.Join(s.log, s.name)); err != nil {
		return s, err
	}
	return s, os.MkdirAll(s.log, 0o755)
}

// run runs the compiled packages one after the other: several of them measure
// what is left on the host, which another one's sandboxes would disturb.
func run(args []string) error {
	s, err := parseRun(args)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(s.bin, "index.json"))
	if err != nil {
		return err
	}
	var suites []suite
	if err := json.Unmarshal(text, &suites); err != nil {
		return err
	}
	fmt.Printf("# run %s: user id %d, provides %q\n", s.name, os.Geteuid(), os.Getenv("TRANCA_PROVIDES"))
	var sum tally
	var failed []string
	for _, p := range suites {
		if !s.only.MatchString(p.Package) || s.without.MatchString(p.Package) {
			continue
		}
		ok, one := runOne(s, p)
		sum.add(one)
		if !ok {
			failed = append(failed, p.Package)
		}
	}
	fmt.Printf("# run %s: %d passed, %d failed, %d skipped\n", s.name, sum.passed, sum.failed, sum.skipped)
	if len(failed) > 0 {
		fmt.Println("FAIL")
		return fmt.Errorf("run %s: failed: %s", s.name, strings.Join(failed, " "))
	}
	if sum.passed == 0 {
		return fmt.Errorf("run %s: no test passed: it proves nothing", s.name)
	}
	return nil
}

func runOne(s settings, p suite) (bool, tally) {
	base := filepath.Join(s.log, strings.TrimSuffix(p.Binary, ".test"))
	cmd := exec.Command(filepath.Join(s.bin, p.Binary),
		"-test.v", "-test.paniconexit0", "-test.run="+s.tests, "-test.timeout="+s.timeout.String())
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "TRANCA_REQUIRE_LOG="+base+".require")
	// A group of its own, so that an overdue package goes with its children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	var sink io.Writer = &out
	if s.each {
		sink = io.MultiWriter(&out, &ends{})
	}
	cmd.Stdout, cmd.Stderr = sink, sink
	cmd.WaitDelay = 5 * time.Second
	start := time.Now()
	err := cmd.Start()
	if err == nil {
		overdue := time.AfterFunc(s.timeout+30*time.Second, func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		})
		err = cmd.Wait()
		overdue.Stop()
	}
	took := time.Since(start).Seconds()
	if werr := os.WriteFile(base+".log", out.Bytes(), 0o644); werr != nil && err == nil {
		err = werr
	}
	t := count(out.Bytes())
	if err != nil {
		printFailure(out.Bytes())
		fmt.Printf("%v (whole output: %s/%s.log among the logs)\nFAIL\t%s\t%.3fs\n",
			err, s.name, filepath.Base(base), p.Package, took)
		return false, t
	}
	fmt.Printf("ok  \t%s\t%.3fs\n", p.Package, took)
	return true, t
}

// ends prints the lines that tell the end of a test or of one right below it.
type ends struct{ rest []byte }

func (e *ends) Write(p []byte) (int, error) {
	e.rest = append(e.rest, p...)
	for {
		line, rest, found := bytes.Cut(e.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		e.rest = rest
		if bytes.HasPrefix(bytes.TrimPrefix(line, []byte("    ")), []byte("--- ")) {
			fmt.Println(string(line))
		}
	}
}

// tally counts tests, subtests included.
type tally struct{ passed, failed, skipped int }

func (t *tally) add(o tally) {
	t.passed += o.passed
	t.failed += o.failed
	t.skipped += o.skipped
}

func count(out []byte) tally {
	var t tally
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		switch line := strings.TrimLeft(sc.Text(), " "); {
		case strings.HasPrefix(line, "--- PASS"):
			t.passed++
		case strings.HasPrefix(line, "--- FAIL"):
			t.failed++
		case strings.HasPrefix(line, "--- SKIP"):
			t.skipped++
		}
	}
	return t
}

// printFailure prints a package's output without what passed.
func printFailure(out []byte) {
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := strings.TrimLeft(sc.Text(), " ")
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- PASS") {
			fmt.Println(sc.Text())
		}
	}
}
