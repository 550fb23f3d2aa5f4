package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// largestPipe is what every user may make a pipe hold, unless the host says
// otherwise.
const largestPipe = 1 << 20

// makeRoom makes a pipe large enough to take more bytes at once, and some for
// what is said afterwards. Where it can't, its reader must read.
func makeRoom(w io.Writer, more int) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		held, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		if err != nil {
			return // it is no pipe
		}
		// What it holds already may all be unread.
		if _, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, held+more+4096); err != nil {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, largestPipe)
		}
	})
}
