package process

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

// allotment is what a sandbox has of its own before any process of it exists:
// user ids, control groups and, made ahead, a network namespace.
type allotment struct {
	asked cgroup.Limits  // what the groups were made for, without an owner
	block *idrange.Block // nil where only the caller's own user is to be had
	group *cgroup.Group  // nil where no cgroup is to be had
	// network is a network namespace that was made ahead; nil where the
	// agent's process gets a new one, as it must without root.
	network *os.File
}

// giveBack returns all of it. Every process in it must be dead.
func (a *allotment) giveBack() error {
	var errs []error
	if a.group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), destroyTime)
		defer cancel()
		errs = append(errs, a.group.Destroy(ctx))
	}
	if a.block != nil {
		errs = append(errs, a.block.Release())
	}
	if a.network != nil {
		errs = append(errs, a.network.Close())
	}
	return errors.Join(errs...)
}

// shelf holds one allotment ahead of its use, for the limits that were asked
// for last: making one takes a tenth of a boot. There is none before the second
// use, since a command that runs once would make it in vain.
type shelf struct {
	mu     sync.Mutex
	uses   int
	spare  *allotment
	making bool
	closed bool
	work   sync.WaitGroup
}

// allot takes user ids and makes the groups, or takes what is there.
func (b *Backend) allot(l cgroup.Limits) (*allotment, error) {
	b.shelf.mu.Lock()
	a := b.shelf.spare
	b.shelf.spare = nil
	b.shelf.uses++
	b.shelf.mu.Unlock()
	if a != nil && a.asked == l {
		return a, nil
	}
	if a != nil {
		if err := a.giveBack(); err != nil {
			return nil, fmt.Errorf("control group that was made ahead: %w", err)
		}
	}
	return b.makeAllotment(l)
}

func (b *Backend) makeAllotment(l cgroup.Limits) (*allotment, error) {
	a := &allotment{asked: l}
	var err error
	if b.host.ids != nil {
		if a.block, err = b.host.ids.Acquire(); err != nil {
			return nil, fmt.Errorf("user ids: %w", err)
		}
	}
	if b.host.groups == nil {
		return a, nil
	}
	if a.block != nil {
		l.Owner = &cgroup.Owner{UID: a.block.UID, GID: a.block.GID}
	}
	if a.group, err = b.host.groups.Create(newName(), l); err != nil {
		return nil, errors.Join(fmt.Errorf("cgroup: %w", err), a.giveBack())
	}
	return a, nil
}

// makeAhead makes the next allotment in the background, unless one is there.
// An error shows again where it matters, at the next boot.
func (b *Backend) makeAhead(l cgroup.Limits) {
	s := &b.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.making || s.spare != nil || s.uses < 2 {
		return
	}
	s.making = true
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		a, err := b.makeAllotment(l)
		if err == nil && b.host.root {
			// Without it the boot makes one itself.
			a.network, _ = netns.New()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.making = false
		if err == nil {
			s.spare = a
		}
	}()
}

// clear gives back what is there. Nothing is made ahead any more.
func (s *shelf) clear() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	if s.spare == nil {
		return nil
	}
	return s.spare.giveBack()
}
