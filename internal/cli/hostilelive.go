package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"tranca/hostile/report"
	"tranca/internal/terminal"
)

const (
	// livePause is how often the lines on a terminal are drawn anew.
	livePause = 250 * time.Millisecond
	// livePauseLog is how often there is a line where nobody sees the last one go.
	livePauseLog = 5 * time.Second
)

// hostileLive shows on standard error how far a run of the suite is: on a terminal
// a few lines that change, with a line for each column, elsewhere a line now and
// then. What goes wrong is told at once.
type hostileLive struct {
	w        io.Writer
	p        palette
	screen   bool
	width    int
	began    time.Time
	stopOnce sync.Once
	end      chan struct{}
	idle     chan struct{} // closed when nothing is written any more

	mu      sync.Mutex
	done    int
	total   int
	note    string
	running []running
	columns []string
	tallies map[string]map[report.Verdict]int
	told    []string // lines that stay
	drawn   int      // lines that are to be drawn over
}

// running is a cell that is under way.
type running struct{ probe, column string }

// watchHostile begins to show what tell is told. Call stop before anything else is
// written.
func (a *app) watchHostile(quiet bool) *hostileLive {
	l := &hostileLive{
		w: a.Stderr, p: newPalette(a.Stderr, a.Getenv), began: time.Now(), width: 80,
		screen: terminal.Is(a.Stderr) && a.Getenv("TERM") != "dumb",
		end:    make(chan struct{}), idle: make(chan struct{}), tallies: map[string]map[report.Verdict]int{},
	}
	if quiet {
		close(l.idle)
		return l
	}
	pause := livePauseLog
	if l.screen {
		pause = livePause
		l.width = terminal.Width(a.Stderr, l.width)
	}
	go l.show(pause)
	return l
}

func (l *hostileLive) show(pause time.Duration) {
	defer close(l.idle)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-l.end:
			l.erase()
			return
		case <-tick.C:
			l.draw()
		}
	}
}

// stop takes the lines away that were not to stay. Idempotent.
func (l *hostileLive) stop() {
	l.stopOnce.Do(func() { close(l.end) })
	<-l.idle
}

// tell takes what the suite says.
func (l *hostileLive) tell(p report.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done, l.total = max(l.done, p.Done), p.Total
	if p.Note != "" {
		l.note = p.Note
	}
	if p.Probe == "" {
		return
	}
	l.note = ""
	at := running{p.Probe, p.Column}
	if p.Cell == nil {
		l.running = append(l.running, at)
		return
	}
	if i := slices.Index(l.running, at); i >= 0 {
		l.running = slices.Delete(l.running, i, i+1)
	}
	if l.tallies[p.Column] == nil {
		l.tallies[p.Column] = map[report.Verdict]int{}
		l.columns = append(l.columns, p.Column)
	}
	l.tallies[p.Column][p.Cell.Verdict]++
	if p.Cell.Bad() {
		l.told = append(l.told, l.p.bad(fmt.Sprintf("%s in %s: %s", terminal.Clean(p.Probe), terminal.Clean(p.Column), p.Cell.Verdict))+
			": "+terminal.Clean(cut(p.Cell.Why, 300)))
	}
}

// erase says what stays and takes the rest away.
func (l *hostileLive) erase() {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprint(l.w, l.take())
}

// take returns what removes the lines that were drawn and writes those that stay.
func (l *hostileLive) take() string {
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", l.drawn)
	}
	for _, line := range l.told {
		b.WriteString("tranca: " + line + "\n")
	}
	l.told, l.drawn = nil, 0
	return b.String()
}

func (l *hostileLive) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.take()
	if !l.screen {
		fmt.Fprint(l.w, text+"tranca: "+terminal.Clean(l.summary(time.Since(l.began), 200))+"\n")
		return
	}
	lines := append([]string{l.p.bold(terminal.Clean(l.summary(time.Since(l.began), l.width-1)))}, l.table()...)
	l.drawn = len(lines)
	fmt.Fprint(l.w, text+strings.Join(lines, "\n")+"\n")
}

// summary is one line of at most so many characters.
func (l *hostileLive) summary(after time.Duration, most int) string {
	line := fmt.Sprintf("%d of %d, %d%%", l.done, l.total, 100*l.done/max(l.total, 1))
	if 20*l.done >= l.total && l.done < l.total { // before, it would be a guess
		left := time.Duration(float64(l.total-l.done) / float64(l.done) * float64(after))
		line += ", " + span(left) + " left"
	}
	switch n := len(l.running); {
	case l.note != "":
		line += "; " + l.note
	case n > 2 || (n > 0 && !l.screen):
		line += fmt.Sprintf("; now %s in %s", l.running[0].probe, l.running[0].column)
		if n > 1 {
			line += fmt.Sprintf(" and %d more", n-1)
		}
	case n > 0:
		var now []string
		for _, r := range l.running {
			now = append(now, r.probe+" in "+r.column)
		}
		line += "; now " + strings.Join(now, ", ")
	}
	return cut(line, max(most, 20))
}

// table is a line for each column, with what was found so far.
func (l *hostileLive) table() []string {
	wide := 0
	for _, name := range l.columns {
		wide = max(wide, min(len([]rune(terminal.Clean(name))), 24))
	}
	var lines []string
	for _, name := range l.columns {
		line, used := fmt.Sprintf("  %-*s", wide, cut(terminal.Clean(name), 24)), wide+2
		for _, v := range report.Verdicts() {
			n := l.tallies[name][v]
			text := fmt.Sprintf("%d %s", n, v)
			if used += len(text) + 2; n == 0 || used >= l.width {
				used -= len(text) + 2
				continue
			}
			line += "  " + l.p.verdict(v, text)
		}
		lines = append(lines, line)
	}
	return lines
}
