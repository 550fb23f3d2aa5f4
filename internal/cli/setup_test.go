package cli

import (
	"testing"

	"tranca/internal/require"
)

// "sudo tranca setup" is the mend that refusals name, so it has to be for who
// typed it.
func TestSetupIsForWhoCalledSudo(t *testing.T) {
	require.Root(t)
	for _, c := range []struct{ sudo, flag, want string }{
		{"nobody", "", "nobody"}, {"", "", "root"}, {"nobody", "daemon", "daemon"},
	} {
		a := &app{World: World{Getenv: func(name string) string {
			if name == "SUDO_USER" {
				return c.sudo
			}
			return ""
		}}}
		host, err := a.setupHost(c.flag)
		if err != nil || host.User != c.want {
			t.Errorf("behind sudo of %q with --user %q: for %q, %v; want %q", c.sudo, c.flag, host.User, err, c.want)
		}
	}
}
