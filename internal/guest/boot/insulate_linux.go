package boot

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/forkexec"
)

// insulate makes the user namespace of the programs. A container engine mostly
// gives its containers the users of the host: so the code's user outside is one
// that nobody else has, inside it is the policy's, and no other exists there.
func insulate(spec *bootspec.Spec) (fd int, err error) {
	s := forkexec.New(unix.CLONE_NEWUSER).WithPIDFD()
	s.ParentDeathSignal(unix.SIGKILL)
	c, err := s.Hold()
	if err != nil {
		return -1, err
	}
	defer func() {
		if _, rerr := c.Reap(); err == nil && rerr != nil {
			unix.Close(fd)
			fd, err = -1, rerr
		}
	}()
	proc := "/proc/" + strconv.Itoa(c.PID)
	for _, m := range []struct {
		file            string
		inside, outside uint32
	}{
		{"/uid_map", spec.InsideUID, spec.CodeUID},
		{"/gid_map", spec.InsideGID, spec.CodeGID},
	} {
		if err := writeOnce(proc+m.file, fmt.Sprintf("%d %d 1\n", m.inside, m.outside)); err != nil {
			return -1, err
		}
	}
	fd, err = unix.Open(proc+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return fd, os.NewSyscallError("open user namespace", err)
}

// writeOnce writes a file of /proc whole.
func writeOnce(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// victim makes what is forked meanwhile the first that the kernel kills where
// memory runs out, before the agent, and restores the agent's own place, which
// it may since it was there before. It is an order among those that die by the
// same limit, so where it can't be had, it is left.
type victim struct{ adj *os.File } // nil where there is no such order

const mostKillable = "1000"

func newVictim() *victim {
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return &victim{}
	}
	return &victim{f}
}

func (v *victim) during(fork func() error) error {
	if v.adj == nil {
		return fork()
	}
	var own [16]byte
	n, _ := v.adj.ReadAt(own[:], 0) // io.EOF comes with the text
	if _, err := v.adj.WriteAt([]byte(mostKillable), 0); err != nil || n == 0 {
		return fork()
	}
	defer v.adj.WriteAt(own[:n], 0) // else the agent stays as likely to be killed
	return fork()
}
