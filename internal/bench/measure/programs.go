package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tranca/internal/bench"
)

// The program of a start, and its only right answer.
const (
	StartCode = "print(6*7)"
	Answer    = "42\n"
)

// mark is what a program writes where a part of it begins or ends. Time is
// taken by the clock outside, when the mark arrives: a clock inside is the
// sandbox's.
const mark = '.'

// head begins every program with marks. A sandbox may be throttled for what its
// start has used, so a part waits a little before it begins.
const head = `import os, time
def mark(): os.write(1, b'.')
def begin():
    time.sleep(0.03)
    mark()
`

// load is one part.
type load struct {
	name bench.MeasureName
	// times is how often it does what it does: 50 to 150 ms long, without a
	// sandbox, on a processor of today.
	times int
	// body has %d for that.
	body string
}

func loads() []load {
	return []load{
		{bench.Compute, 400_000, `
    x = 1
    for i in range(%d):
        x = (x * 1103515245 + i) & 0x7fffffff
`},
		{bench.Syscalls, 240_000, `
    call = os.getppid
    for i in range(%d):
        call()
`},
		{bench.Forks, 48, `
    for i in range(%d):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        if os.waitpid(pid, 0)[1] != 0:
            raise SystemExit('a child failed')
`},
		{bench.Files, 700, `
    data = b'x' * 4096
    for i in range(%d):
        with open('bench-a', 'wb') as f:
            f.write(data)
        with open('bench-a', 'rb') as f:
            if f.read() != data:
                raise SystemExit('a file holds something else')
        os.rename('bench-a', 'bench-b')
        os.unlink('bench-b')
`},
	}
}

// loadCode is the program of all parts in an order, each done a share of its
// times, with a mark at its beginning and one at its end.
func loadCode(order []int, share int) string {
	var b strings.Builder
	b.WriteString(head)
	all := loads()
	for i, l := range all {
		fmt.Fprintf(&b, "def part%d():"+l.body, i, max(l.times/share, 1))
	}
	for _, i := range order {
		fmt.Fprintf(&b, "begin()\npart%d()\nmark()\n", i)
	}
	return b.String()
}

// outputCode writes so many bytes to its standard output.
func outputCode(size int) string {
	return fmt.Sprintf(`import os
left, block = %d, b'x' * 65536
while left:
    left -= os.write(1, block[:left])
`, size)
}

// fileCode writes so many bytes to a file and reads them back, between two
// marks.
func fileCode(size int) string {
	return head + fmt.Sprintf(`size, block = %d, b'x' * 262144
begin()
with open('bench-data', 'wb', buffering=0) as f:
    for i in range(size // len(block)):
        if f.write(block) != len(block):
            raise SystemExit('the disk is full')
read = 0
with open('bench-data', 'rb', buffering=0) as f:
    while True:
        n = len(f.read(len(block)))
        if n == 0:
            break
        read += n
mark()
os.unlink('bench-data')
if read != size:
    raise SystemExit('the file holds something else')
`, size)
}

// arrivals takes output and remembers when it came.
type arrivals struct {
	first, last time.Time
	head        int // bytes of the first piece
	blurred     bool
	n           int64
	marks       []time.Time
	kept        bytes.Buffer
}

// most is how much output is kept to be compared.
const most = 256

// Write implements [io.Writer].
func (a *arrivals) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	now := time.Now()
	if a.n == 0 {
		a.first, a.head = now, len(p)
	}
	a.last = now
	a.n += int64(len(p))
	if room := most - a.kept.Len(); room > 0 {
		part := p[:min(room, len(p))]
		a.kept.Write(part)
		n := bytes.Count(part, []byte{mark})
		for range n {
			a.marks = append(a.marks, now)
		}
		a.blurred = a.blurred || n > 1
	}
	return len(p), nil
}

// start is one run of the start's program.
func start(ctx context.Context, run func(context.Context, string, io.Writer) error) (first, whole time.Duration, err error) {
	var a arrivals
	began := time.Now()
	if err := run(ctx, StartCode, &a); err != nil {
		return 0, 0, err
	}
	whole = time.Since(began)
	if got := a.kept.String(); got != Answer || a.n != int64(len(Answer)) {
		return 0, 0, fmt.Errorf("it printed %q, want %q", got, Answer)
	}
	return a.first.Sub(began), whole, nil
}

// errBlurred says that two marks arrived at once: this process got no turn
// between them on a busy host, and what lies between can't be told.
var errBlurred = errors.New("the host was too busy to time it")

// parts runs a program of n parts and returns how long each took.
func parts(ctx context.Context, r Runner, code string, n int) ([]time.Duration, error) {
	var a arrivals
	if err := r.Run(ctx, code, &a); err != nil {
		return nil, err
	}
	if len(a.marks) != 2*n || a.n != int64(2*n) {
		return nil, fmt.Errorf("it printed %.100q, want %d marks", a.kept.String(), 2*n)
	}
	if a.blurred {
		return nil, errBlurred
	}
	took := make([]time.Duration, n)
	for i := range took {
		took[i] = a.marks[2*i+1].Sub(a.marks[2*i])
	}
	return took, nil
}

// lastLine is the end of what a program said.
func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
