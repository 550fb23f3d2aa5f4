//go:build !linux

package container

import (
	"context"
	"sync"
	"time"

	"tranca"
	"tranca/internal/backend/container/docker"
)

// outside is what the engine counts of a container, where its host can't be
// looked at. Safe for concurrent use; a nil one sees nothing.
type outside struct {
	engine *engine
	id     string

	mu     sync.Mutex
	base   docker.Stats
	own    docker.Stats // what the agent held after its boot
	latest sample
}

// countTime bounds one question for the counters.
const countTime = 5 * time.Second

func (m *box) lookFromOutside(ctx context.Context) error {
	m.outside = &outside{engine: m.engine, id: m.id}
	_, err := m.outside.read(ctx)
	return err
}

func (o *outside) read(ctx context.Context) (docker.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	return o.engine.Stats(ctx, o.id)
}

func (o *outside) settle() {
	if s, err := o.read(context.Background()); err == nil {
		o.own = s
	}
}

func (o *outside) begin() error {
	s, err := o.read(context.Background())
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.base, o.latest = s, sample{usage: tranca.Usage{CPU: -1, MemoryPeak: -1, ProcessesPeak: -1}}
	return nil
}

func (o *outside) stats() (sample, error) {
	s, err := o.read(context.Background())
	if err != nil {
		return sample{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	used := s.CPUTime() - o.base.CPUTime()
	processes := max(s.Tasks.Current-agentTasks, 0)
	o.latest = sample{
		// The peaks are those of the moments at which somebody looked.
		usage: tranca.Usage{
			CPU:           used,
			MemoryPeak:    max(o.latest.usage.MemoryPeak, s.Memory.Usage-o.own.Memory.Usage),
			ProcessesPeak: max(o.latest.usage.ProcessesPeak, processes),
		},
		countsCPU: true, cpuSpent: used, processes: processes,
	}
	return o.latest, nil
}

func (o *outside) last() tranca.Usage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest.usage
}

// sawOOM leaves it to the engine, which says so of a container that is dead.
func (o *outside) sawOOM() bool { return false }

func (o *outside) full() (disk, inodes bool)  { return false, false }
func (o *outside) process() seen              { return seen{} }
func (o *outside) kill(context.Context) error { return nil }
func (o *outside) close() error               { return nil }
