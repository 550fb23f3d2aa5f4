package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/terminal"
)

const portHelp = `Listens here, and connects whoever comes with a TCP port of the sandbox's own
loopback. That gives the sandbox no network. Whoever reaches the address reaches
what listens inside: keep it on this host, or know who else is there.

Prints the address once it listens. Ctrl-C ends it.

Examples:
  tranca port $id 8000
  tranca port $id 8000 --listen 127.0.0.1:0

`

func (a *app) portCommand() *cli.Command {
	return &cli.Command{
		Name:        "port",
		Usage:       "reach a port that a program listens at in a sandbox",
		ArgsUsage:   "ID PORT",
		Description: portHelp + statusHelp("0      Ctrl-C ended it"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "listen at this `HOST:PORT`; port 0 is a free one (127.0.0.1 and the same port)", HideDefault: true},
			serverFlag(),
		},
		Action: a.port,
	}
}

func (a *app) port(ctx context.Context, c *cli.Command) error {
	if err := argumentCount(c, 2, 2); err != nil {
		return err
	}
	port, err := strconv.Atoi(c.Args().Get(1))
	if err != nil || port < 1 || port > 65535 {
		return &usageError{c.FullName(), fmt.Sprintf("%q is no port: want 1 to 65535", c.Args().Get(1))}
	}
	err = a.withSandbox(ctx, c, 2, 2, func(ctx context.Context, box *client.Sandbox) error {
		address := c.String("listen")
		if address == "" {
			address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("listen at %s (choose another place by --listen 127.0.0.1:0): %w", address, err)
		}
		f := &forwarder{a: a, box: box, port: port, free: make(chan struct{}, maxForwarded)}
		return f.run(ctx, l)
	})
	var caught *signalError
	if errors.As(err, &caught) && caught.signal == syscall.SIGINT {
		return nil
	}
	return err
}

// maxForwarded bounds the connections at once. More wait to be accepted.
const maxForwarded = 256

// forwarder connects those who come to a listener with a port inside.
type forwarder struct {
	a    *app
	box  *client.Sandbox
	port int
	free chan struct{}

	mu   sync.Mutex
	told time.Time // when it was last said that nobody listens inside
}

// run forwards until ctx ends or the sandbox has.
func (f *forwarder) run(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if host, ok := l.Addr().(*net.TCPAddr); ok && !host.IP.IsLoopback() {
		fmt.Fprintln(f.a.Stderr, "tranca: whoever reaches this address from elsewhere reaches the sandbox's port")
	}
	if _, err := fmt.Fprintln(f.a.Stdout, l.Addr()); err != nil {
		return err
	}
	for {
		select {
		case f.free <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		open.Go(func() {
			defer func() { <-f.free }()
			if err := f.serve(ctx, conn); errors.Is(err, tranca.ErrGone) || errors.Is(err, tranca.ErrUnsupported) {
				cancel(err)
			}
		})
	}
}

// serve serves one connection, and returns why there was none inside.
func (f *forwarder) serve(ctx context.Context, outer net.Conn) error {
	defer outer.Close()
	inner, err := f.box.Dial(ctx, f.port)
	if err != nil {
		f.say(ctx, err)
		if tcp, ok := outer.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // refused, as inside
		}
		return err
	}
	defer inner.Close()
	stop := context.AfterFunc(ctx, func() {
		outer.Close()
		inner.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { oneWay(inner, outer, inner.CloseWrite) })
	both.Go(func() { oneWay(outer, inner, closeWrite(outer)) })
	both.Wait()
	return nil
}

// oneWay passes bytes on until there are no more, and says so. Where they can't
// be passed on any more, both connections end.
func oneWay(dst io.WriteCloser, src io.ReadCloser, end func() error) {
	if _, err := io.Copy(struct{ io.Writer }{dst}, struct{ io.Reader }{src}); err != nil {
		dst.Close()
		src.Close()
		return
	}
	_ = end()
}

func closeWrite(c net.Conn) func() error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite
	}
	return c.Close
}

// say tells why a connection failed, not more often than a person reads.
func (f *forwarder) say(ctx context.Context, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil || time.Since(f.told) < time.Second {
		return
	}
	f.told = time.Now()
	fmt.Fprintln(f.a.Stderr, "tranca: "+terminal.Clean(plain(err)))
}
