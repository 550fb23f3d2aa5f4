package attempt

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// doMmap maps a file or memory, in a child that may die of it.
func doMmap(_ *interp, s *Step) (string, error) {
	if s.Path != "" {
		return "", mapFile(s)
	}
	flags := uintptr(unix.MAP_PRIVATE | unix.MAP_ANON)
	switch s.Flags {
	case "hugetlb":
		flags |= unix.MAP_HUGETLB
	case "locked":
		flags |= unix.MAP_LOCKED
	}
	size := uintptr(s.Size)
	return "", mapped([]call{
		{trap: unix.SYS_MMAP, must: true, args: [6]uintptr{0, size, unix.PROT_READ | unix.PROT_WRITE, flags, ^uintptr(0)}},
		{trap: trapTouch, args: [6]uintptr{size}},
	})
}

// mapFile writes to the beginning of a file by a mapping. What a file hasn't
// got can't be written to so.
func mapFile(s *Step) error {
	data, err := dataBytes(s.Data)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return words("there are no bytes to write")
	}
	fd, err := unix.Open(s.Path, unix.O_RDWR|calm, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	regular := st.Mode&unix.S_IFMT == unix.S_IFREG
	if regular && st.Size < int64(len(data)) {
		return words("the file is shorter")
	}
	mem, err := sharedBytes(len(data)) // no stack, which can move
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(mem) }()
	copy(mem, data)
	err = mapped([]call{
		{trap: unix.SYS_MMAP, must: true, args: [6]uintptr{0, uintptr(len(data)),
			unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED, uintptr(fd)}},
		{trap: trapCopy, args: [6]uintptr{address(mem), uintptr(len(mem))}},
	})
	if err != nil || !regular {
		return err
	}
	got := make([]byte, len(data))
	n, err := unix.Pread(fd, got, 0)
	if err == nil && !bytes.Equal(got[:max(n, 0)], data) {
		err = words("other bytes are there")
	}
	return err
}

// mapped does calls in a child, whose end is the outcome.
func mapped(calls []call) error {
	pid, err := forked(calls)
	if err != nil {
		return err
	}
	return allocated(wait(pid))
}
