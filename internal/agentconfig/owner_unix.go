//go:build unix

package agentconfig

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file belongs to the caller or to root.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int64(st.Uid) == int64(os.Geteuid()))
}
