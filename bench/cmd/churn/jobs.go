package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"tranca"
)

// job is one sandbox of the churn.
type job struct {
	name string
	code string
	// cancelAfter, where set, ends the run from outside.
	cancelAfter time.Duration
	narrow      tranca.Narrowing
	// right says what is wrong with the result, or nil.
	right func(*tranca.Result) error
}

func ends(reason tranca.Reason, code int) func(*tranca.Result) error {
	return func(r *tranca.Result) error {
		if r.Exit.Reason != reason || reason == tranca.EndExited && r.Exit.Code != code {
			return fmt.Errorf("ended %s, want %s %d; stderr %q", r.Exit, reason, code, r.Stderr)
		}
		return nil
	}
}

func prints(text string) func(*tranca.Result) error {
	return func(r *tranca.Result) error {
		if err := ends(tranca.EndExited, 0)(r); err != nil {
			return err
		}
		if string(r.Stdout) != text {
			return fmt.Errorf("printed %q, want %q", r.Stdout, text)
		}
		return nil
	}
}

// whole are programs that come to their end, each in a way of its own.
var whole = []job{
	{name: "answer", code: "print(6*7)", right: prints("42\n")},
	{name: "code", code: "raise SystemExit(3)", right: ends(tranca.EndExited, 3)},
	{
		name: "orphans",
		code: `
import os, time
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
print("left")`,
		right: prints("left\n"),
	},
	{
		name:  "files",
		code:  "for i in range(500): open(f'/work/{i}', 'w').write('x' * 1000)\nprint('full')",
		right: prints("full\n"),
	},
	{
		name:  "flood",
		code:  "import sys\nfor _ in range(64): sys.stdout.write('x' * (1 << 16))",
		right: ends(tranca.EndExited, 0),
	},
	{
		name:   "wall",
		code:   "import time\ntime.sleep(600)",
		narrow: tranca.Narrowing{Wall: 400 * time.Millisecond},
		right:  ends(tranca.EndWall, 0),
	},
	{
		name:   "memory",
		code:   "b = []\nwhile True: b.append(bytearray(1 << 20))",
		narrow: tranca.Narrowing{Memory: 96 << 20, DiskSize: 32 << 20},
		right:  ends(tranca.EndMemory, 0),
	},
	{
		name:   "forks",
		code:   "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
		narrow: tranca.Narrowing{Wall: 400 * time.Millisecond, Processes: 32},
		right:  ends(tranca.EndWall, 0),
	},
}

// endless are programs that are killed in mid-run.
var endless = []string{
	"while True: pass",
	"import time\ntime.sleep(600)",
	"import os, time\nfor _ in range(10): os.fork()\ntime.sleep(600)",
	"import sys\nwhile True: sys.stdout.write('x' * 4096)",
	"i = 0\nwhile True:\n    open(f'/work/{i % 1000}', 'w').write('x'); i += 1",
}

// pick makes the next job: every third is killed at a random moment of its
// life, its start included.
func pick(n int, rnd *rand.Rand) job {
	if n%3 != 0 {
		return whole[rnd.IntN(len(whole))]
	}
	return job{
		name: "killed", code: endless[rnd.IntN(len(endless))],
		cancelAfter: time.Duration(1+rnd.IntN(200)) * time.Millisecond,
		right:       ends(tranca.EndClosed, 0),
	}
}
