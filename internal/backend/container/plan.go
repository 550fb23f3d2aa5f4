package container

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/backend/container/docker"
	"tranca/internal/guest/bootspec"
)

const (
	// agentPath is where the guest agent is in the container: a name that no
	// image has.
	agentPath = "/.tranca/agent"
	// searchPath is where programs are looked for, unless the image says.
	searchPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
	// agentMemory is what the container may use beyond the policy's memory,
	// since the guest agent lives in the same group: measured at 3 MiB after its
	// boot, and at 7 more with 32 transfers at once.
	agentMemory = 24 << 20
	// agentTasks is how many threads the guest agent has from its boot on; see
	// [bootspec.Spec.Tasks]. Measured with 32 transfers at once, it needs no
	// more. Now and then it has one more at its boot, which the code then lacks.
	agentTasks = 20
	// agentFiles bounds the agent's own descriptors; the code has the policy's.
	agentFiles = 4096
)

// The folders of the writable space.
var spaceFolders = []string{"/work", "/tmp", "/dev/shm"}

// masked are paths of the kernel's own file systems that tell of the host, or
// of its keys and addresses. The whole of /sys is among them: it lists the
// host's hardware, and nothing that runs here needs it.
var masked = []string{
	"/proc/acpi", "/proc/asound", "/proc/cmdline", "/proc/config.gz", "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/kallsyms",
	"/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount",
	"/proc/kpageflags", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/slabinfo",
	"/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo", "/sys",
}

var readOnlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// plan is one sandbox before it is made.
type plan struct {
	id     tranca.ID
	policy *tranca.Policy
	image  *docker.Image
	digest string // as the result says it
	env    map[string]string
	user   codeUser
	boot   bootspec.Spec
	config docker.Config
	stage  *stage // nil where the engine makes the space
	// finding is what is known of the runtime; guest says that it brings a
	// kernel of its own.
	finding finding
	guest   bool
	// stated says how each item of the policy is enforced.
	stated []tranca.Enforcement
	// unread leaves out the reading back. Only tests set it, and what takes
	// guarantees away.
	unread bool
}

// underGuestKernel changes what is other where the runtime has a kernel of its
// own: the filter and the user namespace are that kernel's matter, it counts
// processes, and what it needs itself comes on top of the limits.
func (pl *plan) underGuestKernel() {
	l, h := pl.policy.Limits, pl.config.HostConfig
	pl.guest = true
	pl.boot.Filtered, pl.boot.Landlock = false, -1
	// It takes its loopback from the engine's network, which then has one.
	pl.config.NetworkDisabled = false
	// gVisor lets nobody set these inside; the container has them.
	pl.boot.Rlimits = slices.DeleteFunc(pl.boot.Rlimits, func(r bootspec.Rlimit) bool {
		return r.Resource == rlimitSignals || r.Resource == rlimitQueues
	})
	pl.boot.GuestProcesses = uint64(l.Processes)
	pl.boot.Tasks = 0
	h.MaskedPaths = slices.DeleteFunc(slices.Clone(h.MaskedPaths), func(p string) bool { return p == "/sys" })
	if h.Memory > 0 {
		h.Memory += guestMemory + l.Memory/guestShare + l.Processes*guestEachMemory
		h.MemorySwap = h.Memory
	}
	if h.PidsLimit != nil {
		*h.PidsLimit = guestTasks + l.Processes*guestTasksOfEach
	}
}

// codeUser is who runs the code.
type codeUser struct {
	// uid and gid are as the container counts them.
	uid, gid uint32
	// insulated: the code gets a user namespace, in which it is the policy's
	// user.
	insulated bool
	// callers: it is the caller's own user, for the sake of the mounts.
	callers bool
	// keepID has Podman map the caller's user to itself.
	keepID bool
}

// newPlan turns a spec into what is asked of the engine and of the agent, but
// for space and mounts.
func (b *Backend) newPlan(e *engine, spec *tranca.Spec, img *resolved, user codeUser) (*plan, error) {
	p := &spec.Policy
	pl := &plan{id: spec.ID, policy: p, image: img.image, digest: img.digest, env: img.env, user: user}
	code, agent, err := filters(unixSockets(p))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tranca.ErrUnavailable, err)
	}
	env := environment(p, img.env)
	pl.boot = bootspec.Spec{
		Contained: true, Audit: true, Filtered: true, Insulate: user.insulated, InsideUID: p.User.UID, InsideGID: p.User.GID,
		CodeUID: user.uid, CodeGID: user.gid,
		Filter: code, AgentFilter: agent, Landlock: p.MinLandlockABI, Tasks: agentTasks,
		Rlimits: b.rlimits(e, p), Path: env["PATH"], Workdir: p.Workdir,
	}
	if p.Waives(tranca.ItemLandlock) {
		pl.boot.Landlock = -1
	}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		pl.boot.Env = append(pl.boot.Env, k+"="+env[k])
	}
	pl.config = b.newConfig(e, pl)
	return pl, nil
}

// unixSockets says whether programs may make unix sockets: not where a mount
// may hold, or come to hold, those of the host's services.
func unixSockets(p *tranca.Policy) bool { return len(p.Mounts) == 0 }

// environment is the whole environment of the code: what the image's
// configuration says, beneath what tranca and the policy set.
func environment(p *tranca.Policy, image map[string]string) map[string]string {
	env := map[string]string{"PATH": searchPath}
	maps.Copy(env, image)
	maps.Copy(env, map[string]string{
		"HOME": "/work", "USER": p.User.Name, "LOGNAME": p.User.Name, "LANG": "C.UTF-8", "TMPDIR": "/tmp",
	})
	maps.Copy(env, p.Env)
	return env
}

