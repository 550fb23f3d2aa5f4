package container

import (
	"strings"
	"testing"

	"tranca/internal/advisory"
	"tranca/internal/backend/container/docker"
)

// TestPartsOf holds what the engines tell of their parts, as Docker 20.10 and
// Podman 4.3 do, and that a runtime is only judged by its own version.
func TestPartsOf(t *testing.T) {
	old := &engine{Engine: docker.Engine{Name: "Docker", Version: "20.10.24+dfsg1"}}
	old.info.DefaultRuntime = "runc"
	old.parts.Components = []docker.Component{
		{Name: "Engine", Version: "20.10.24+dfsg1"}, {Name: "containerd", Version: "1.6.20~ds1"}, {Name: "runc", Version: "1.1.5+ds1"},
	}
	podman := &engine{Engine: docker.Engine{Name: "Podman", Version: "4.3.1"}}
	podman.info.DefaultRuntime = "crun"
	podman.parts.Components = []docker.Component{
		{Name: "Podman Engine", Version: "4.3.1"}, {Name: "OCI Runtime (crun)", Version: "crun version 1.8.1\ncommit: x\nspec: 1.0.0"},
	}
	silent := &engine{Engine: docker.Engine{Name: "Docker", Version: "29.4.2"}}
	silent.parts.Components = []docker.Component{{Name: "runc", Version: ""}, {Name: "OCI Runtime (crun)", Version: "\n"}}
	for _, c := range []struct {
		e             *engine
		runtime, want string
		hole          string
	}{
		{old, "", "docker 20.10.24+dfsg1, containerd 1.6.20~ds1, runc 1.1.5+ds1", "CVE-2025-31133"},
		{old, "runc", "docker 20.10.24+dfsg1, containerd 1.6.20~ds1, runc 1.1.5+ds1", "CVE-2025-31133"},
		{old, "runsc", "docker 20.10.24+dfsg1, containerd 1.6.20~ds1", "CVE-2024-40635"},
		{podman, "", "podman 4.3.1, crun 1.8.1", "CVE-2026-88265"},
		{podman, "runc", "podman 4.3.1", "CVE-2026-55686"},
		{silent, "", "docker 29.4.2, runc , crun ", ""},
	} {
		if got := c.e.versions(c.runtime); got != c.want {
			t.Errorf("%s by %q: got %q, want %q", c.e.Name, c.runtime, got, c.want)
		}
		var ids []string
		for _, a := range c.e.advisories(c.runtime) {
			ids = append(ids, a.ID)
		}
		if c.hole == "" && len(ids) > 0 || c.hole != "" && !strings.Contains(strings.Join(ids, " "), c.hole) {
			t.Errorf("%s by %q: %v", c.e.Name, c.runtime, ids)
		}
	}
}

// TestAChangelogIsReadOnce holds that what was read of a part's changelog
// stands in for the file from then on.
func TestAChangelogIsReadOnce(t *testing.T) {
	e := &engine{Engine: docker.Engine{Name: "Podman", Version: "4.3.1"}}
	e.advisories("")
	if _, known := e.logs[advisory.Podman]; !known {
		t.Fatalf("kept: %v", e.logs)
	}
	log, err := advisory.ReadChangelog("podman", strings.NewReader("podman (4.3.1+ds1-8) unstable; urgency=high\n\n  * Mend CVE-2026-55686\n"))
	if err != nil {
		t.Fatal(err)
	}
	e.logs[advisory.Podman] = log
	for _, a := range e.advisories("") {
		if a.ID == "CVE-2026-55686" && a.Patched != "changelog of the Debian package podman" {
			t.Errorf("%+v", a)
		}
	}
}
