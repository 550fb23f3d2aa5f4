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
	"sync"
	"syscall"
	"time"
)

// settings are the flags of one run.
type settings struct {
	bin, log, name string
	tests          string // which tests, for -test.run
	only, without  *regexp.Regexp
	alone, first   *regexp.Regexp
	timeout        time.Duration
	jobs           int
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
	flags.IntVar(&s.jobs, "jobs", 1, "how many packages at a time")
	patterns(flags, map[string]**regexp.Regexp{
		"only": &s.only, "without": &s.without, "alone": &s.alone, "first": &s.first,
	})
	flags.Parse(args)
	if s.name == "" {
		return s, fmt.Errorf("run: -name is missing")
	}
	if s.jobs < 1 {
		return s, fmt.Errorf("run: -jobs %d: want 1 or more", s.jobs)
	}
	var err error
	if s.bin, err = filepath.Abs(s.bin); err != nil {
		return s, err
	}
	if s.log, err = filepath.Abs(filepath.Join(s.log, s.name)); err != nil {
		return s, err
	}
	return s, os.MkdirAll(s.log, 0o755)
}

// patterns adds the flags that choose packages. The default matches nothing,
// and everything for -only.
func patterns(flags *flag.FlagSet, into map[string]**regexp.Regexp) {
	usage := map[string]string{
		"only":    "only packages that match",
		"without": "no packages that match",
		"alone":   "packages that run with no other beside them, after the rest",
		"first":   "packages to start with: those that take long",
	}
	for name, to := range into {
		*to = regexp.MustCompile(`^$`)
		if name == "only" {
			*to = regexp.MustCompile("")
		}
		flags.Func(name, usage[name], func(text string) (err error) {
			*to, err = regexp.Compile(text)
			return err
		})
	}
}

// run runs the compiled packages, as many at a time as -jobs says. Those that
// look at the whole host, or measure time, are named by -alone.
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
	beside, alone := order(s, suites)
	sum, failed := runAll(s, beside, s.jobs)
	sumAlone, failedAlone := runAll(s, alone, 1)
	sum.add(sumAlone)
	failed = append(failed, failedAlone...)
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

// order splits the wanted packages into those that may run beside each other,
// long ones first, and those that must not.
func order(s settings, suites []suite) (beside, alone []suite) {
	var later []suite
	for _, p := range suites {
		switch {
		case !s.only.MatchString(p.Package) || s.without.MatchString(p.Package):
		case s.alone.MatchString(p.Package):
			alone = append(alone, p)
		case s.first.MatchString(p.Package):
			beside = append(beside, p)
		default:
			later = append(later, p)
		}
	}
	return append(beside, later...), alone
}

// runAll runs packages, so many at a time, and returns those that failed.
func runAll(s settings, suites []suite, jobs int) (sum tally, failed []string) {
	work := make(chan suite)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range jobs {
		wg.Go(func() {
			for p := range work {
				ok, one, report := runOne(s, p)
				mu.Lock()
				fmt.Print(report)
				sum.add(one)
				if !ok {
					failed = append(failed, p.Package)
				}
				mu.Unlock()
			}
		})
	}
	for _, p := range suites {
		work <- p
	}
	close(work)
	wg.Wait()
	return sum, failed
}

// runOne runs one package and returns what there is to print of it.
func runOne(s settings, p suite) (bool, tally, string) {
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
	end := fmt.Sprintf("%s\t%.3fs\t(%.1fs of CPU)\n", p.Package, took, cpu(cmd))
	if err != nil {
		return false, t, fmt.Sprintf("%s%v (whole output: %s/%s.log among the logs)\nFAIL\t%s",
			failure(out.Bytes()), err, s.name, filepath.Base(base), end)
	}
	return true, t, "ok  \t" + end
}

// cpu returns the seconds of CPU that a package and what it waited for took:
// where they are far fewer than its time, it only waits.
func cpu(cmd *exec.Cmd) float64 {
	if cmd.ProcessState == nil {
		return 0
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
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

// failure returns a package's output without what passed.
func failure(out []byte) string {
	var b strings.Builder
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := strings.TrimLeft(sc.Text(), " ")
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- PASS") {
			b.WriteString(sc.Text() + "\n")
		}
	}
	return b.String()
}
