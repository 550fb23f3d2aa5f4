//go:build unix

package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tranca"
)

// trustedFolder refuses the default socket where somebody else may have put it
// there: what is sent to it would be sent to him.
func trustedFolder(socket string) error {
	folder := filepath.Dir(socket)
	info, err := os.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody listens, which the first call says
	}
	if err != nil {
		return fmt.Errorf("%w: the folder of the server's socket: %w", tranca.ErrRefused, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	own := ok && (int(st.Uid) == os.Geteuid() || st.Uid == 0)
	if !info.IsDir() || !own || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %s belongs to somebody else, or others may write to it, so the socket in it may be theirs: name the server's socket if it is yours all the same",
			tranca.ErrRefused, folder)
	}
	return nil
}