// newConfig is the create request, but for space and mounts.
func (b *Backend) newConfig(e *engine, pl *plan) docker.Config {
	p := pl.policy
	no := false
	pids := p.Limits.Processes + agentTasks
	host := &docker.HostConfig{
		NetworkMode: "none", RestartPolicy: docker.RestartPolicy{Name: "no"}, LogConfig: docker.LogConfig{Type: "none"},
		CapDrop: []string{"ALL"}, CapAdd: []string{"KILL", "SETGID", "SETPCAP", "SETUID"},
		CgroupnsMode: "private", IpcMode: "private", PidMode: "", UTSMode: "",
		ReadonlyRootfs: true, SecurityOpt: b.securityOptions(e),
		Memory: p.Limits.Memory + agentMemory, MemorySwap: p.Limits.Memory + agentMemory,
		NanoCPUs: nanoCPUs(p.Limits.MilliCPUs, e.info.NCPU), PidsLimit: &pids,
		Ulimits: b.ulimits(p), MaskedPaths: masked, ReadonlyPaths: readOnlyPaths,
		Init: &no, OomKillDisable: &no, Runtime: p.Runtime, Tmpfs: map[string]string{},
	}
	if pl.user.keepID {
		host.UsernsMode = "keep-id"
	}
	b.withoutController(e, p, host)
	host.Mounts = []docker.Mount{bind(b.files.agent, agentPath, true)}
	var health *docker.Healthcheck
	if c := pl.image.Config; c != nil && c.Healthcheck != nil {
		health = &docker.Healthcheck{Test: []string{"NONE"}} // or the engine would start programs in it
	}
	return docker.Config{
		Image: pl.image.ID, Hostname: p.Hostname, User: "0:0",
		AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
		Entrypoint: []string{agentPath}, Cmd: []string{"stdio"}, WorkingDir: "/", Env: []string{},
		Healthcheck: health, StopSignal: "SIGKILL",
		NetworkDisabled: true, Labels: b.owner.labels(pl.id), HostConfig: host,
	}
}

// securityOptions name the filter as the engine wants it: Docker by its text,
// Podman by the path of a file.
func (b *Backend) securityOptions(e *engine) []string {
	if !e.podman() {
		return []string{"no-new-privileges", "seccomp=" + b.profile}
	}
	return []string{"no-new-privileges", "seccomp=" + b.files.profile, "mask=" + strings.Join(masked, ":")}
}

// nanoCPUs is the share of CPUs in the engine's unit. It refuses more than the
// host has, which bounds the code as well.
func nanoCPUs(milli int64, host int) int64 {
	if host > 0 {
		milli = min(milli, int64(host)*1000)
	}
	return max(milli, 10) * 1e6
}

// withoutController leaves out what the engine can't hold and the operator
// waived: some engines refuse the request otherwise.
func (b *Backend) withoutController(e *engine, p *tranca.Policy, host *docker.HostConfig) {
	if !b.holds(e, tranca.ItemMemory) && p.Waives(tranca.ItemMemory) {
		host.Memory, host.MemorySwap = 0, 0
	}
	if !b.holds(e, tranca.ItemCPUs) && p.Waives(tranca.ItemCPUs) {
		host.NanoCPUs = 0
	}
	if !e.boundsTasks() {
		host.PidsLimit = nil
	}
}

// recursive lets Podman bind what is mounted in a source, too: what hides and
// protects paths of it. Podman 4.3 binds a source alone where a mount says its
// propagation; where it says none, it is recursive and private, as asked.
func recursive(e *engine, c *docker.Config) {
	if !e.podman() {
		return
	}
	for i := range c.HostConfig.Mounts {
		c.HostConfig.Mounts[i].BindOptions = nil
	}
}

func bind(source, target string, readOnly bool) docker.Mount {
	return docker.Mount{
		Type: "bind", Source: source, Target: target, ReadOnly: readOnly,
		BindOptions: &docker.BindOptions{Propagation: "rprivate"},
	}
}

// coverVolumes puts something empty and read-only over each path that the image
// declares a volume: the engine would make a folder on the host's disk for it,
// without a bound.
func (pl *plan) coverVolumes(e *engine) error {
	if pl.image.Config == nil {
		return nil
	}
	for _, v := range slices.Sorted(maps.Keys(pl.image.Config.Volumes)) {
		target := path.Clean("/" + v)
		if pl.mounted(target) {
			continue
		}
		for _, own := range []string{"/", "/dev", "/proc", "/sys", "/.tranca"} {
			if target == own || own != "/" && strings.HasPrefix(target, own+"/") {
				return refusal(tranca.Problem{
					Item: tranca.ItemFiles, Asked: "the image " + quote(pl.policy.Image),
					Missing: "it declares the volume " + quote(target) + ", where a sandbox can have none",
					Mend:    "use an image without it",
				})
			}
		}
		options := "ro,nosuid,nodev,noexec,size=4096,mode=0555" + e.emptyTmpfs()
		if !e.podman() {
			options += ",nr_inodes=4"
		}
		pl.config.HostConfig.Tmpfs[target] = options
	}
	return nil
}

// mounted reports whether something of ours is at the path already.
func (pl *plan) mounted(target string) bool {
	h := pl.config.HostConfig
	_, ok := h.Tmpfs[target]
	return ok || slices.ContainsFunc(h.Mounts, func(m docker.Mount) bool { return m.Target == target })
}
