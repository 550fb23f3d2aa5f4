package changeset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestApplyRace swaps a folder of the host for a link that leads out, over and
// over, while a set is applied: nothing is ever written or removed behind it.
func TestApplyRace(t *testing.T) {
	host, upper := map[string]string{}, map[string]string{}
	for i := range 200 {
		n := strconv.Itoa(i)
		host["d/old"+n], host["d/gone"+n] = "old", "gone"
		upper["d/old"+n], upper["d/gone"+n], upper["d/new"+n] = "mine", "!", "mine"
	}
	for range 2 {
		w := newWorld(t, host)
		out := filepath.Join(filepath.Dir(w.host), "out")
		w.make(out, map[string]string{})
		for name := range host {
			w.make(out, map[string]string{strings.TrimPrefix(name, "d/"): "theirs"})
		}
		w.track()
		w.make(w.upper, upper)
		w.copiedUp("d")
		w.read(Bounds{})
		d, aside := filepath.Join(w.host, "d"), filepath.Join(w.host, "aside")
		w.must(os.Symlink(out, aside))
		stop := make(chan struct{})
		var swapping sync.WaitGroup
		swapping.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, aside, unix.RENAME_EXCHANGE)
				}
			}
		})
		for range 12 {
			_, _ = w.store.Apply(context.Background(), testID, ApplyOptions{}) // refused, mostly
		}
		close(stop)
		swapping.Wait()
		for name, content := range tree(t, out) {
			if content != "-rw-r--r-- theirs" {
				t.Fatalf("%s was changed to %q", name, content)
			}
		}
		if n := len(tree(t, out)); n != len(host) {
			t.Fatalf("%d files behind the link, of %d", n, len(host))
		}
	}
}

// TestPutExchanged keeps what the host put there between the look and the step.
func TestPutExchanged(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a", "b": "b", "dir/x": "x"})
	w.track()
	w.make(w.upper, map[string]string{"a": "mine", "b": "!", "new": "mine"})
	set := w.read(Bounds{})
	p, err := newPlan(set, ApplyOptions{})
	w.must(err)
	contents, err := w.store.lock(string(testID))
	w.must(err)
	defer contents.Close()
	a := &applier{ctx: context.Background(), plan: p, contents: contents, report: &Report{}, temp: ".tranca-test"}
	defer a.close()
	w.must(a.look())
	w.replace("a", "theirs")
	w.replace("b", "theirs")
	w.make(w.host, map[string]string{"new": "theirs"})
	a.made = map[*node]uint64{}
	for _, n := range a.plan.order() {
		if err := a.step(n); err == nil {
			t.Errorf("%s was written over", n.Path)
		}
	}
	want := map[string]string{"a": "theirs", "b": "theirs", "new": "theirs", "dir/": "", "dir/x": "x"}
	got := tree(t, w.host)
	if len(got) != len(want) {
		t.Errorf("the host has %v", got)
	}
	for name, content := range want {
		if !strings.HasSuffix(got[name], content) {
			t.Errorf("%s is %q", name, got[name])
		}
	}
}

// TestLease holds a lease of a file, which delays everybody who opens it: for as
// long as the kernel lets its holder take. An open waits for it only so long.
func TestLease(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	f, err := os.Create(filepath.Join(dir.Name(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	if fd, err := openInside(int(dir.Fd()), "f", fileFlags); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("descriptor %d, error %v", fd, err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		t.Fatal(err)
	}
	fd, err := openInside(int(dir.Fd()), "f", fileFlags)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}
