package agent

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

const (
	// watchCheck is how often a watch looks whether its folder is still there:
	// the kernel says nothing while somebody holds it open.
	watchCheck = 5 * time.Second
	// lateWait is how long a folder that was elsewhere is waited for.
	lateWait = 20 * time.Millisecond
	// anewWait is the least time between two looks through the whole tree; it
	// is longer where such a look takes long.
	anewWait = 100 * time.Millisecond
)

// watch tells of changes in a folder until the caller gives the call up or the
// folder is gone.
func (a *agent) watch(c *wire.Call) error {
	var req message.WatchDirRequest
	if err := receive(c, &req); err != nil {
		return err
	}
	path := a.watched(req.Path)
	if !take(&a.watches.running, 1, maxWatches) {
		return tooMany(path, maxWatches, "folders or trees")
	}
	defer a.watches.running.Add(-1)
	in, err := newInotify()
	if err != nil {
		return onPath("watching", path, err)
	}
	defer in.f.Close()
	w := &watch{
		watchTree: watchTree{
			a: a, in: in, path: path, all: make(map[int32]*node), q: newChanges(),
			givenUp: func() bool { return a.givenUp(c) },
		},
		recursive: req.Recursive,
	}
	defer w.end()
	if err := w.begin(req.Recursive); err != nil {
		return err
	}
	start := message.WatchDirResponse{Start: true}
	if err := c.Send(context.Background(), start.Append(nil), false); err != nil {
		return err
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		a.tellChanges(c, w.q)
		in.stop()
	}()
	err = w.run()
	w.q.close()
	<-told
	return err
}

// watched makes a path absolute. A slash at its end would lead through a link.
func (a *agent) watched(path string) string {
	if trimmed := strings.TrimRight(a.abs(path), "/"); trimmed != "" {
		return trimmed
	}
	return "/"
}

// tellChanges sends what is held until the last, or until nobody waits for it.
func (a *agent) tellChanges(c *wire.Call, q *changes) {
	var b []byte
	for {
		held, last := q.take()
		for _, h := range held {
			m := message.WatchDirResponse{Overflow: h == overflow}
			if !m.Overflow {
				m.Filesystem = &message.FilesystemEvent{Name: h.name, Type: h.kind}
			}
			b = m.Append(b[:0])
			if c.Send(context.Background(), b, false) != nil {
				return
			}
		}
		if last {
			return
		}
		if len(held) > 0 {
			continue
		}
		select {
		case <-q.wake:
		case <-c.Reseted():
			return
		case <-a.sess.Done():
			return
		}
	}
}

// watch is a watch under way. One goroutine has it.
type watch struct {
	watchTree
	recursive bool
	next      time.Time // no look through the whole tree before
}

// run follows the kernel's events until the watch is given up or its folder is
// gone.
func (w *watch) run() error {
	check := time.Now().Add(watchCheck)
	for {
		deadline := check
		if w.lost && w.next.Before(deadline) {
			deadline = w.next
		}
		if soon := time.Now().Add(lateWait); len(w.late) > 0 && soon.Before(deadline) {
			deadline = soon
		}
		if _, err := w.in.fill(deadline); err != nil {
			return err
		}
		for {
			n, ok := w.in.next()
			if !ok {
				break
			}
			if err := w.handle(&n); err != nil {
				return err
			}
		}
		if err := w.mend(time.Now(), &check); err != nil {
			return err
		}
	}
}

// mend brings the tree in order again, and looks now and then whether the root
// is still there.
func (w *watch) mend(now time.Time, check *time.Time) error {
	if late := w.late; len(late) > 0 {
		w.late = nil
		for _, n := range late {
			if err := w.retry(n); err != nil {
				return err
			}
		}
	}
	tick := now.After(*check)
	if tick {
		*check = now.Add(watchCheck)
		if err := w.verify(w.root); err != nil {
			return err
		}
		// Folders that are not watched change in silence. That is said as long
		// as it is so.
		if w.partial {
			w.lose()
		}
	}
	if !w.lost {
		return nil
	}
	if now.Before(w.next) {
		return nil
	}
	return w.anew(now)
}

