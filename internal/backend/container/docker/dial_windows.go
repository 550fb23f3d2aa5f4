package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// pipe is a named pipe as a connection. The file is one for overlapped use, so
// that reading and writing do not wait for each other.
type pipe struct{ *os.File }

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }

func (p pipe) LocalAddr() net.Addr  { return pipeAddr(p.Name()) }
func (p pipe) RemoteAddr() net.Addr { return pipeAddr(p.Name()) }

func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	for {
		h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING,
			windows.FILE_FLAG_OVERLAPPED|windows.SECURITY_SQOS_PRESENT|windows.SECURITY_ANONYMOUS, 0)
		if err == nil {
			return pipe{os.NewFile(uintptr(h), path)}, nil
		}
		if !errors.Is(err, windows.ERROR_PIPE_BUSY) {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		select { // all instances of the pipe are taken for a moment
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
