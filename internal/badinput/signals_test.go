package badinput

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Rounds of the tests that kill at random moments. The suite runs three times
// and does a quarter of them; with TRANCA_TEST_LONG set all are done.
var (
	signalRounds = rounds(100)
	killRounds   = rounds(50)
)

func rounds(all int) int {
	if os.Getenv("TRANCA_TEST_LONG") != "" {
		return all
	}
	return all / 4
}

// sleeper is a program that outlives every test: only tranca ends it. It also
// leaves a child that ignores what can be ignored.
const sleeper = `
import os, signal, time
if os.fork() == 0:
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, signal.SIG_IGN)
    os.setsid()
time.sleep(600)
`

// randomDelay is long enough for a program to run, and mostly shorter.
func randomDelay() time.Duration {
	return time.Duration(rand.Int64N(int64(200 * time.Millisecond)))
}

// atRandom starts a command in each round and calls end after a time at
// random. What it leaves is checked in each round.
func atRandom(t *testing.T, rounds int, args []string, end func(round int, c *command)) {
	t.Helper()
	before := state()
	for round := range rounds {
		c := start(t, args...)
		delay := randomDelay()
		time.Sleep(delay)
		end(round, c)
		checkLeft(t, before, settleTime)
		if t.Failed() {
			t.Fatalf("in round %d, after %s", round, delay)
		}
	}
}

var ends = []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}

// TestSignalsAtEveryStage sends a signal to the process group of the command,
// as a terminal or a service manager does, between its exec and a time at which
// the program runs for long.
func TestSignalsAtEveryStage(t *testing.T) {
	caught := 0
	atRandom(t, signalRounds, runArgs(t, "-c", sleeper), func(round int, c *command) {
		end := ends[round%len(ends)]
		c.signal(end)
		o := c.wait()
		o.wants(t, 128+int(end), "")
		if o.signal == 0 {
			caught++
		}
	})
	if caught == 0 {
		t.Error("in no round a signal came when the command was ready for it")
	}
}

// TestSignalsToDoctor: it makes sandboxes too.
func TestSignalsToDoctor(t *testing.T) {
	lacking(t)
	atRandom(t, signalRounds/5, []string{"doctor"}, func(round int, c *command) {
		end := ends[round%len(ends)]
		c.signal(end)
		if o := c.wait(); o.status > 2 && o.status != 128+int(end) {
			t.Errorf("%s: status %d: %s", end, o.status, o.stderr)
		}
	})
}