// retry looks once more for a folder that was elsewhere.
func (w *watch) retry(n *node) error {
	if w.all[n.wd] != n || w.lost {
		return nil
	}
	if n.unread {
		return w.scan([]*node{n}, true)
	}
	return w.verify(n)
}

// anew makes the tree below the root once more. What changed meanwhile was
// missed, so that the overflow is told behind it.
func (w *watch) anew(now time.Time) error {
	w.lost, w.partial, w.late = false, false, nil
	for _, n := range w.root.below {
		w.drop(n)
	}
	var err error
	if w.recursive {
		err = w.scan([]*node{w.root}, false)
	}
	took := time.Since(now)
	w.next = now.Add(max(anewWait, 10*took))
	w.q.put(overflow)
	return err
}

// handle takes one event of the kernel.
func (w *watch) handle(e *notice) error {
	if e.is(unix.IN_Q_OVERFLOW) {
		w.lose()
		return nil
	}
	n := w.all[e.wd]
	if n == nil {
		return nil
	}
	if n == w.root && e.is(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) {
		return errRootGone
	}
	if e.is(unix.IN_IGNORED) {
		// The kernel has dropped it already, and never gives its number again
		// soon.
		w.drop(n)
		return nil
	}
	if e.name == "" || w.lost {
		return nil // of the folder itself, which the one that holds it tells; or all is made anew
	}
	return w.change(n, e)
}

// change takes a change of a name in a folder.
func (w *watch) change(n *node, e *notice) error {
	folder := w.recursive && e.is(unix.IN_ISDIR)
	below := n.below[e.name]
	switch {
	case e.is(unix.IN_CREATE | unix.IN_MOVED_TO):
		if !folder || below == nil { // else it was told when it was found
			w.tell(n, e.name, message.EventCreate)
		}
		return w.appeared(folder, n, e.name)
	case e.is(unix.IN_MOVED_FROM):
		w.tell(n, e.name, message.EventRename)
		if folder && below != nil {
			if err := w.follow(below, e.cookie); err != nil {
				return err
			}
		}
		// Where two folders took each other's place, the other one is here: it
		// was told before this one left.
		return w.appeared(folder, n, e.name)
	case e.is(unix.IN_ATTRIB):
		w.tell(n, e.name, message.EventChmod)
		// Perhaps it can be looked into now.
		return w.appeared(folder && below == nil, n, e.name)
	case e.is(unix.IN_MODIFY):
		w.tell(n, e.name, message.EventWrite)
	case e.is(unix.IN_DELETE):
		w.tell(n, e.name, message.EventRemove)
		if below != nil {
			w.drop(below)
		}
	}
	return nil
}

func (w *watch) appeared(folder bool, n *node, name string) error {
	if !folder {
		return nil
	}
	_, err := w.adopt(n, name)
	return err
}

// follow takes a watched folder to where it was renamed to, with all below it.
// One that left what is watched is watched no more.
//
// The tree may be ahead of the kernel's events, by what a look at the folders
// themselves has shown: then another folder may have the old name by now. So it
// is looked at what stands under the new one.
func (w *watch) follow(n *node, cookie uint32) error {
	e, found, err := w.in.otherHalf(cookie)
	if err != nil {
		return err
	}
	to := w.all[e.wd]
	if !found || to == nil {
		w.drop(n)
		return nil
	}
	w.tell(to, e.name, message.EventCreate)
	there, err := w.adopt(to, e.name)
	if err != nil || there == n {
		return err
	}
	if there == nil && !n.holds(to) {
		// It has moved on. The events of that come later.
		w.place(n, to, e.name)
	}
	if w.all[n.wd] != n {
		w.lose()
		return nil
	}
	return w.verify(n)
}
