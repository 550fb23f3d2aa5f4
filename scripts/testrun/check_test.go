package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeLog(t *testing.T, dir, run, text string) {
	t.Helper()
	path := filepath.Join(dir, run)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "tranca_x.require"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCheckFindsWhatNoRunProvides(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, "root", "root\tprovided\tTestA\nroot\tprovided\tTestB\nkvm\tmissing\tTestB\n")
	writeLog(t, dir, "plain", "root\tmissing\tTestA\nroot\tmissing\tTestB\n")

	err := check([]string{"-log", dir})
	if err == nil || !strings.Contains(err.Error(), "TestB (needs kvm, root)") || strings.Contains(err.Error(), "TestA") {
		t.Errorf("check: %v, want TestB alone", err)
	}
	if err := check([]string{"-log", dir, "-absent", "kvm"}); err != nil {
		t.Errorf("check with kvm known to be absent: %v", err)
	}
	writeLog(t, dir, "vm", "root\tprovided\tTestB\nkvm\tprovided\tTestB\n")
	if err := check([]string{"-log", dir}); err != nil {
		t.Errorf("check after a run provided all: %v", err)
	}
}

func TestCheckNeedsLogs(t *testing.T) {
	if err := check([]string{"-log", t.TempDir()}); err == nil {
		t.Error("check of nothing passed")
	}
}

func TestCountReadsSubtests(t *testing.T) {
	got := count([]byte("=== RUN TestA\n--- PASS: TestA (0.00s)\n    --- SKIP: TestA/b (0.00s)\n--- FAIL: TestC\nPASS\n"))
	if got != (tally{1, 1, 1}) {
		t.Errorf("tally %+v", got)
	}
}
