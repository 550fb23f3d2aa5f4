package hostcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/linux/landlock"
	"tranca/internal/linux/trial"
)

// This returns the host that this process runs on. delegated are control groups
// that the operator named for tranca; none is the process's own.
func This(holes *advisory.Table, reports []tranca.Report, delegated []string) *Host {
	trials := fromFiles()
	maps.Copy(trials, map[string]Trial{
		trialUserNamespace: kernel(trial.UserNamespace), trialIOURing: kernel(trial.IOURing),
		trialKeyrings: kernel(trial.Keyrings), trialBPF: kernel(trial.Programs), trialPerf: kernel(trial.PerformanceEvents),
		trialUserFaults: kernel(trial.UserFaults), trialAlgorithms: algorithms, trialLandlock: landlockABI, trialKVM: kvm,
		trialIA32: kernel(trial.IA32), trialX32: kernel(trial.X32), trialSocket: engineSocket, trialMetadata: metadata,
		trialGroups: func(_ context.Context, h *Host) (string, string, error) { return h.groups(delegated) },
	})
	return &Host{
		FS: os.DirFS("/"), Root: "/", UID: os.Geteuid(), Trials: trials, Version: askVersion, Holes: holes, Reports: reports,
	}
}

// kernel is a trial of what the kernel gives a program without rights.
func kernel(try func() (trial.Result, error)) Trial {
	return func(context.Context, *Host) (word, seen string, err error) {
		r, err := try()
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return "other", "this processor has nothing of the kind", nil
		case err != nil:
			return "", "", err
		case r.Reached:
			return "reached", "tried without rights: the kernel gives it", nil
		}
		return "refused", "tried without rights: " + r.Refused, nil
	}
}

// algorithms looks before it tries: where the module isn't there yet, trying
// would load it.
func algorithms(ctx context.Context, h *Host) (word, seen string, err error) {
	f := h.module("af_alg")
	switch {
	case f.unknown != "":
		return "", "", errors.New(f.unknown)
	case f.value == "loaded" || f.value == "builtin":
		return kernel(trial.AlgorithmSocket)(ctx, h)
	}
	return f.value, f.seen, nil
}

func landlockABI(context.Context, *Host) (word, seen string, err error) {
	abi, err := landlock.ABI()
	if err != nil {
		return "0", err.Error(), nil //nolint:nilerr // a kernel without it is what was seen
	}
	seen = fmt.Sprintf("ABI %d", abi)
	if lacks := landlock.Lacks(abi); len(lacks) > 0 {
		seen += ", which can't restrict: " + strings.Join(lacks, ", ")
	}
	return fmt.Sprint(abi), seen, nil
}

func kvm(_ context.Context, h *Host) (word, seen string, err error) {
	if !h.exists("dev/kvm") {
		return "absent", "there is no /dev/kvm", nil
	}
	r, err := trial.KVM()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return "", "", errors.New("there is a /dev/kvm; whether machines run by it can't be tried on this architecture")
	case err != nil:
		return "", "", err
	case r.Reached:
		return "reached", "a machine was made and ran", nil
	}
	return "refused", r.Refused, nil
}

// sockets are those of engines: whoever can use one of root is root.
var sockets = []string{"/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock"}

// engineSocket connects to the engines' sockets and says nothing.
func engineSocket(ctx context.Context, h *Host) (word, seen string, err error) {
	there, reached := "", ""
	for _, path := range sockets {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		there = join(there, ", ", path)
		dialer := net.Dialer{Timeout: time.Second}
		if c, err := dialer.DialContext(ctx, "unix", path); err == nil {
			c.Close()
			reached = join(reached, ", ", path)
		}
	}
	switch {
	case there == "":
		return "absent", "there is no socket of a container engine of root", nil
	case reached == "":
		return "refused", there + ": this user can't connect", nil
	case h.UID == 0:
		return "root", reached + ": root can connect, as to everything", nil
	}
	return "reached", reached + ": this user can connect, and so is root", nil
}

