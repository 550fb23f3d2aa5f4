package container

import (
	"path"
	"path/filepath"

	"tranca"
	"tranca/internal/backend/container/docker"
	"tranca/internal/confine"
)

// engineMounts has the engine make the mounts, by path. Somebody could put
// another file there in between: the agent looks whether it is the same that
// was opened here, before any code runs.
func (b *Backend) engineMounts(e *engine, pl *plan) error {
	if pl.guest && len(pl.policy.Mounts) > 0 {
		return &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
			Item: tranca.ItemMounts, Asked: "mount " + pl.policy.Mounts[0].Source,
			Missing: "the engine mounts by path, and a runtime with a kernel of its own hides what was mounted then",
			Mend:    "choose --backend gvisor, or run tranca as root beside a rootful engine",
		}}}
	}
	for i := range pl.policy.Mounts {
		if err := b.engineMount(e, pl, &pl.policy.Mounts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) engineMount(e *engine, pl *plan, m *tranca.Mount) error {
	src, err := confine.OpenSource(m)
	if err != nil {
		return err
	}
	defer src.Close()
	pl.addMount(m, m.Source)
	if err := pl.expectSame(m.Target, src.FD()); err != nil {
		return err
	}
	add := func(d docker.Mount) { pl.config.HostConfig.Mounts = append(pl.config.HostConfig.Mounts, d) }
	for _, p := range src.Bind.Pin {
		add(bind(filepath.Join(m.Source, p), path.Join(m.Target, p), false))
	}
	for _, p := range src.Bind.Protect {
		add(bind(filepath.Join(m.Source, p), path.Join(m.Target, p), true))
	}
	for _, c := range src.Bind.Deny {
		target := path.Join(m.Target, c.Path)
		pl.boot.Hidden = append(pl.boot.Hidden, target)
		if c.File {
			add(bind(b.files.empty, target, true))
			continue
		}
		pl.config.HostConfig.Tmpfs[target] = "ro,nosuid,nodev,noexec,size=4096,mode=0000" + e.emptyTmpfs()
	}
	return nil
}
