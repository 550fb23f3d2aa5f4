package hostcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// The trials, and the words that they find.
const (
	trialUserNamespace = "user-namespace" // reached, refused
	trialIOURing       = "io-uring"       // reached, refused
	trialAlgorithms    = "af-alg"         // reached, refused, loadable, absent, blocked
	trialKeyrings      = "keyrings"       // reached, refused
	trialBPF           = "bpf"            // reached, refused
	trialPerf          = "perf"           // reached, refused
	trialUserFaults    = "userfaultfd"    // reached, refused
	trialIA32          = "ia32"           // reached, refused, other
	trialX32           = "x32"            // reached, refused, other
	trialLandlock      = "landlock"       // the ABI's number
	trialKVM           = "kvm"            // reached, refused, absent
	trialCgroups       = "cgroup-version" // unified, hybrid, v1, none
	trialGroups        = "cgroup-writable"
	trialSwap          = "swap"           // off, bounded, unbounded
	trialSocket        = "engine-socket"  // root, reached, refused, absent
	trialMetadata      = "metadata"       // reached, silent
	trialLogs          = "engine-log"     // bounded, unbounded, absent
	trialHugePages     = "kvm-huge-pages" // safe, exposed, absent
	trialCores         = "cores"          // same, different
	trialJailer        = "jailer"         // same, different, absent
)

// Trials lists the names of all trials.
func Trials() []string {
	return []string{
		trialUserNamespace, trialIOURing, trialAlgorithms, trialKeyrings, trialBPF, trialPerf, trialUserFaults,
		trialIA32, trialX32, trialLandlock, trialKVM, trialCgroups, trialGroups, trialSwap, trialSocket,
		trialMetadata, trialLogs, trialCores, trialJailer, trialHugePages,
	}
}

// fromFiles are the trials that only look at files.
func fromFiles() map[string]Trial {
	return map[string]Trial{
		trialCgroups: cgroupVersion, trialSwap: swap, trialLogs: engineLog, trialCores: cores, trialJailer: jailer,
		trialHugePages: hugePages,
	}
}

// cgroupVersion says how control groups are mounted.
func cgroupVersion(_ context.Context, h *Host) (word, seen string, err error) {
	all, err := h.mounts()
	if err != nil {
		return "", "", err
	}
	v1, unified, delegate := 0, "", false
	for _, m := range all {
		switch m.kind {
		case "cgroup":
			v1++
		case "cgroup2":
			unified, delegate = m.at, slices.Contains(m.options, "nsdelegate")
		}
	}
	switch {
	case unified != "" && v1 == 0 && delegate:
		return "unified", "version 2 at " + unified + ", with nsdelegate", nil
	case unified != "" && v1 == 0:
		return "unified", "version 2 at " + unified, nil
	case unified != "":
		return "hybrid", fmt.Sprintf("version 1 with %d hierarchies, and version 2 at %s without their controllers", v1, unified), nil
	case v1 > 0:
		return "v1", fmt.Sprintf("version 1 with %d hierarchies", v1), nil
	}
	return "none", "no control groups are mounted", nil
}

// swap says whether what sandboxes push out is bounded.
func swap(_ context.Context, h *Host) (word, seen string, err error) {
	text, err := h.read("proc/swaps")
	if err != nil {
		return "", "", err
	}
	if strings.Count(text, "\n") == 0 { // the first line is the head
		return "off", "there is no swap", nil
	}
	for _, pattern := range []string{"sys/fs/cgroup/*/memory.swap.max", "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"} {
		if found, err := fs.Glob(h.FS, pattern); err == nil && len(found) > 0 {
			return "bounded", "there is swap, and control groups account for it", nil
		}
	}
	return "unbounded", "there is swap, and control groups do not account for it", nil
}

// engineLog says whether Docker bounds what a container's output becomes on
// disk. tranca's own containers have no log.
func engineLog(_ context.Context, h *Host) (word, seen string, err error) {
	if !h.exists("var/run/docker.sock") && !h.exists("run/docker.sock") && !h.exists("var/lib/docker") {
		return "absent", "there is no Docker Engine", nil
	}
	var config struct {
		Driver  string            `json:"log-driver"`
		Options map[string]string `json:"log-opts"`
	}
	text, err := h.read("etc/docker/daemon.json")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", "", err
	default:
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			return "", "", fmt.Errorf("/etc/docker/daemon.json: %w", err)
		}
	}
	switch {
	case config.Driver == "" || config.Driver == "json-file":
		if size := config.Options["max-size"]; size != "" && size != "-1" {
			return "bounded", "json-file with max-size " + quoted(size), nil
		}
		return "unbounded", "Docker's default log driver json-file, without max-size", nil
	case slices.Contains([]string{"none", "local", "journald"}, config.Driver):
		return "bounded", "log driver " + config.Driver, nil
	}
	return "", "", fmt.Errorf("log driver %s: whether it is bounded is not known", quoted(config.Driver))
}

// cores says whether all processors are of one kind.
func cores(_ context.Context, h *Host) (word, seen string, err error) {
	if h.exists("sys/devices/cpu_atom") {
		return "different", "there are performance and efficiency cores", nil
	}
	names, err := fs.Glob(h.FS, "sys/devices/system/cpu/cpu[0-9]*/cpu_capacity")
	if err != nil {
		return "", "", err
	}
	kinds := map[string]bool{}
	for _, name := range names {
		if text, err := h.read(name); err == nil {
			kinds[text] = true
		}
	}
	if len(kinds) > 1 {
		return "different", fmt.Sprintf("processors of %d capacities", len(kinds)), nil
	}
	return "same", "all processors are of one kind", nil
}

// jailer compares Firecracker's version with that of its jailer.
func jailer(ctx context.Context, h *Host) (word, seen string, err error) {
	if h.Version == nil {
		return "", "", errors.New("programs can't be asked here")
	}
	var lines []string
	for _, program := range []string{"firecracker", "jailer"} {
		path, text, err := h.Version(ctx, program)
		if err != nil {
			return "", "", err
		}
		if path == "" {
			return "absent", "no " + program + " is installed", nil
		}
		line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		words := strings.Fields(line)
		if len(words) == 0 {
			return "", "", errors.New(path + " says no version")
		}
		lines = append(lines, words[len(words)-1])
	}
	if lines[0] == lines[1] {
		return "same", "both are " + quoted(lines[0]), nil
	}
	return "different", "firecracker is " + quoted(lines[0]) + ", its jailer " + quoted(lines[1]), nil
}

// hugePages says whether a guest could stop the host by iTLB multihit. The
// setting is off by itself on processors that don't have it.
func hugePages(_ context.Context, h *Host) (word, seen string, err error) {
	setting, err := h.read("sys/module/kvm/parameters/nx_huge_pages")
	if errors.Is(err, fs.ErrNotExist) {
		return "absent", "there is no KVM in this kernel", nil
	}
	if err != nil {
		return "", "", err
	}
	processor, err := h.read("sys/devices/system/cpu/vulnerabilities/itlb_multihit")
	if err != nil {
		return "", "", err
	}
	seen = "nx_huge_pages is " + quoted(setting) + ", itlb_multihit: " + quoted(processor)
	if strings.Contains(processor, "Vulnerable") {
		return "exposed", seen, nil
	}
	return "safe", seen, nil
}
