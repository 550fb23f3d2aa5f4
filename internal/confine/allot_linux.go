package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"tranca/internal/linux/cgroup"
	"tranca/internal/linux/idrange"
	"tranca/internal/linux/netns"
)

// Allotment is what a sandbox has of its own before any process of it exists:
// user ids, control groups and, made ahead, a network namespace.
type Allotment struct {
	Asked cgroup.Limits  // what the groups were made for, without an owner
	Block *idrange.Block // nil where only the caller's own user is to be had
	Group *cgroup.Group  // nil where no cgroup is to be had
	// Network is a network namespace that was made ahead; nil where the
	// agent's process gets a new one, as it must without root.
	Network *os.File
}

// GiveBack returns all of it. Every process in it must be dead.
func (a *Allotment) GiveBack() error {
	var errs []error
	if a.Group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), destroyTime)
		defer cancel()
		errs = append(errs, a.Group.Destroy(ctx))
	}
	if a.Block != nil {
		errs = append(errs, a.Block.Release())
	}
	if a.Network != nil {
		errs = append(errs, a.Network.Close())
	}
	return errors.Join(errs...)
}

// Shelf holds one Allotment ahead of its use, for the limits that were asked
// for last: making one takes a tenth of a boot. There is none before the second
// use, since a command that runs once would make it in vain.
type Shelf struct {
	host   *Host
	mu     sync.Mutex
	uses   int
	spare  *Allotment
	making bool
	closed bool
	work   sync.WaitGroup
}

// NewShelf makes an empty one.
func NewShelf(h *Host) *Shelf { return &Shelf{host: h} }

// Take takes user ids and makes the groups, or takes what is there.
func (s *Shelf) Take(l cgroup.Limits) (*Allotment, error) {
	s.mu.Lock()
	a := s.spare
	s.spare = nil
	s.uses++
	s.mu.Unlock()
	if a != nil && a.Asked == l {
		return a, nil
	}
	if a != nil {
		if err := a.GiveBack(); err != nil {
			return nil, fmt.Errorf("control group that was made ahead: %w", err)
		}
	}
	return s.host.allot(l)
}

func (h *Host) allot(l cgroup.Limits) (*Allotment, error) {
	a := &Allotment{Asked: l}
	var err error
	if h.IDs != nil {
		if a.Block, err = h.IDs.Acquire(); err != nil {
			return nil, fmt.Errorf("user ids: %w", err)
		}
	}
	if h.Groups == nil {
		return a, nil
	}
	if a.Block != nil {
		l.Owner = &cgroup.Owner{UID: a.Block.UID, GID: a.Block.GID}
	}
	if a.Group, err = h.Groups.Create(newName(), l); err != nil {
		return nil, errors.Join(fmt.Errorf("cgroup: %w", err), a.GiveBack())
	}
	return a, nil
}

// MakeAhead makes the next Allotment in the background, unless one is there.
// An error shows again where it matters, at the next boot.
func (s *Shelf) MakeAhead(l cgroup.Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.making || s.spare != nil || s.uses < 2 {
		return
	}
	s.making = true
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		a, err := s.host.allot(l)
		if err == nil && s.host.Root {
			// Without it the boot makes one itself.
			a.Network, _ = netns.New()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.making = false
		if err == nil {
			s.spare = a
		}
	}()
}

// Ready reports whether one has been made ahead.
func (s *Shelf) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spare != nil
}

// Clear gives back what is there. Nothing is made ahead any more.
func (s *Shelf) Clear() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	if s.spare == nil {
		return nil
	}
	return s.spare.GiveBack()
}
