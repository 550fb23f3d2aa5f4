package api

import (
	"os"
	"path/filepath"
	"strconv"
)

// SocketName is the name of the server's socket in its folder.
const SocketName = "tranca.sock"

// DefaultSocket returns where this user's server listens: in the folder tranca
// of $XDG_RUNTIME_DIR, else /run/tranca for root, else in a folder of the
// temporary one. The folder is worth something only where it belongs to this
// user or root and nobody else may write to it: anybody may make the last one.
func DefaultSocket() string {
	return defaultSocket(os.Getenv("XDG_RUNTIME_DIR"), os.Geteuid(), os.TempDir())
}

func defaultSocket(runtime string, uid int, temp string) string {
	switch {
	case filepath.IsAbs(runtime):
		return filepath.Join(runtime, "tranca", SocketName)
	case uid == 0:
		return filepath.Join("/run/tranca", SocketName)
	}
	return filepath.Join(temp, "tranca-"+strconv.Itoa(uid), SocketName)
}
