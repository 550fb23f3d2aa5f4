package world

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// segment is a shared memory segment of the host.
type segment struct {
	id   int
	data []byte
	was  string
}

// shareMemory makes it, where the probe names it.
func (w *World) shareMemory() error {
	if !w.uses("{shm.key}") {
		return nil
	}
	var b [4]byte
	_, _ = rand.Read(b[:])
	key := int(binary.LittleEndian.Uint32(b[:])&0x3fffffff | 1)
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if err != nil {
		return nil //nolint:nilerr // a kernel without it has none to reach
	}
	data, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return errorf("shared memory", err)
	}
	s := &segment{id: id, data: data, was: w.secret("a shared memory segment of the host")}
	copy(data, s.was)
	w.segment = s
	w.vars["shm.key"] = fmt.Sprint(key)
	w.undo = append(w.undo, func() error {
		_, err := unix.SysvShmCtl(s.id, unix.IPC_RMID, nil)
		return errorf("shared memory", errors.Join(unix.SysvShmDetach(s.data), err))
	})
	return nil
}

// memoryLook tells whether the segment was written.
func (w *World) memoryLook() []Finding {
	if s := w.segment; s != nil && string(s.data[:len(s.was)]) != s.was {
		return []Finding{{"changed", "a shared memory segment of the host"}}
	}
	return nil
}
