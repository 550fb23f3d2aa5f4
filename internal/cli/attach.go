package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"tranca"
	"tranca/client"
	"tranca/internal/terminal"
)

func unfilteredFlag() cli.Flag {
	return &cli.BoolFlag{Name: "unfiltered", Usage: "pass all that a program with a terminal writes to this one, as ssh does"}
}

// termName reports whether a kind of terminal may be handed on.
func termName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '+' && r != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// terminalSize is the size of this process's terminal, or the usual one.
func (a *app) terminalSize() tranca.TerminalSize {
	for _, v := range []any{a.Stdout, a.Stdin, a.Stderr} {
		f, ok := v.(*os.File)
		if !ok || f == nil {
			continue
		}
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err == nil && columns > 0 && rows > 0 && columns < 1<<16 && rows < 1<<16 {
			return tranca.TerminalSize{Rows: uint16(rows), Columns: uint16(columns)}
		}
	}
	return tranca.TerminalSize{Rows: 24, Columns: 80}
}

// attachment connects this process's terminal with a program that has one in
// its sandbox.
type attachment struct {
	a *app
	p *client.Process
	// input is what is typed; nil is nothing.
	input io.Reader
	// from is where its output begins.
	from int64
	// escapes looks for the sequences that mean tranca.
	escapes    bool
	unfiltered bool

	keyboard keyboard
	out      io.Writer
}

// errDetached ends an attachment, and not the program.
var errDetached = errors.New("detached")

// run returns when the program has ended, the connection is lost, or the
// attachment was ended from here: by its sequence with [errDetached], by a
// signal with a [signalError]. The terminal is as it was before.
func (t *attachment) run(ctx context.Context) error {
	if t.input != nil {
		if err := t.keyboard.open(t.input); err != nil {
			return err
		}
	}
	defer t.keyboard.close()
	screen := &screen{w: t.a.Stdout}
	if terminal.Is(t.a.Stdout) && !t.unfiltered {
		screen.guard = terminal.NewGuard(t.a.Stdout)
	}
	t.out = screen
	defer screen.close()
	ctx, w, stop := watchOver(ctx, t.p, func(status int) {
		t.keyboard.close()
		t.a.Quit(status)
	})
	defer stop()
	resized, still := terminalChanges()
	defer still()
	go t.guarded(func() { t.resize(ctx, resized) })
	if t.input != nil {
		go t.guarded(func() { t.forward(ctx, w) })
	}
	err := t.a.follow(ctx, t.p.Follow(client.FollowOptions{StdoutFrom: t.from}), &ending{t.out, w}, t.a.Stderr)
	if why := w.reason(); why != nil {
		return why
	}
	return err
}

// guarded leaves the terminal usable if work panics.
func (t *attachment) guarded(work func()) {
	defer func() {
		if r := recover(); r != nil {
			t.keyboard.close()
			panic(r)
		}
	}()
	work()
}

// screen is where the program draws, and where what a person asks tranca is
// answered, by another goroutine.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	guard *terminal.Guard // nil where all passes
	ended bool
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return len(p), nil
	case s.guard != nil:
		return s.guard.Write(p)
	}
	return s.w.Write(p)
}

// close takes back what the program changed. Nothing is written after that.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.guard != nil {
		_ = s.guard.Restore()
	}
}

// ending is a writer whose failure ends the program.
type ending struct {
	io.Writer
	w *warden
}

func (e *ending) Write(p []byte) (int, error) {
	n, err := e.Writer.Write(p)
	switch {
	case err == nil:
	case brokenPipe(err):
		e.w.end(errReaderGone)
	default:
		e.w.abandon(fmt.Errorf("the output can't be written: %w", err))
	}
	return n, err
}

// resize tells the program of each change of this terminal's size.
func (t *attachment) resize(ctx context.Context, changed <-chan os.Signal) {
	told := t.a.terminalSize()
	if info := t.p.Info(); info.Terminal != nil && *info.Terminal != told {
		t.tell(ctx, told) // it was another one's, or changed meanwhile
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		t.keyboard.again()
		if now := t.a.terminalSize(); now != told {
			told = now
			t.tell(ctx, now)
		}
	}
}

// tell gives up where it can't: what follows the output notices why.
func (t *attachment) tell(ctx context.Context, size tranca.TerminalSize) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_ = t.p.Resize(ctx, size)
}

// forward gives the program what is typed.
func (t *attachment) forward(ctx context.Context, w *warden) {
	in := t.p.Stdin(ctx)
	e := &escapes{}
	buf := make([]byte, 32<<10)
	for {
		n, err := t.input.Read(buf)
		typed, command := buf[:n], byte(0)
		if t.escapes && t.keyboard.raw() {
			typed, command = e.filter(typed)
		}
		if len(typed) > 0 {
			if _, err := in.Write(typed); err != nil {
				return // it has ended, or the connection has: its output says so
			}
		}
		switch {
		case command == '.':
			w.abandon(errDetached)
			return
		case command == '?':
			fmt.Fprint(t.out, escapeHelp)
		}
		if err != nil {
			t.ended(in, w)
			return
		}
	}
}

// ended says that nothing more is typed. A terminal of this process that ends
// has hung up; a file that ends is an end of file for the program, which in a
// terminal is a key.
func (t *attachment) ended(in io.WriteCloser, w *warden) {
	if t.keyboard.raw() {
		w.end(&signalError{syscall.SIGHUP})
	} else {
		_, _ = in.Write([]byte{endOfFile, endOfFile}) // the first may only end a line
	}
	_ = in.Close()
}

// endOfFile is Ctrl-D.
const endOfFile = 4

// keyboard is a terminal that is typed at, in raw mode.
type keyboard struct {
	mu     sync.Mutex
	fd     int
	before *term.State
}

// open puts r into raw mode, if it is a terminal.
func (k *keyboard) open(r io.Reader) error {
	if !terminal.Is(r) {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fd = int(r.(*os.File).Fd())
	before, err := term.MakeRaw(k.fd)
	if err != nil {
		return fmt.Errorf("the terminal's raw mode: %w", err)
	}
	k.before = before
	return nil
}

func (k *keyboard) raw() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.before != nil
}

// again sets raw mode once more: a shell may have changed it while this process
// was stopped.
func (k *keyboard) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.before != nil {
		_, _ = term.MakeRaw(k.fd)
	}
}

// close sets what was there before. Idempotent.
func (k *keyboard) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.before != nil {
		_ = term.Restore(k.fd, k.before)
		k.before = nil
	}
}
