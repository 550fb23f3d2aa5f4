package badinput

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// dieTime is how long a sandbox may outlive a supervisor that was killed. The
// kernel tells it at once; the rest is for a host that has much to do.
const dieTime = 5 * time.Second

// processesLeft waits until nothing of the command runs any more.
func processesLeft(t testing.TB, before map[int]string) {
	t.Helper()
	left := map[int]string{}
	for end := time.Now().Add(dieTime); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		left = descendants()
		for pid := range before {
			delete(left, pid)
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("they outlive their supervisor: %v", left)
}

// sweptByNext checks that the next start leaves nothing of what a command that
// could not clean up has left, nor of its own.
func sweptByNext(t *testing.T, before map[string]bool) {
	t.Helper()
	runCode(t, "-c", "print(42)").wants(t, 0, "")
	sub := []string{"run", "--backend", "subprocess", "--isolation", "subprocess", "-c", "print(42)"}
	runTranca(t, nil, sub...).wants(t, 0, "")
	checkLeft(t, before, settleTime)
}

// TestKilledAtEveryStage kills the command alone, with the one signal that it
// can't catch.
func TestKilledAtEveryStage(t *testing.T) {
	args := runArgs(t, "-c", sleeper)
	before, running := state(), descendants()
	remains := 0
	for round := range killRounds {
		c := start(t, args...)
		time.Sleep(randomDelay())
		if err := unix.Kill(c.pid(), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		c.wait()
		processesLeft(t, running)
		if len(newSince(before, state())) > 0 {
			remains++
		}
		if round%10 == 9 {
			sweptByNext(t, before)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if remains == 0 {
		t.Error("in no round there was anything to sweep")
	}
}

// TestKilledSubprocess: the weaker rung's folder is swept too.
func TestKilledSubprocess(t *testing.T) {
	before, running := state(), descendants()
	for round := range killRounds / 3 {
		c := start(t, "run", "--backend", "subprocess", "--isolation", "subprocess", "-c", "open('kept', 'w').write('x')\n"+sleeper)
		time.Sleep(randomDelay())
		if err := unix.Kill(c.pid(), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		c.wait()
		processesLeft(t, running)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if len(newSince(before, state())) == 0 {
		t.Error("there is nothing to sweep")
	}
	sweptByNext(t, before)
}

// TestSecondSignalEndsAtOnce: it does not wait for a clean-up, so that the
// next start has to do it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	args := runArgs(t, "-c", sleeper)
	before, running := state(), descendants()
	for round := range killRounds / 2 {
		c := start(t, args...)
		time.Sleep(randomDelay())
		end := ends[round%len(ends)]
		c.signal(end)
		c.signal(end)
		c.wait().wants(t, 128+int(end), "")
		processesLeft(t, running)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	sweptByNext(t, before)
}

// TestSecondSignalDoesNotWait stops the guest agent, so that the first signal's
// clean-up may take its time, and wants the second to end the command all the
// same.
func TestSecondSignalDoesNotWait(t *testing.T) {
	before, running := state(), descendants()
	c := prepare(t, runArgs(t, "-c", "print('up', flush=True); import time; time.sleep(600)")...)
	up := c.pipe()
	c.start()
	up.expect(t, "up")
	up.r.Close()
	stopAgents(t, c)
	c.signal(unix.SIGINT)
	// Signals that come before the first was taken are one.
	time.Sleep(200 * time.Millisecond)
	c.signal(unix.SIGINT)
	again := time.Now()
	o := c.wait()
	o.wants(t, 130, "")
	if took := time.Since(again); took > dieTime/2 {
		t.Errorf("the second Ctrl-C took %s", took)
	}
	processesLeft(t, running)
	sweptByNext(t, before)
}

// TestSignalsToMCP ends the server for agents while a call is under way.
func TestSignalsToMCP(t *testing.T) {
	if len(lacking(t)) > 0 {
		t.Log("the server refuses calls here, since it can't waive anything; its end is the same")
	}
	before, running := state(), descendants()
	kill := []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGKILL}
	for round := range signalRounds / 5 {
		c := prepare(t, "mcp", "--policy", file(t, "policy.yaml", "version: 1\nfloor: process\n"))
		in, err := c.cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.start()
		if _, err := io.WriteString(in, mcpCall(t, sleeper)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(randomDelay())
		end := kill[round%len(kill)]
		c.signal(end)
		sent := time.Now()
		c.wait().wants(t, 128+int(end), "")
		// The call itself would last for the 30 s of the policy.
		if took := time.Since(sent); took > 10*time.Second {
			t.Errorf("it took %s to end", took)
		}
		processesLeft(t, running)
		if end != unix.SIGKILL {
			checkLeft(t, before, settleTime)
		}
		sweptByNext(t, before)
		if t.Failed() {
			t.Fatalf("in round %d, by %s", round, end)
		}
	}
}

// mcpCall is what a client says from the beginning to its first call.
func mcpCall(t testing.TB, code string) string {
	t.Helper()
	var b strings.Builder
	for i, m := range []map[string]any{
		{"method": "initialize", "params": map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
			"clientInfo": map[string]any{"name": "badinput", "version": "1"},
		}},
		{"method": "notifications/initialized"},
		{"method": "tools/call", "params": map[string]any{"name": "run_python", "arguments": map[string]any{"code": code}}},
	} {
		m["jsonrpc"] = "2.0"
		if i != 1 {
			m["id"] = i
		}
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}
