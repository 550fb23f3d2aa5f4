package advisory

// The components of which holes are known.
const (
	Runc        = "runc"
	Crun        = "crun"
	Containerd  = "containerd"
	Docker      = "docker"
	Podman      = "podman"
	GVisor      = "gvisor"
	Firecracker = "firecracker"
	Bubblewrap  = "bubblewrap"
)

// hole is one row of the table.
type hole struct {
	component, id string
	// from is the first version that has it; empty for all.
	from string
	// fixed are the first versions without it, one for each line of releases
	// that got the mend, oldest first. Lines in between never got it.
	fixed []string
	// needs says what an attacker needs. It completes "using it needs".
	needs string
}

// table holds holes of the boundary itself: what lets code out of a sandbox or
// at files of the host. Left out are those of parts that a sandbox has no use
// for (building images, plugins for authorization, encrypted networks), and
// what only a default profile of system calls let pass, since tranca brings
// its own.
var table = []hole{
	{
		component: Runc, id: "CVE-2024-21626", from: "1.0.0-rc93", fixed: []string{"1.1.12"},
		needs: "control of the working directory, by the image or at an exec",
	},
	{
		component: Runc, id: "CVE-2024-45310", fixed: []string{"1.1.14", "1.2.0-rc.3"},
		needs: "volumes that containers share; it makes empty files and folders on the host",
	},
	{
		component: Runc, id: "CVE-2025-31133", fixed: []string{"1.2.8", "1.3.3", "1.4.0-rc.3"},
		needs: "a swap of /dev/null in the container while it is made: volumes that containers share, or builds side by side",
	},
	{
		component: Runc, id: "CVE-2025-52565", from: "1.0.0-rc3", fixed: []string{"1.2.8", "1.3.3", "1.4.0-rc.3"},
		needs: "a container with a terminal, and a swap of its /dev/pts while it is made",
	},
	{
		component: Runc, id: "CVE-2025-52881", fixed: []string{"1.2.8", "1.3.3", "1.4.0-rc.3"},
		needs: "volumes that containers share while one is made",
	},
	{
		component: Runc, id: "CVE-2026-41579", fixed: []string{"1.3.6", "1.4.3", "1.5.0-rc.3"},
		needs: "an image whose /dev is a link, and an engine that does not cover it",
	},
	{
		component: Runc, id: "CVE-2026-119101", fixed: []string{"1.5.3"},
		needs: "the restore of a checkpoint",
	},
	{
		component: Crun, id: "CVE-2026-47766", fixed: []string{"1.28"},
		needs: "an image whose /dev is a link",
	},
	{
		component: Crun, id: "CVE-2026-84042", fixed: []string{"1.30"},
		needs: "the krun handler with a network by passt",
	},
	{
		component: Crun, id: "CVE-2026-88264", fixed: []string{"1.30"},
		needs: "a container whose /dev is not a mount of its own, and an image whose /dev/console is a link",
	},
	{
		component: Crun, id: "CVE-2026-88265", fixed: []string{"1.30"},
		needs: "a container whose /dev is not a mount of its own, and an image whose /dev/null is a link",
	},
	{
		component: Containerd, id: "CVE-2020-15257", fixed: []string{"1.3.9", "1.4.3"},
		needs: "a container in the host's network namespace",
	},
	{
		component: Containerd, id: "CVE-2024-40635", fixed: []string{"1.6.38", "1.7.27", "2.0.4"},
		needs: "an image whose user is a number beyond 2147483647",
	},
	{
		component: Containerd, id: "CVE-2024-25621", fixed: []string{"1.7.29", "2.0.7", "2.1.5"},
		needs: "a user of the host beside the container",
	},
	{
		component: Containerd, id: "CVE-2025-47291", from: "2.0.1", fixed: []string{"2.0.5"},
		needs: "pods of Kubernetes in user namespaces, whose limits it does not set",
	},
	{
		component: Containerd, id: "CVE-2025-64329", fixed: []string{"1.7.29", "2.0.7", "2.1.5"},
		needs: "repeated attaching to a container; it uses up the host's memory",
	},
	{
		component: Containerd, id: "CVE-2026-46680", fixed: []string{"1.7.32", "2.0.9", "2.2.4", "2.3.1"},
		needs: "an image whose user is a number out of range",
	},
	{
		component: Docker, id: "CVE-2024-29018", fixed: []string{"23.0.11", "25.0.5", "26.0.0"},
		needs: "an internal network whose names the engine resolves; it is a way out for data",
	},
	{
		component: Podman, id: "CVE-2026-55686", from: "3.0.0", fixed: []string{"5.7.1"},
		needs: "an image whose working folder leads through a link",
	},
	{
		component: GVisor, id: "CVE-2025-2713", fixed: []string{"20250319.0"},
		needs: "a user of the host who starts sandboxes as root",
	},
	{
		component: GVisor, id: "CVE-2026-96812", fixed: []string{"20260818.0"},
		needs: "a device of the host that is passed through",
	},
	{
		component: Firecracker, id: "CVE-2019-18960", from: "0.18.0", fixed: []string{"0.18.1", "0.19.1"},
		needs: "a vsock device",
	},
	{
		component: Firecracker, id: "CVE-2026-1386", fixed: []string{"1.13.2", "1.14.1"},
		needs: "a user of the host who can write to the jailer's folder",
	},
	{
		component: Bubblewrap, id: "CVE-2026-87766", fixed: []string{"0.12.0"},
		needs: "a tree below the new root in which the code placed links beforehand",
	},
}

// packages are the Debian packages that a component may come from, and the file
// in them by which one knows.
var packages = map[string][]string{
	Runc:       {"runc"},
	Crun:       {"crun"},
	Containerd: {"containerd", "containerd.io"},
	Docker:     {"docker.io", "docker-ce"},
	Podman:     {"podman"},
	GVisor:     {"runsc"},
	Bubblewrap: {"bubblewrap"},
}
