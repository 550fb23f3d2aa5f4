// Package bootspec is the one message with which a backend tells its guest
// agent what to build before any code runs: mounts, users, limits, filter. It goes from the trusted side to the other; the answer is a single
// line, "ok" or what failed.
//
// The encoding is protobuf's wire format, written by hand: it costs the agent
// neither reflection nor start-up time.
package bootspec

import (
	"encoding/binary"
	"errors"
)

// MaxSize bounds an encoded Spec.
const MaxSize = 1 << 20

// StreamFD is the first of the descriptors that the agent finds at its start.
// In this order from 3 on: the stream, the code's tasks files, and then
// whatever the Spec names by its number.
const StreamFD = 3

// Spec is what the agent builds.
type Spec struct {
	// Plain builds nothing: the agent drops to the code's user and starts
	// programs in the host's own tree, under Rlimits alone. With Chroot that
	// folder is their root. CodeUID and CodeGID are then the host's.
	Plain  bool
	Chroot string
	// Contained builds nothing either: root, mounts and namespaces were made
	// by a container engine or a kernel in user space, and the agent is the
	// first process there. It starts programs as the code's user, under
	// Rlimits and, unless it is empty, Filter.
	Contained bool
	// Insulate gives the programs of a contained agent a user namespace of
	// their own, in which CodeUID and CodeGID are InsideUID and InsideGID and
	// nobody else exists.
	Insulate             bool
	InsideUID, InsideGID uint32
	// Writable are the only places that programs of a contained agent may
	// find writable, if Audit is set; the agent refuses to boot where the
	// mounts say otherwise, or where one of Same is not what is expected.
	Audit    bool
	Writable []Writable
	Same     []Same
	// Hidden are paths that must show nothing: an empty file, or a file system
	// of their own with nothing in it.
	Hidden []string
	// Filtered says that whoever made the root has put tranca's filter on the
	// agent: it refuses to boot without.
	Filtered bool
	// Tasks is how many threads a contained agent has, from its boot on, so
	// that what a control group counts beside them is the code's.
	Tasks int
	// GuestProcesses bounds the code's processes by a control group of version
	// 2 that a contained agent makes, where the kernel that it sees is a
	// sandbox's own. 0 makes none.
	GuestProcesses uint64
	// CodeUID and CodeGID are the code's user inside.
	CodeUID, CodeGID uint32
	// AgentUID is the agent's user inside: 0, or CodeUID where only one user
	// is to be had.
	AgentUID uint32
	Hostname string
	// ScratchSize and ScratchInodes bound the tmpfs of /work, /tmp, /dev/shm.
	ScratchSize, ScratchInodes uint64
	// ScratchFD is a detached mount to use instead of a tmpfs, or 0.
	ScratchFD int
	// Image is the host path of the tree of an image; empty is the host's tree.
	Image   string
	Binds   []Bind
	Folders []string // empty ones of the new root
	Files   []File
	Links   []Link
	// TaskFDs are the version 1 tasks files that code joins.
	TaskFDs []int
	// ReopenTasks has the agent open them anew: the kernel then asks that the
	// joining user opened them.
	ReopenTasks bool
	// DeathSignal is what the agent gets when its supervisor dies; never 0 but
	// for a plain agent, which then ends its programs first.
	DeathSignal int
	// CodeCgroupFD is the version 2 folder that code starts in, or 0. Where
	// the host could not make a mount of its own of it, CodeCgroup is its path.
	CodeCgroupFD int
	CodeCgroup   string
	// Filter is the code's seccomp program, 8 bytes an instruction, and
	// AgentFilter that of the agent after its boot.
	Filter, AgentFilter []byte
	// Landlock is the lowest ABI to accept; -1 leaves Landlock out.
	Landlock int
	Rlimits  []Rlimit
	Env      []string
	Path     string
	Workdir  string
	// Omit is what the agent leaves out; see [Omission].
	Omit Omission
}

// Bind makes a host path visible.
type Bind struct {
	// Source is a path of what From says, or empty where FD is set.
	Source string
	From   Origin
	// FD is a detached mount made by the host, or 0.
	FD int
	// Target is relative to the new root.
	Target string
	// File says that it is a file, not a folder.
	File     bool
	Writable bool
	// Cow, of a writable folder, has what is written go to the writable space.
	Cow bool
	// Device lets device nodes work, as for /dev/null.
	Device bool
	// Deny are paths below Target to cover.
	Deny []Cover
	// Protect are paths below Target to make read-only.
	Protect []string
	// Pin are paths below Target to bind on themselves, so that they can't be
	// renamed away together with what is protected in them.
	Pin []string
}

