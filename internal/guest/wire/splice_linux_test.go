package wire

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// socketPair returns two ends of a socket, of which the second may block.
func socketPair(t *testing.T, blocking bool) (a, b io.ReadWriteCloser) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range fds {
		if err := unix.SetNonblock(fd, i == 0 || !blocking); err != nil {
			t.Fatal(err)
		}
	}
	return os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "guest")
}

// fullPipe returns the ends of a pipe of this process only that holds data.
func fullPipe(t *testing.T, data []byte) (r int) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	if _, err := unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, MaxPayload); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Write(fds[1], data); err != nil || n != len(data) {
		t.Fatal(n, err)
	}
	return fds[0]
}

// TestSendPipe shows that a pipe's bytes come as any others do, also where they
// are copied: over no socket, and over one that blocks.
func TestSendPipe(t *testing.T) {
	for name, make := range map[string]func(*testing.T) (a, b io.ReadWriteCloser){
		"socket":   func(t *testing.T) (a, b io.ReadWriteCloser) { return socketPair(t, false) },
		"blocking": func(t *testing.T) (a, b io.ReadWriteCloser) { return socketPair(t, true) },
		"no socket": func(*testing.T) (a, b io.ReadWriteCloser) {
			x, y := net.Pipe()
			return x, y
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := make(t)
			var want []byte
			opens, answers := New(a, Config{}), New(b, Config{Handler: func(c *Call) {
				for i := 1; i <= MaxPayload; i *= 4 {
					data := bytes.Repeat([]byte{'a', byte(i), 'z'}, i/3+1)[:max(i-2, 1)]
					if err := c.SendPipe(context.Background(), []byte("p:"), fullPipe(t, data), len(data)); err != nil {
						t.Error(err)
					}
					want = append(append(want, "p:"...), data...)
				}
				_ = c.CloseSend()
			}})
			var runs sync.WaitGroup
			defer runs.Wait()
			runs.Go(func() { _ = opens.Run() })
			runs.Go(func() { _ = answers.Run() })
			defer opens.Fail(io.EOF)
			call, err := opens.Open(ctx(t), "m", 0, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			defer call.Close()
			var got []byte
			for {
				b, err := call.Recv(ctx(t))
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, b.Bytes()...)
				b.Free()
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes came, want %d", len(got), len(want))
			}
		})
	}
}

// TestSpliceMoves shows that bytes are moved where the kernel can, and that
// those that it can't move are still there.
func TestSpliceMoves(t *testing.T) {
	a, b := socketPair(t, false)
	defer a.Close()
	defer b.Close()
	data := bytes.Repeat([]byte("x"), 10_000)
	pipe := fullPipe(t, data)
	raw, err := b.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if n := splice(raw, pipe, 4_000); n != 4_000 {
		t.Errorf("%d of 4000 bytes moved", n)
	}
	b.Close()
	if n := splice(raw, pipe, 6_000); n != 0 {
		t.Errorf("%d bytes moved to a closed socket", n)
	}
	if n, err := unix.IoctlGetInt(pipe, unix.TIOCINQ); err != nil || n != 6_000 {
		t.Errorf("%d bytes are left: %v", n, err)
	}
}
