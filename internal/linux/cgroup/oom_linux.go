package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// oomWatch is one group's part in the watching for OOM kills.
type oomWatch struct {
	told chan struct{}
	stop chan struct{}
	wg   sync.WaitGroup
	// waiting says that a confirm runs.
	waiting atomic.Bool
	// event is what becomes ready: a v1 eventfd, or the v2 memory.events.
	event *os.File

	mu   sync.Mutex
	seen int64 // kills that were told of
}

// OOM delivers a value soon after the kernel has killed a process of the code
// for want of memory, once for all kills that come together. It has room for
// one value, and is never closed. Begin takes an old value out. By Stats one
// sees the same, later but surely.
func (g *Group) OOM() <-chan struct{} { return g.oom.told }

// reset forgets what was before.
func (w *oomWatch) reset(seen int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = seen
	select {
	case <-w.told:
	default:
	}
}

// notice tells of new kills, and reports whether there were any.
func (g *Group) notice() bool {
	g.oom.mu.Lock()
	defer g.oom.mu.Unlock()
	kills, err := g.oomKills()
	if err != nil || kills <= g.oom.seen {
		return false
	}
	g.oom.seen = kills
	select {
	case g.oom.told <- struct{}{}:
	default:
	}
	return true
}

// confirm waits until the kernel has counted what it has announced: a v1
// event comes before the kill.
func (g *Group) confirm() {
	defer g.oom.waiting.Store(false)
	for range 200 {
		if g.notice() {
			return
		}
		select {
		case <-g.oom.stop:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// watch has the tree's watcher look after this group.
func (g *Group) watch() error {
	g.oom.told = make(chan struct{}, 1)
	g.oom.stop = make(chan struct{})
	if g.memory == nil {
		return nil
	}
	w, err := g.tree.watcher()
	if err != nil {
		return err
	}
	if g.memory.v2 {
		g.oom.event, err = g.memory.open("memory.events", unix.O_RDONLY)
	} else {
		g.oom.event, err = g.openEvent()
	}
	if err != nil {
		return err
	}
	return w.add(g)
}

// openEvent makes an eventfd that the kernel signals when a v1 group is out
// of memory.
func (g *Group) openEvent() (*os.File, error) {
	// A blocking one, so that the runtime's poller lets it be: the watcher
	// polls it.
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cgroup: eventfd: %w", err)
	}
	control, err := g.memory.open("memory.oom_control", unix.O_RDONLY)
	if err == nil {
		err = g.memory.write("cgroup.event_control", strconv.Itoa(fd)+" "+strconv.Itoa(int(control.Fd())))
		control.Close()
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "oom event"), nil
}

// stopWatch ends the watching; nothing of it runs afterwards.
func (g *Group) stopWatch() {
	if g.oom.event == nil {
		return
	}
	if w, err := g.tree.watcher(); err == nil {
		w.remove(g)
	}
	close(g.oom.stop)
	g.oom.wg.Wait()
	g.oom.event.Close()
	g.oom.event = nil
}

// watcher looks after all groups of a tree with one goroutine and no thread:
// an epoll descriptor that the runtime's poller polls in turn.
type watcher struct {
	epoll *os.File
	conn  syscall.RawConn
	done  chan struct{}

	mu     sync.Mutex
	groups map[int32]*Group // by the descriptor of their event
}

// watcher returns the tree's watcher, and starts it when it is first needed.
func (t *Tree) watcher() (*watcher, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.events != nil {
		return t.events, nil
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cgroup: epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cgroup: epoll: %w", err)
	}
	w := &watcher{
		epoll:  os.NewFile(uintptr(fd), "epoll"),
		done:   make(chan struct{}),
		groups: map[int32]*Group{},
	}
	if w.conn, err = w.epoll.SyscallConn(); err != nil {
		w.epoll.Close()
		return nil, fmt.Errorf("cgroup: epoll: %w", err)
	}
	go w.run()
	t.events = w
	return w, nil
}

func (w *watcher) add(g *Group) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fd := int32(g.oom.event.Fd())
	w.groups[fd] = g
	// An eventfd is read from; memory.events is always ready for that, and
	// signals a change by POLLPRI.
	interest := uint32(unix.EPOLLIN | unix.EPOLLET)
	if g.memory.v2 {
		interest = unix.EPOLLPRI | unix.EPOLLET
	}
	err := w.control(unix.EPOLL_CTL_ADD, fd, interest)
	if err != nil {
		delete(w.groups, fd)
	}
	return err
}

func (w *watcher) remove(g *Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fd := int32(g.oom.event.Fd())
	if w.groups[fd] == g {
		delete(w.groups, fd)
		_ = w.control(unix.EPOLL_CTL_DEL, fd, 0)
	}
}

func (w *watcher) control(op int, fd int32, interest uint32) error {
	var err error
	event := unix.EpollEvent{Events: interest, Fd: fd}
	if ctl := w.conn.Control(func(epoll uintptr) {
		err = unix.EpollCtl(int(epoll), op, int(fd), &event)
	}); ctl != nil {
		err = ctl
	}
	if err != nil {
		return fmt.Errorf("cgroup: epoll: %w", err)
	}
	return nil
}

func (w *watcher) run() {
	defer close(w.done)
	var events [64]unix.EpollEvent
	for {
		var n int
		var err error
		closed := w.conn.Read(func(epoll uintptr) bool {
			n, err = unix.EpollWait(int(epoll), events[:], 0)
			return n != 0 || (err != nil && !errors.Is(err, unix.EINTR))
		})
		if closed != nil || (err != nil && !errors.Is(err, unix.EINTR)) {
			return
		}
		for _, e := range events[:max(n, 0)] {
			w.ready(e.Fd)
		}
	}
}

// ready handles one event. That of a group which has just gone is no harm:
// what is told is found in the counters.
func (w *watcher) ready(fd int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[fd]
	if g == nil {
		return
	}
	if !g.memory.v2 {
		if g.oom.waiting.CompareAndSwap(false, true) {
			g.oom.wg.Go(g.confirm)
		}
		return
	}
	// Reading through the same descriptor arms the event again.
	var b [512]byte
	_, _ = unix.Pread(int(fd), b[:], 0)
	g.notice()
}

// close ends the watcher's goroutine.
func (w *watcher) close() {
	w.epoll.Close()
	<-w.done
}
