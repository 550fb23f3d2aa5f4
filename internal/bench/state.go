package bench

import (
	"fmt"
	"path/filepath"

	"tranca"
)

// StatePath returns where a user's last whole result is kept. getenv is
// [os.Getenv].
func StatePath(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tranca", "bench.json"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "tranca", "bench.json"), nil
	}
	return "", fmt.Errorf("%w: there is no place for results: neither XDG_STATE_HOME nor HOME is set to an absolute path", tranca.ErrUnavailable)
}
