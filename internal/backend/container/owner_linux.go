package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// processName names this process such that no other ever has the name: the
// boot, the pid namespace, the pid and when it started.
func processName() string {
	where, err := processPlace()
	if err != nil {
		return ""
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", where, os.Getpid(), start)
}

// processPlace is the space in which pids of this process mean something.
func processPlace() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + strings.Trim(space, "pid:[]"), nil
}

// startTime is when a process started, in ticks since the boot.
func startTime(pid int) (string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	// The name may hold anything; it ends with the last parenthesis.
	end := strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text[max(end, 0):]))
	if end < 0 || len(fields) < 21 {
		return "", fmt.Errorf("/proc/%d/stat is malformed", pid)
	}
	return fields[20], nil
}

// lives looks for the process of a name that [processName] made.
func lives(name string) life {
	parts := strings.Split(name, "/")
	where, err := processPlace()
	if err != nil || len(parts) != 4 || parts[0]+"/"+parts[1] != where {
		return unknown
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil || pid <= 0 {
		return unknown
	}
	start, err := startTime(pid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dead
	case err != nil:
		return unknown
	case start != parts[3]:
		return dead
	}
	return alive
}
