package main

import (
	"flag"
	"fmt"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/specutils"

	"tranca/internal/guest/bootspec"
	"tranca/internal/guest/sentryspec"
)

// lisafsMount is a part of the tree that comes from the file server, as it is:
// the file server's mounts say what is read-only, and what is written goes to
// the one bounded place that they show.
var lisafsMount = specutils.GoferMountConf{Lower: specutils.Lisafs, Upper: specutils.NoOverlay}

// kernelConfig is gVisor's configuration. What is named here is what tranca
// decides; all else is gVisor's default.
func kernelConfig(spec *sentryspec.Spec) (*config.Config, error) {
	flags := flag.NewFlagSet("kernel", flag.ContinueOnError)
	config.RegisterFlags(flags)
	// It may be the default only where somebody could use it.
	if err := flags.Set("root", "/none"); err != nil {
		return nil, err
	}
	c, err := config.NewFromFlags(flags)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c.Platform = spec.Platform
	// No network but what the kernel makes up for itself.
	c.Network = config.NetworkNone
	c.EnableRaw, c.AllowPacketEndpointWrite = false, false
	if spec.Omit.Has(bootspec.Network) {
		c.Network = config.NetworkHost
	}
	if spec.Omit.Has(bootspec.Devices) {
		c.CharacterDevicePolicy = config.CharDevPassthrough
	}
	// The Sentry opens no file of the host: descriptors of files come from the
	// file server, one by one.
	c.DirectFS = false
	c.HostUDS, c.HostFifo = config.HostUDSNone, config.HostFifoNone
	c.FileAccess, c.FileAccessMounts = config.FileAccessExclusive, config.FileAccessExclusive
	if spec.Shared {
		c.FileAccess = config.FileAccessShared
	}
	if spec.Omit.Has(bootspec.Processes) {
		c.FileAccessMounts = config.FileAccessShared // what is in the host's /proc has no size
	}
	// Control groups inside, so that the sandbox's own kernel bounds processes.
	c.InSandboxCgroup = config.InSandboxCgroupV2
	// Not the loader compiles and installs the filter, but runKernel, at the
	// same moment; see filter.go.
	c.DisableSeccomp = true
	// A kernel that hangs is an error, not a sandbox that waits.
	c.WatchdogAction = "panic"
	c.AllowSUID, c.IOUring, c.NVProxy, c.ProfileEnable = false, false, false, false
	c.Debug, c.Strace = spec.Debug, false
	return c, nil
}

// ociSpec is the first process, and the mounts that are not the file server's
// root. The guest agent may become the code's user and signal it, and nothing
// else; what it needs more of it has as the root of the sandbox's kernel.
func ociSpec(spec *sentryspec.Spec) *specs.Spec {
	caps := []string{"CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SETPCAP"}
	s := &specs.Spec{
		Version:  specs.Version,
		Hostname: spec.Hostname,
		Root:     &specs.Root{Path: "/"},
		Process: &specs.Process{
			Args: []string{"init"}, Env: spec.AgentEnv, Cwd: "/", NoNewPrivileges: !spec.Omit.Has(bootspec.Privileges),
			// gVisor's own default is none, and no program could be given more.
			Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_SIGPENDING", Hard: 1024, Soft: 1024}},
			Capabilities: &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/sys", Type: "sysfs", Options: []string{"ro", "nosuid", "noexec", "nodev"}},
			{Destination: "/sys/fs/cgroup", Type: "cgroup", Options: []string{"nosuid", "noexec", "nodev"}},
		},
		// With a control group of its own as the root of what it sees.
		Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.CgroupNamespace}}},
	}
	if spec.Omit.Has(bootspec.Processes) {
		s.Mounts = s.Mounts[1:] // what the file server shows is there
	}
	for _, path := range sentryspec.Mounts(spec.Omit)[1:] {
		s.Mounts = append(s.Mounts, specs.Mount{
			Destination: path, Type: "bind", Source: path, Options: []string{"rw", "nosuid", "nodev"},
		})
	}
	return s
}
