// Package statefile says where results are kept that later commands of the same
// user go by.
package statefile

import (
	"fmt"
	"path/filepath"

	"tranca"
)

// The files of results.
const (
	Bench   = "bench.json"
	Hostile = "hostile.json"
)

// Path returns the path of a file: in the folder tranca of XDG_STATE_HOME, else
// of ~/.local/state. The error wraps [tranca.ErrUnavailable] where there is
// neither. getenv is [os.Getenv].
func Path(getenv func(string) string, name string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tranca", name), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "tranca", name), nil
	}
	return "", fmt.Errorf("%w: there is no place for results: neither XDG_STATE_HOME nor HOME is set to an absolute path", tranca.ErrUnavailable)
}
