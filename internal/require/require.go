// Package require lets a test ask for a part of the host: root, an
// unprivileged user, a cgroup version, a program. Where the part is missing
// the test is skipped, unless the run declared to provide it: then it fails.
//
// A run declares its parts in TRANCA_PROVIDES, a comma-separated list such as
// "root,cgroup,python3,bwrap". With TRANCA_REQUIRE_LOG set to a file, each
// request is appended to it as "part\tprovided|missing\ttest", so that a test
// that no run provides for can be found after all runs.
package require

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Root asks for user id 0.
func Root(t testing.TB) {
	t.Helper()
	Check(t, "root", os.Geteuid() == 0, "user id is not 0")
}

// Unprivileged asks for a user id other than 0.
func Unprivileged(t testing.TB) {
	t.Helper()
	Check(t, "unprivileged", os.Geteuid() != 0, "user id is 0")
}

// Program asks for a program on PATH and returns where it is.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	Check(t, name, err == nil, fmt.Sprint(err))
	return path
}

// Part asks for a part by name. The parts "docker", "podman", "podman-rootless"
// and "gvisor" are there when the environment names them and they answer (see
// Engine, Sentry). For every other, such as "subids" or "no-subids", only the
// run's declaration can vouch.
func Part(t testing.TB, name string) {
	t.Helper()
	if _, ok := engines[name]; ok {
		Engine(t, name)
		return
	}
	if name == "gvisor" {
		Sentry(t)
		return
	}
	Check(t, name, declared(name), "not in TRANCA_PROVIDES")
}

// Check skips the test when a part is not there, or fails it when the run
// declared to provide it. Every other function of this package ends here.
func Check(t testing.TB, part string, there bool, why string) {
	t.Helper()
	record(t, part, there)
	switch {
	case there:
	case declared(part):
		t.Fatalf("this run declares to provide %q, but: %s", part, why)
	default:
		t.Skipf("needs %q: %s", part, why)
	}
}

func declared(part string) bool {
	return slices.Contains(strings.Split(os.Getenv("TRANCA_PROVIDES"), ","), part)
}

func record(t testing.TB, part string, there bool) {
	t.Helper()
	path := os.Getenv("TRANCA_REQUIRE_LOG")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatalf("TRANCA_REQUIRE_LOG: %v", err)
	}
	defer f.Close()
	state := "missing"
	if there {
		state = "provided"
	}
	fmt.Fprintf(f, "%s\t%s\t%s\n", part, state, t.Name())
}
