package backendtest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"tranca"
)

func limitCases() []testCase {
	return []testCase{
		{"Limits/Memory", testMemory, []Ability{EndsByMemory}},
		{"Limits/MemoryOfTree", testTreeMemory, []Ability{EndsByMemory, BoundsTreeMemory}},
		{"Limits/MemoryWithin", testMemoryWithin, nil},
		{"Limits/CPU", testCPU, []Ability{EndsByCPU}},
		{"Limits/CPUOfTree", testTreeCPU, []Ability{EndsByCPU, BoundsTreeCPU}},
		{"Limits/Processes", testProcesses, []Ability{BoundsProcesses}},
		{"Limits/ProcessesSeen", testProcessesSeen, []Ability{BoundsProcesses, SeesProcessLimit}},
		{"Limits/Disk", testDisk, []Ability{BoundsDisk}},
		{"Limits/DiskByFiles", testDiskByFiles, []Ability{BoundsDisk}},
		{"Limits/Inodes", testInodes, []Ability{BoundsInodes}},
		{"Limits/FileSize", testFileSize, []Ability{BoundsFileSize}},
		{"Limits/OpenFiles", testOpenFiles, []Ability{BoundsOpenFiles}},
		{"Limits/NoneHit", testNoneHit, nil},
		{"Usage", testUsage, []Ability{CountsUsage}},
		{"Usage/FreshInSecondRun", testFreshUsage, []Ability{CountsUsage}},
		{"Limits/FreshInSecondRun", testFreshMemory, []Ability{EndsByMemory, OutlivesMemory}},
		{"Limits/FreshCPUInSecondRun", testFreshCPU, []Ability{EndsByCPU}},
		{"Limits/CPUOfFilesBefore", testCPUOfFiles, []Ability{EndsByCPU}},
	}
}

func (b *box) usage() tranca.Usage {
	b.Helper()
	u, err := b.Usage(b.context())
	if err != nil {
		b.Fatalf("usage: %v", err)
	}
	return u
}

// ends fails the test where a run did not end by a limit.
func (s *suite) ends(exit tranca.Exit, reason tranca.Reason) {
	s.Helper()
	if exit.Reason != reason || exit.Code != -1 {
		s.Errorf("it ended with %+v, want %s", exit, reason)
	}
}

func memory(size int64) func(*tranca.Policy) {
	return func(p *tranca.Policy) {
		p.Limits.Memory = size
		p.Limits.Disk.Size = min(p.Limits.Disk.Size, size/2)
	}
}

func testMemory(s *suite) {
	b := s.create(memory(128 << 20))
	exit, _ := b.run("alloc", strconv.Itoa(256<<20))
	s.ends(exit, tranca.EndMemory)
}

func testTreeMemory(s *suite) {
	b := s.create(memory(128 << 20))
	exit, _ := b.run("allocs", "6", strconv.Itoa(60<<20))
	s.ends(exit, tranca.EndMemory)
}

func testMemoryWithin(s *suite) {
	if out := s.create().must("alloc", strconv.Itoa(64<<20)); out != "ok" {
		s.Errorf("a quarter of the memory: %q", out)
	}
}

func cpuTime(d time.Duration) func(*tranca.Policy) {
	return func(p *tranca.Policy) { p.Limits.CPUTime = d }
}

func testCPU(s *suite) {
	exit, _ := s.create(cpuTime(time.Second)).run("spin")
	s.ends(exit, tranca.EndCPU)
}

func testTreeCPU(s *suite) {
	exit, _ := s.create(cpuTime(time.Second)).run("spinchild")
	s.ends(exit, tranca.EndCPU)
}

func processes(n int64) func(*tranca.Policy) {
	return func(p *tranca.Policy) { p.Limits.Processes = n }
}

func testProcesses(s *suite) {
	b := s.create(processes(16))
	made, err := strconv.Atoi(b.must("forks", "100"))
	if err != nil || made >= 16 || made < 8 {
		s.Errorf("%d children with a limit of 16 (%v)", made, err)
	}
	if err := b.Kill(s.context()); err != nil {
		s.Fatal(err)
	}
	b.must("exit", "0")
}

func testProcessesSeen(s *suite) {
	b := s.create(processes(16))
	b.must("forks", "100")
	if u := b.usage(); !slices.Contains(u.Hit, tranca.HitPIDs) {
		s.Errorf("hit %v", u.Hit)
	}
}

func disk(size, inodes int64) func(*tranca.Policy) {
	return func(p *tranca.Policy) { p.Limits.Disk.Size, p.Limits.Disk.Inodes = size, inodes }
}

func testDisk(s *suite) {
	b := s.create(disk(8<<20, 16384))
	if out := b.must("fill", "big", strconv.Itoa(16<<20)); out != "refused" {
		s.Errorf("16 MiB into 8 MiB: %q", out)
	}
	if u := b.usage(); !slices.Contains(u.Hit, tranca.HitDisk) {
		s.Errorf("hit %v", u.Hit)
	}
	if out := b.must("print", "still", ""); out != "still" {
		s.Errorf("with a full disk a program says %q", out)
	}
}

