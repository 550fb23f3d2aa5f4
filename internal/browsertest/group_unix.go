//go:build unix

package browsertest

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the browser a process group, since it starts many processes.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup kills all of it.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
