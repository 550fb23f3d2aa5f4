package hostsetup

import (
	"fmt"
	"os"
	"strings"
)

const dropIn = "etc/systemd/system/user@.service.d/tranca.conf"

const dropInText = "# Made by tranca setup.\n[Service]\nDelegate=cpu cpuset io memory pids\n"

// delegation lets the user limit memory, processor and processes of a tree of
// processes.
func delegation(h Host) Step {
	s := Step{
		Title: "Control groups: let " + h.User + " set limits on own processes",
		Why: "Limits on memory, CPU and processes of a whole tree are made by control groups.\n" +
			"This lets users set them below their own session; it lifts no limit of theirs.",
	}
	if _, err := os.Stat(h.path("run/systemd/system")); err == nil {
		return delegateBySystemd(h, s)
	}
	if _, err := os.Stat(h.path("sys/fs/cgroup/cgroup.controllers")); err == nil {
		return delegateUnified(h, s)
	}
	return delegateV1(h, s)
}

func delegateBySystemd(h Host, s Step) Step {
	file := h.path(dropIn)
	folder := file[:strings.LastIndexByte(file, '/')]
	s.Why += "\nIt holds from the next login on (or: systemctl restart user@UID.service, which\nends that user's session)."
	s.Undo = []string{"rm -f " + file, "systemctl daemon-reload"}
	if have, err := os.ReadFile(file); err == nil && string(have) == dropInText {
		s.Done = true
		return s
	}
	s.Do = []string{
		"mkdir -p " + folder,
		fmt.Sprintf("cat > %s <<'END'\n%sEND", file, dropInText),
		"systemctl daemon-reload",
	}
	return s
}

const reboot = "\nIt is gone after a restart of the host: put the lines into its start-up script."

// delegateUnified hands over one group of cgroup v2. A process can only move
// below a group that it may write, so the user's shell has to be put there.
func delegateUnified(h Host, s Step) Step {
	base := h.path("sys/fs/cgroup")
	group := base + "/tranca-" + h.User
	s.Why += reboot
	s.Undo = []string{fmt.Sprintf("if [ -d %s ]; then find %s -depth -type d -exec rmdir {} +; fi", group, group)}
	if ownedBy(group, h.UID) {
		s.Done = true
		return s
	}
	s.Do = []string{
		fmt.Sprintf("echo '+cpu +memory +pids' > %s/cgroup.subtree_control", base),
		"mkdir -p " + group,
		fmt.Sprintf("chown %s %s %s/cgroup.procs %s/cgroup.threads %s/cgroup.subtree_control", h.User, group, group, group, group),
		fmt.Sprintf("# Then put each shell that is to run tranca there: echo PID > %s/cgroup.procs", group),
		tell(group),
	}
	return s
}

// v1Controllers are the controllers of cgroup v1 that limits need.
var v1Controllers = []string{"cpu", "cpuacct", "memory", "pids", "freezer"}

func delegateV1(h Host, s Step) Step {
	base := h.path("sys/fs/cgroup")
	s.Why += reboot
	s.Done = true
	var groups []string
	for _, c := range v1Controllers {
		if _, err := os.Stat(base + "/" + c); err != nil {
			continue
		}
		group := base + "/" + c + "/tranca-" + h.User
		s.Undo = append(s.Undo, fmt.Sprintf("if [ -d %s ]; then find %s -depth -type d -exec rmdir {} +; fi", group, group))
		s.Do = append(s.Do, "mkdir -p "+group, fmt.Sprintf("chown -R %s %s", h.User, group))
		s.Done = s.Done && ownedBy(group, h.UID)
		groups = append(groups, group)
	}
	s.Do = append(s.Do, tell(groups...))
	if len(groups) == 0 {
		s.Done, s.Do = false, nil
		s.Blocked = "no control groups are mounted under " + base
	}
	return s
}

// tell is a line that says how tranca learns of groups. Where there is no
// systemd, nobody else would tell it.
func tell(groups ...string) string {
	return "# and tell tranca of it: export TRANCA_CGROUP=" + strings.Join(groups, ":")
}