func testDiskByFiles(s *suite) {
	b := s.create(disk(8<<20, 16384))
	n, err := b.Files().Write(s.context(), "big", &failing{16 << 20}, 0o644)
	s.class("16 MiB into 8 MiB", err, tranca.ErrNoSpace)
	if n >= 16<<20 {
		s.Errorf("all %d bytes were taken", n)
	}
	if err := b.Files().Remove(s.context(), "big"); err != nil {
		s.Error(err)
	}
	b.write("small", "there is room again")
}

func testInodes(s *suite) {
	b := s.create(disk(8<<20, 1000))
	made, err := strconv.Atoi(b.must("inodes", "2000"))
	if err != nil || made > 1000 || made < 500 {
		s.Errorf("%d files with a limit of 1000 (%v)", made, err)
	}
	if u := b.usage(); !slices.Contains(u.Hit, tranca.HitInodes) {
		s.Errorf("hit %v", u.Hit)
	}
}

func testFileSize(s *suite) {
	b := s.create(func(p *tranca.Policy) { p.Limits.FileSize = 1 << 20 })
	exit, _ := b.run("fill", "big", strconv.Itoa(4<<20))
	if exit != signaled(tranca.SIGXFSZ) {
		s.Errorf("it ended with %+v", exit)
	}
	if u := b.usage(); !slices.Contains(u.Hit, tranca.HitFileSize) {
		s.Errorf("hit %v", u.Hit)
	}
	info, err := b.Files().Stat(s.context(), "big")
	if err != nil || info.Size > 1<<20 {
		s.Errorf("the file has %d bytes, %v", info.Size, err)
	}
}

func testOpenFiles(s *suite) {
	b := s.create(func(p *tranca.Policy) { p.Limits.OpenFiles = 64 })
	opened, err := strconv.Atoi(b.must("opens", "200"))
	if err != nil || opened >= 64 || opened < 40 {
		s.Errorf("%d files opened with a limit of 64 (%v)", opened, err)
	}
}

func testNoneHit(s *suite) {
	b := s.create()
	b.must("exit", "0")
	if u := b.usage(); len(u.Hit) != 0 {
		s.Errorf("a program that does nothing hit %v", u.Hit)
	}
}

func testUsage(s *suite) {
	b := s.create()
	b.must("alloc", strconv.Itoa(64<<20))
	b.must("forks", "5")
	u := b.usage()
	if u.CPU < 0 || u.CPU > time.Hour {
		s.Errorf("CPU time %s", u.CPU)
	}
	if u.ProcessesPeak < 6 || u.ProcessesPeak > 64 {
		s.Errorf("a peak of %d processes, with 5 children", u.ProcessesPeak)
	}
}

func testFreshUsage(s *suite) {
	b := s.create()
	b.must("alloc", strconv.Itoa(100<<20))
	first := b.usage()
	if first.MemoryPeak < 100<<20 || first.MemoryPeak > 256<<20 {
		s.Errorf("a peak of %d bytes, with 100 MiB in use", first.MemoryPeak)
	}
	b.must("exit", "0")
	if second := b.usage(); second.MemoryPeak > first.MemoryPeak-50<<20 {
		s.Errorf("the second run has the first one's peak: %d bytes", second.MemoryPeak)
	}
}

func testFreshMemory(s *suite) {
	b := s.create(memory(128 << 20))
	exit, _ := b.run("alloc", strconv.Itoa(256<<20))
	s.ends(exit, tranca.EndMemory)
	if exit, _ := b.run("exit", "3"); exit != exited(3) {
		s.Errorf("the second run ended with %+v", exit)
	}
	if exit, _ := b.run("raise", "9"); exit != signaled(9) {
		s.Errorf("a kill that no limit sent, after one that a limit did: %+v", exit)
	}
}

func testFreshCPU(s *suite) {
	b := s.create(cpuTime(s.scale(time.Second)))
	exit, _ := b.run("spin")
	s.ends(exit, tranca.EndCPU)
	if exit, _ := b.run("exit", "3"); exit != exited(3) {
		s.Errorf("the second run ended with %+v", exit)
	}
}

// testCPUOfFiles: what is used before a program starts, for the sandbox itself
// and for files that are put into it, is no part of the program's CPU time.
func testCPUOfFiles(s *suite) {
	limit := s.scale(500 * time.Millisecond)
	b := s.create(cpuTime(limit))
	text := strings.Repeat("x", 4<<20)
	for end := time.Now().Add(2 * limit); time.Now().Before(end); {
		if _, err := b.Files().Write(s.context(), "big", strings.NewReader(text), 0o644); err != nil {
			s.Fatal(err)
		}
	}
	if exit, _ := b.run("exit", "3"); exit != exited(3) {
		s.Errorf("the first run ended with %+v", exit)
	}
	if u := b.usage(); u.CPU >= limit {
		s.Errorf("it is said to have used %s of %s", u.CPU, limit)
	}
}
