package hoststate

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestFamilyOfAProcess: a child and its child are in it, and are alive in it until
// they end; a zombie is not.
func TestFamilyOfAProcess(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & wait")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var family map[int]string
	for end := time.Now().Add(10 * time.Second); len(family) < 3; time.Sleep(10 * time.Millisecond) {
		all, err := Family(os.Getpid())
		if err != nil || time.Now().After(end) {
			t.Fatalf("%v, %v", all, err)
		}
		family = all
	}
	below, err := Family(cmd.Process.Pid)
	if err != nil || len(below) != 2 || len(Alive(below)) != 2 || below[os.Getpid()] != "" {
		t.Errorf("%v, alive %v, %v", below, Alive(below), err)
	}
	for pid := range below {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	for end := time.Now().Add(10 * time.Second); len(Alive(below)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("alive: %v", Alive(below))
		}
	}
	_ = cmd.Wait()
}
