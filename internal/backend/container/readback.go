package container

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/backend/container/docker"
)

// readBack compares what the engine says that it has made with what was asked
// for, and refuses where it dropped or widened anything. What Podman does not
// tell is left to the guest agent, which looks at the effect.
func readBack(ctx context.Context, e *engine, pl *plan, id string) error {
	c, err := e.Inspect(ctx, id)
	if err != nil {
		return err
	}
	d := &differences{policy: pl.policy}
	d.compareLife(e, pl, c)
	d.compareBoundary(e, &pl.config, c)
	d.compareLimits(e, pl.config.HostConfig, c.HostConfig)
	d.compareMounts(pl.config.HostConfig, c)
	if d.problems == nil {
		return nil
	}
	return &tranca.RefusalError{Backend: Name, Problems: d.problems}
}

// differences collects what an engine did otherwise.
type differences struct {
	policy   *tranca.Policy
	problems []tranca.Problem
}

// want notes a difference between what was asked and what is there.
func (d *differences) want(item tranca.Item, name string, asked, is any) {
	a, b := fmt.Sprint(asked), fmt.Sprint(is)
	if a == b || d.policy.Waives(item) {
		return
	}
	if len(b) > 200 {
		b = b[:200] + "…"
	}
	d.problems = append(d.problems, tranca.Problem{
		Item: item, Asked: name + " " + a, Missing: fmt.Sprintf("the engine made the container with %s %q", name, b),
		Mend: "use an engine that takes the option, or waive the item if it can be", Waivable: slices.Contains(tranca.Waivable(), item),
	})
}

// compareLife compares what runs, from what, and for how long.
func (d *differences) compareLife(e *engine, pl *plan, c *docker.Container) {
	asked, is := &pl.config, c.Config
	d.want(tranca.ItemFiles, "image", trimDigest(pl.image.ID), trimDigest(c.Image))
	d.want(tranca.ItemIsolation, "entrypoint", asked.Entrypoint, is.Entrypoint)
	d.want(tranca.ItemIsolation, "user", asked.User, is.User)
	d.want(tranca.ItemIsolation, "terminal", false, is.Tty)
	d.want(tranca.ItemHostname, "hostname", asked.Hostname, is.Hostname)
	d.want(tranca.ItemFiles, "working folder", asked.WorkingDir, is.WorkingDir)
	d.want(tranca.ItemLifetime, "restart policy", "no", orWord(c.HostConfig.RestartPolicy.Name, "no"))
	d.want(tranca.ItemOutput, "log driver", "none", c.HostConfig.LogConfig.Type)
	if is.Healthcheck != nil && (len(is.Healthcheck.Test) == 0 || is.Healthcheck.Test[0] != "NONE") {
		d.want(tranca.ItemIsolation, "healthcheck", "NONE", is.Healthcheck.Test)
	}
	for _, name := range []string{labelSandbox, labelUser, labelProcess, labelDeadline} {
		d.want(tranca.ItemLifetime, "label "+name, asked.Labels[name], is.Labels[name])
	}
	if pl.policy.Runtime != "" {
		d.want(tranca.ItemIsolation, "runtime", pl.policy.Runtime, runtimeOf(e, c))
	}
}

func runtimeOf(e *engine, c *docker.Container) string {
	if e.podman() {
		return orWord(c.OCIRuntime, c.HostConfig.Runtime)
	}
	return c.HostConfig.Runtime
}