// Origin says whose path a bind's source is.
type Origin uint32

// The origins. A path of the image or the root is relative to it.
const (
	FromHost Origin = iota
	FromImage
	// FromRoot is a file in OwnFolder of the new root, which is gone when its
	// files are shown where they belong.
	FromRoot
)

// OwnFolder holds files that are shown elsewhere, over those of an image.
const OwnFolder = ".own"

// Cover is a path to hide.
type Cover struct {
	Path string
	File bool
}

// File is a small file of the new root.
type File struct {
	Path    string
	Content []byte
	Mode    uint32
}

// Link is a symbolic link of the new root.
type Link struct{ Path, Target string }

// Rlimit is a resource limit of each program.
type Rlimit struct {
	Resource   int
	Soft, Hard uint64
}

// The wire types of protobuf that are used.
const (
	typeVarint = 0
	typeBytes  = 2
)

type encoder struct{ b []byte }

func (e *encoder) tag(field int, typ uint64) {
	e.b = binary.AppendUvarint(e.b, uint64(field)<<3|typ)
}

func (e *encoder) num(field int, v uint64) {
	if v != 0 {
		e.tag(field, typeVarint)
		e.b = binary.AppendUvarint(e.b, v)
	}
}

func (e *encoder) bytes(field int, v []byte) {
	e.tag(field, typeBytes)
	e.b = binary.AppendUvarint(e.b, uint64(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) str(field int, v string) {
	if v != "" {
		e.bytes(field, []byte(v))
	}
}

func (e *encoder) flag(field int, v bool) {
	if v {
		e.num(field, 1)
	}
}

func (e *encoder) msg(field int, fill func(*encoder)) {
	var in encoder
	fill(&in)
	e.bytes(field, in.b)
}

// Marshal encodes the Spec.
func (s *Spec) Marshal() []byte {
	e := &encoder{b: make([]byte, 0, 8192)}
	e.num(1, uint64(s.CodeUID))
	e.num(2, uint64(s.CodeGID))
	e.num(3, uint64(s.AgentUID))
	e.str(4, s.Hostname)
	e.num(5, s.ScratchSize)
	e.num(6, s.ScratchInodes)
	e.num(7, uint64(s.ScratchFD))
	for i := range s.Binds {
		e.msg(8, s.Binds[i].marshal)
	}
	for _, f := range s.Files {
		e.msg(9, func(e *encoder) { e.str(1, f.Path); e.bytes(2, f.Content); e.num(3, uint64(f.Mode)) })
	}
	for _, l := range s.Links {
		e.msg(10, func(e *encoder) { e.str(1, l.Path); e.str(2, l.Target) })
	}
	for _, fd := range s.TaskFDs {
		e.num(11, uint64(fd))
	}
	e.num(12, uint64(s.CodeCgroupFD))
	e.bytes(13, s.Filter)
	e.num(14, uint64(s.Landlock+1))
	for _, r := range s.Rlimits {
		e.msg(15, func(e *encoder) { e.num(1, uint64(r.Resource)); e.num(2, r.Soft); e.num(3, r.Hard) })
	}
	for _, v := range s.Env {
		e.str(16, v)
	}
	e.str(41, s.Image)
	for _, dir := range s.Folders {
		e.str(42, dir)
	}
	e.str(17, s.Path)
	e.str(18, s.Workdir)
	e.flag(19, s.ReopenTasks)
	e.str(20, s.CodeCgroup)
	e.flag(21, s.Plain)
	e.str(22, s.Chroot)
	e.bytes(24, s.AgentFilter)
	e.flag(25, s.Contained)
	e.num(23, uint64(s.DeathSignal))
	e.num(40, s.GuestProcesses)
	e.num(43, uint64(s.Omit))
	s.marshalContained(e)
	return e.b
}

func (b *Bind) marshal(e *encoder) {
	e.str(1, b.Source)
	e.num(2, uint64(b.FD))
	e.str(3, b.Target)
	e.flag(4, b.File)
	e.flag(5, b.Writable)
	e.flag(6, b.Device)
	for _, c := range b.Deny {
		e.msg(7, func(e *encoder) { e.str(1, c.Path); e.flag(2, c.File) })
	}
	for _, p := range b.Protect {
		e.str(8, p)
	}
	for _, p := range b.Pin {
		e.str(9, p)
	}
	e.flag(10, b.Cow)
	e.num(11, uint64(b.From))
}

var errMalformed = errors.New("boot message is malformed")

// walk calls f for each field, with its number or its bytes.
func walk(b []byte, f func(field int, v uint64, data []byte) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<20 {
			return errMalformed
		}
		b = b[n:]
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return errMalformed
		}
		b = b[n:]
		var data []byte
		switch tag & 7 {
		case typeVarint:
		case typeBytes:
			if v > uint64(len(b)) {
				return errMalformed
			}
			data, b = b[:v], b[v:]
		default:
			return errMalformed
		}
		if err := f(int(tag>>3), v, data); err != nil {
			return err
		}
	}
	return nil
}

