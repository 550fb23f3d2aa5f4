package vmtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Machine is what to boot.
type Machine struct {
	Kernel *Kernel
	// Init is the static program of package vmtest/init.
	Init string
	// Root is an ext4 image. The VM writes to it.
	Root string
	// Command is run with /bin/sh -c as the only program of the VM or, with
	// Systemd, as a service when the rest is up.
	Command string
	// Systemd boots the root's own systemd.
	Systemd bool
	// Results is a raw file that the VM sees as /dev/vdb; a tar archive is
	// customary. Empty leaves it out.
	Results string
	// MemoryMiB and CPUs size the VM.
	MemoryMiB, CPUs int
	// Dir takes the initramfs and the console's log, console.log.
	Dir string
}

// modules are what the VM needs beyond what the kernel has built in.
var modules = []string{"virtio_pci", "virtio_blk", "overlay", "loop", "erofs", "squashfs"}

// Run boots the machine, copies what the command prints to out, and returns
// the command's exit status when the VM has powered off. An error means that
// the status isn't known: the VM didn't boot, or ctx ended it.
func (m *Machine) Run(ctx context.Context, out io.Writer) (int, error) {
	initramfs := filepath.Join(m.Dir, "initramfs")
	if err := m.writeInitramfs(initramfs); err != nil {
		return 0, err
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer pr.Close()
	console := filepath.Join(m.Dir, "console.log")
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", m.arguments(initramfs, console)...)
	cmd.ExtraFiles = []*os.File{pw}
	cmd.WaitDelay = 5 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return 0, errors.Join(err, pw.Close())
	}
	pw.Close()
	status, readErr := follow(pr, out)
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("VM: %w %s(console: %s)", err, stderr.String(), console)
	}
	if readErr != nil {
		return 0, fmt.Errorf("%w (console: %s)", readErr, console)
	}
	return status, nil
}

func (m *Machine) arguments(initramfs, console string) []string {
	args := []string{
		"-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
		"-m", strconv.Itoa(m.MemoryMiB), "-smp", strconv.Itoa(m.CPUs),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-net", "none",
		"-kernel", m.Kernel.Image, "-initrd", initramfs,
		"-append", "console=ttyS0 quiet panic=-1 cgroup_no_v1=all",
		"-chardev", "file,id=console,path=" + console, "-serial", "chardev:console",
		"-chardev", "file,id=answer,path=/dev/fd/3", "-serial", "chardev:answer",
		"-drive", "file=" + m.Root + ",format=raw,if=virtio,cache=unsafe",
	}
	if m.Results != "" {
		args = append(args, "-drive", "file="+m.Results+",format=raw,if=virtio,cache=unsafe")
	}
	return args
}

func (m *Machine) writeInitramfs(path string) error {
	program, err := os.ReadFile(m.Init)
	if err != nil {
		return err
	}
	entries := []entry{
		{name: "dev", mode: os.ModeDir | 0o755}, {name: "proc", mode: os.ModeDir | 0o755},
		{name: "sys", mode: os.ModeDir | 0o755}, {name: "root", mode: os.ModeDir | 0o755},
		{name: "modules", mode: os.ModeDir | 0o755},
		{name: "init", mode: 0o755, data: program},
		{name: "command", mode: 0o644, data: []byte(m.Command)},
	}
	if m.Systemd {
		entries = append(entries, entry{name: "systemd", mode: 0o644})
	}
	order, err := m.Kernel.LoadOrder(modules...)
	if err != nil {
		return err
	}
	for i, file := range order {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		entries = append(entries, entry{
			name: fmt.Sprintf("modules/%02d-%s", i, filepath.Base(file)), mode: 0o644, data: data,
		})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(writeCPIO(f, entries), f.Close())
}

var lastLine = regexp.MustCompile(`(?m)^vmtest: exit (\d+)$`)

// follow copies the VM's answers and finds the status in the last line.
func follow(r io.Reader, out io.Writer) (int, error) {
	tail := &tailWriter{}
	if _, err := io.Copy(io.MultiWriter(out, tail), r); err != nil {
		return 0, err
	}
	m := lastLine.FindSubmatch(tail.kept)
	if m == nil {
		return 0, errors.New("the VM ended without an exit status")
	}
	return strconv.Atoi(string(m[1]))
}

// tailWriter keeps the end of what is written to it.
type tailWriter struct{ kept []byte }

func (t *tailWriter) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - 4096; over > 0 {
		t.kept = t.kept[over:]
	}
	return len(p), nil
}