// services are the addresses at which clouds answer their machines.
var services = []string{"169.254.169.254:80", "[fd00:ec2::254]:80", "100.96.0.96:80"}

// metadataWait is ample for an answer from the same machine's host.
const metadataWait = 400 * time.Millisecond

// metadata connects to the clouds' services and asks nothing.
func metadata(ctx context.Context, _ *Host) (word, seen string, err error) {
	reached := make(chan string, len(services))
	for _, address := range services {
		go func() {
			dialer := net.Dialer{Timeout: metadataWait}
			c, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				reached <- ""
				return
			}
			c.Close()
			reached <- address
		}()
	}
	for range services {
		seen = join(seen, ", ", <-reached)
	}
	if seen = strings.Trim(seen, ", "); seen != "" {
		return "reached", seen + " can be connected to from this host", nil
	}
	return "silent", "no cloud's service answers this host", nil
}

// groups says whether this process may make control groups: a file system that
// is mounted read-only refuses root, too.
func (h *Host) groups(delegated []string) (word, seen string, err error) {
	own, err := h.read("proc/self/cgroup")
	if err != nil {
		return "", "", err
	}
	mounts, err := h.mounts()
	if err != nil {
		return "", "", err
	}
	var can, cannot []string
	for _, controller := range []string{"cpu", "memory", "pids"} {
		folder := groupFolder(controller, own, mounts)
		if len(delegated) > 0 {
			folder = delegatedFolder(delegated, controller)
		}
		if folder != "" && trial.Writable(folder) {
			can = append(can, controller)
		} else {
			cannot = append(cannot, controller)
		}
	}
	switch {
	case len(cannot) == 0:
		return "writable", strings.Join(can, ", ") + ": this process may make groups", nil
	case len(can) == 0:
		return "read-only", strings.Join(cannot, ", ") + ": this process may make no groups of its own", nil
	}
	return "part", strings.Join(can, ", ") + " may be used, " + strings.Join(cannot, ", ") + " not", nil
}

// groupFolder is where the process's own group of a controller is.
func groupFolder(controller, own string, mounts []mountpoint) string {
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		unified := parts[1] == ""
		if !unified && !slices.Contains(strings.Split(parts[1], ","), controller) {
			continue
		}
		for _, m := range mounts {
			if unified && m.kind == "cgroup2" && has(filepath.Join(m.at, parts[2], "cgroup.controllers"), controller) ||
				m.kind == "cgroup" && slices.Contains(m.options, controller) {
				return existing(m.at, parts[2])
			}
		}
	}
	return ""
}

// existing is the group's folder, or the mount itself where the group is beyond
// what this process sees.
func existing(mount, group string) string {
	if path := filepath.Join(mount, group); strings.HasPrefix(path, mount) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return mount
}

func has(file, word string) bool {
	text, err := os.ReadFile(file)
	return err == nil && slices.Contains(strings.Fields(string(text)), word)
}

// delegatedFolder is the group that the operator named for a controller.
func delegatedFolder(delegated []string, controller string) string {
	for _, path := range delegated {
		if has(filepath.Join(path, "cgroup.controllers"), controller) {
			return path
		}
		for _, part := range strings.Split(path, "/") {
			if slices.Contains(strings.Split(part, ","), controller) {
				return path
			}
		}
	}
	return ""
}

// folders are where distributions put programs, in the order of a shell's.
var folders = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// maxSaid is how much of a program's output is read.
const maxSaid = 4 << 10

// askVersion runs a program of the distribution, never one of PATH, with an
// environment of its own.
func askVersion(ctx context.Context, program string) (path, text string, err error) {
	for _, folder := range folders {
		candidate := filepath.Join(folder, program)
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			path = candidate
			break
		}
	}
	if path == "" {
		return "", "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = []string{"PATH=" + strings.Join(folders, ":"), "LC_ALL=C"}
	cmd.WaitDelay = time.Second
	said := &bounded{}
	cmd.Stdout = said
	if err := cmd.Run(); err != nil {
		return path, "", err
	}
	return path, said.String(), nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxSaid - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
