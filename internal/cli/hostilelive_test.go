package cli

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"tranca/hostile/report"
)

func liveTo(w *bytes.Buffer, screen bool, width int) *hostileLive {
	return &hostileLive{
		w: w, p: palette{unicode: true}, screen: screen, width: width, began: time.Now().Add(-10 * time.Second),
		tallies: map[string]map[report.Verdict]int{},
	}
}

func begun(probe, column string, done int) report.Progress {
	return report.Progress{Done: done, Total: 4, Probe: probe, Column: column}
}

func ended(probe, column string, done int, v report.Verdict, promised bool) report.Progress {
	return report.Progress{Done: done, Total: 4, Probe: probe, Column: column, Cell: &report.Cell{
		Probe: probe, Column: column, Verdict: v, Promised: promised, Why: "it was seen\x1b[2J",
	}}
}

// On a terminal the lines are drawn over; what goes wrong stays.
func TestLiveOnATerminal(t *testing.T) {
	var out bytes.Buffer
	l := liveTo(&out, true, 70)
	l.tell(report.Progress{Total: 4, Note: "backend gvisor is tried"})
	l.draw()
	if got, want := out.String(), "0 of 4, 0%; backend gvisor is tried\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	l.tell(begun("fs-01", "process", 0))
	l.tell(begun("fs-02\x1b[2J", "process", 0))
	l.tell(ended("fs-01", "process", 1, report.Contained, true))
	l.draw()
	want := "\r\x1b[1A\x1b[J" + "1 of 4, 25%, 30s left; now fs-02^[[2J in process\n  process  1 contained\n"
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	l.tell(ended("fs-02\x1b[2J", "process", 2, report.Escaped, true))
	l.draw()
	if got, want := out.String(), "\r\x1b[2A\x1b[Jtranca: fs-02^[[2J in process: escaped: it was seen^[[2J\n2 of 4, 50%"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q first", got, want)
	}
	out.Reset()
	l.erase()
	if got, want := out.String(), "\r\x1b[2A\x1b[J"; got != want {
		t.Errorf("at the end %q, want %q", got, want)
	}
}

// A line that is wider than the terminal would be drawn over in part.
func TestLiveFitsTheTerminal(t *testing.T) {
	for _, width := range []int{30, 80, 200} {
		var out bytes.Buffer
		l := liveTo(&out, true, width)
		for i := range 3 {
			column := strings.Repeat("column ", 8) + fmt.Sprint(i)
			l.tell(begun(strings.Repeat("probe-ä", 9), column, 0))
			for _, v := range report.Verdicts() {
				l.tell(ended("p", column, 1, v, false))
			}
		}
		l.draw()
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n >= width {
				t.Errorf("a line of %d characters on a terminal of %d: %q", n, width, line)
			}
		}
	}
}

// Elsewhere there is a line now and then, and nothing that moves a cursor.
func TestLiveInALog(t *testing.T) {
	var out bytes.Buffer
	l := liveTo(&out, false, 80)
	l.tell(begun("fs-01", "process", 0))
	l.tell(begun("fs-02", "gvisor", 0))
	l.tell(ended("fs-03", "process", 1, report.Failed, true))
	l.draw()
	want := "tranca: fs-03 in process: failed: it was seen^[[2J\ntranca: 1 of 4, 25%, 30s left; now fs-01 in process and 1 more\n"
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The suite tells from many goroutines, while the lines are drawn and taken away.
func TestLiveFromManySides(t *testing.T) {
	out := &locked{}
	a := &app{World: World{Stderr: out, Getenv: func(string) string { return "" }}}
	l := a.watchHostile(false)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				probe := fmt.Sprint(i, "-", k)
				l.tell(begun(probe, "process", k))
				l.tell(ended(probe, "process", k+1, report.Escaped, true))
				l.draw()
			}
		})
	}
	all.Wait()
	l.stop()
	l.stop()
	if n := strings.Count(out.b.String(), "escaped: it was seen"); n != 400 {
		t.Errorf("of 400 cells that are wrong %d were told", n)
	}
	if len(l.running) != 0 {
		t.Errorf("still running: %v", l.running)
	}
}

// locked is a buffer for several writers.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func TestLiveIsQuiet(t *testing.T) {
	out := &locked{}
	a := &app{World: World{Stderr: out, Getenv: func(string) string { return "" }}}
	l := a.watchHostile(true)
	l.tell(ended("fs-01", "process", 1, report.Escaped, true))
	l.stop()
	if out.b.Len() > 0 {
		t.Errorf("it said %q", out.b.String())
	}
}