func trimDigest(id string) string { return strings.TrimPrefix(id, "sha256:") }

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// compareBoundary compares namespaces, capabilities and filters.
func (d *differences) compareBoundary(e *engine, asked *docker.Config, c *docker.Container) {
	a, h := asked.HostConfig, c.HostConfig
	d.want(tranca.ItemPrivileges, "privileged", false, h.Privileged)
	d.want(tranca.ItemNetwork, "network mode", a.NetworkMode, h.NetworkMode)
	for name := range c.NetworkSettings.Networks {
		d.want(tranca.ItemNetwork, "network", "none", name)
	}
	d.want(tranca.ItemFiles, "read-only root", true, h.ReadonlyRootfs)
	if h.IpcMode != "shareable" { // with nobody, as each has its own
		d.want(tranca.ItemIPC, "ipc mode", a.IpcMode, orWord(h.IpcMode, "private"))
	}
	d.want(tranca.ItemProcesses, "pid mode", "private", orWord(h.PidMode, "private"))
	d.want(tranca.ItemHostname, "uts mode", "private", orWord(h.UTSMode, "private"))
	d.want(tranca.ItemProcesses, "cgroup namespace", a.CgroupnsMode, orWord(h.CgroupnsMode, a.CgroupnsMode))
	if !e.podman() { // which tells of others only how they differ from its own
		d.want(tranca.ItemPrivileges, "capabilities", capabilities(a.CapAdd), capabilities(h.CapAdd))
		d.want(tranca.ItemPrivileges, "dropped capabilities", a.CapDrop, h.CapDrop)
		d.want(tranca.ItemSyscalls, "security options", a.SecurityOpt, h.SecurityOpt)
		d.want(tranca.ItemFiles, "masked paths", a.MaskedPaths, h.MaskedPaths)
		d.want(tranca.ItemFiles, "read-only paths", a.ReadonlyPaths, h.ReadonlyPaths)
	}
	d.want(tranca.ItemDevices, "devices", 0, len(h.Devices)+len(h.DeviceRequests))
	d.want(tranca.ItemUser, "further groups", 0, len(h.GroupAdd))
	d.want(tranca.ItemMounts, "volumes of others", 0, len(h.VolumesFrom))
	d.want(tranca.ItemNetwork, "links", 0, len(h.Links)+len(h.ExtraHosts))
	if h.UsernsMode == "host" {
		d.want(tranca.ItemUser, "user namespace", a.UsernsMode, h.UsernsMode)
	}
}

// capabilities brings names into one form, sorted.
func capabilities(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, strings.TrimPrefix(strings.ToUpper(n), "CAP_"))
	}
	slices.Sort(out)
	return out
}

func (d *differences) compareLimits(e *engine, a, h *docker.HostConfig) {
	d.want(tranca.ItemMemory, "memory", a.Memory, h.Memory)
	d.want(tranca.ItemMemory, "memory and swap", a.MemorySwap, h.MemorySwap)
	d.want(tranca.ItemCPUs, "CPUs (1e-9)", a.NanoCPUs, nanoOf(h))
	d.want(tranca.ItemPIDs, "processes", value(a.PidsLimit), value(h.PidsLimit))
	if h.OomKillDisable != nil && *h.OomKillDisable {
		d.want(tranca.ItemMemory, "kill for want of memory", true, false)
	}
	if e.podman() {
		return // without root it tells of none; the agent sets those of programs, or fails
	}
	is := map[string]docker.Ulimit{}
	for _, u := range h.Ulimits {
		is[strings.TrimPrefix(strings.ToLower(u.Name), "rlimit_")] = u
	}
	for _, u := range a.Ulimits {
		got := is[u.Name]
		d.want(tranca.ItemOpenFiles, "ulimit "+u.Name, [2]int64{u.Soft, u.Hard}, [2]int64{got.Soft, got.Hard})
	}
}

// nanoOf is the share of CPUs, which some engines say as quota and period.
func nanoOf(h *docker.HostConfig) int64 {
	if h.NanoCPUs == 0 && h.CPUPeriod > 0 {
		return h.CPUQuota * 1e9 / h.CPUPeriod
	}
	return h.NanoCPUs
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// compareMounts refuses a mount that is missing, wider, or that nobody asked
// for: a volume of the image above all.
func (d *differences) compareMounts(a *docker.HostConfig, c *docker.Container) {
	asked := map[string]docker.Mount{}
	for _, m := range a.Mounts {
		asked[m.Target] = m
	}
	for _, m := range c.Mounts {
		want, ok := asked[m.Destination]
		delete(asked, m.Destination)
		if _, tmpfs := a.Tmpfs[m.Destination]; tmpfs && m.Type == "tmpfs" {
			continue
		}
		if !ok {
			d.want(tranca.ItemMounts, "mounts", "as asked", m.Type+" at "+m.Destination)
			continue
		}
		d.want(tranca.ItemMounts, "mount "+want.Target, want.Type+" of "+want.Source, m.Type+" of "+m.Source)
		d.want(tranca.ItemMounts, "mount "+want.Target+" writable", !want.ReadOnly, m.RW)
		d.want(tranca.ItemMounts, "propagation of "+want.Target, "rprivate", orWord(m.Propagation, "rprivate"))
	}
	for _, target := range slices.Sorted(maps.Keys(asked)) {
		d.want(tranca.ItemMounts, "mount "+target, "there", "missing")
	}
}