// Unmarshal decodes what Marshal wrote. An unknown field is an error: agent
// and backend are of one build.
func Unmarshal(b []byte) (*Spec, error) {
	s := &Spec{Landlock: -1}
	err := walk(b, func(field int, v uint64, data []byte) error {
		switch field {
		case 1:
			s.CodeUID = uint32(v)
		case 2:
			s.CodeGID = uint32(v)
		case 3:
			s.AgentUID = uint32(v)
		case 4:
			s.Hostname = string(data)
		case 5:
			s.ScratchSize = v
		case 6:
			s.ScratchInodes = v
		case 7:
			s.ScratchFD = int(v)
		case 8:
			bind, err := unmarshalBind(data)
			s.Binds = append(s.Binds, bind)
			return err
		default:
			return s.more(field, v, data)
		}
		return nil
	})
	return s, err
}

func (s *Spec) more(field int, v uint64, data []byte) error {
	switch field {
	case 9:
		var f File
		err := walk(data, func(n int, v uint64, d []byte) error {
			switch n {
			case 1:
				f.Path = string(d)
			case 2:
				f.Content = d
			case 3:
				f.Mode = uint32(v)
			}
			return nil
		})
		s.Files = append(s.Files, f)
		return err
	case 10:
		a, b, err := pair(data)
		s.Links = append(s.Links, Link{a, b})
		return err
	case 11:
		s.TaskFDs = append(s.TaskFDs, int(v))
	case 12:
		s.CodeCgroupFD = int(v)
	case 13:
		s.Filter = data
	case 14:
		s.Landlock = int(v) - 1
	case 15:
		var r Rlimit
		err := walk(data, func(n int, v uint64, _ []byte) error {
			switch n {
			case 1:
				r.Resource = int(v)
			case 2:
				r.Soft = v
			case 3:
				r.Hard = v
			}
			return nil
		})
		s.Rlimits = append(s.Rlimits, r)
		return err
	case 16:
		s.Env = append(s.Env, string(data))
	case 17:
		s.Path = string(data)
	case 18:
		s.Workdir = string(data)
	case 19:
		s.ReopenTasks = v != 0
	case 20:
		s.CodeCgroup = string(data)
	case 21:
		s.Plain = v != 0
	case 22:
		s.Chroot = string(data)
	case 24:
		s.AgentFilter = data
	case 23:
		s.DeathSignal = int(v)
	case 25:
		s.Contained = v != 0
	case 40:
		s.GuestProcesses = v
	case 41:
		s.Image = string(data)
	case 42:
		s.Folders = append(s.Folders, string(data))
	case 43:
		s.Omit = Omission(v)
	default:
		return s.contained(field, v, data)
	}
	return nil
}

func pair(data []byte) (a, b string, err error) {
	err = walk(data, func(n int, _ uint64, d []byte) error {
		if n == 1 {
			a = string(d)
		} else {
			b = string(d)
		}
		return nil
	})
	return a, b, err
}

func unmarshalBind(data []byte) (Bind, error) {
	var b Bind
	err := walk(data, func(n int, v uint64, d []byte) error {
		switch n {
		case 1:
			b.Source = string(d)
		case 2:
			b.FD = int(v)
		case 3:
			b.Target = string(d)
		case 4:
			b.File = v != 0
		case 5:
			b.Writable = v != 0
		case 6:
			b.Device = v != 0
		case 7:
			var c Cover
			err := walk(d, func(n int, v uint64, d []byte) error {
				if n == 1 {
					c.Path = string(d)
				} else {
					c.File = v != 0
				}
				return nil
			})
			b.Deny = append(b.Deny, c)
			return err
		case 8:
			b.Protect = append(b.Protect, string(d))
		case 9:
			b.Pin = append(b.Pin, string(d))
		case 10:
			b.Cow = v != 0
		case 11:
			b.From = Origin(v)
		default:
			return errMalformed
		}
		return nil
	})
	return b, err
}
