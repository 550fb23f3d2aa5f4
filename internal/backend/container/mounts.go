package container

import (
	"tranca"
	"tranca/internal/guest/bootspec"
)

// addMount has the engine show a folder or file of this host.
func (pl *plan) addMount(m *tranca.Mount, source string) {
	writable := m.Writable || m.Cow
	pl.config.HostConfig.Mounts = append(pl.config.HostConfig.Mounts, bind(source, m.Target, !writable))
	if writable {
		pl.boot.Writable = append(pl.boot.Writable, bootspec.Writable{Path: m.Target})
	}
}
