package message

import "slices"

// The bounds of the process messages.
const (
	// MaxArgs and MaxEnvs bound how many arguments and variables there are.
	MaxArgs = 32 << 10
	MaxEnvs = 4 << 10
	// MaxString bounds one argument or variable in bytes. It is Linux's bound.
	MaxString = 128 << 10
	// MaxStart bounds a whole StartRequest in bytes. The kernel takes about as
	// much of arguments and environment together.
	MaxStart = 4 << 20
	// MaxPath bounds a path in bytes.
	MaxPath = 4096
	// MaxTag and MaxText bound tags and texts for people.
	MaxTag  = 256
	MaxText = 1024
	// MaxProcesses bounds the processes in a ListResponse.
	MaxProcesses = 1024
)

// The methods of process.Process.
const (
	MethodStart      = "/process.Process/Start"
	MethodList       = "/process.Process/List"
	MethodSendSignal = "/process.Process/SendSignal"
	MethodSendInput  = "/process.Process/SendInput"
	MethodCloseStdin = "/process.Process/CloseStdin"
)

// The E2B names of the signals that its enum has.
const (
	SignalTerm = 15
	SignalKill = 9
)

// ProcessConfig is what to run.
type ProcessConfig struct {
	Cmd  string            // 1
	Args []string          // 2: without the program's own name
	Envs map[string]string // 3
	Cwd  string            // 4
}

func (c *ProcessConfig) append(b []byte) []byte {
	b = appendString(b, 1, c.Cmd)
	for _, a := range c.Args {
		b = appendElement(b, 2, a)
	}
	names := make([]string, 0, len(c.Envs))
	for name := range c.Envs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b = appendMessage(b, 3, func(b []byte) []byte {
			return appendString(appendString(b, 1, name), 2, c.Envs[name])
		})
	}
	return appendString(b, 4, c.Cwd)
}

func (c *ProcessConfig) field(f field) error {
	switch f.num {
	case 1:
		return f.setString(&c.Cmd, MaxPath)
	case 2:
		var arg string
		if len(c.Args) >= MaxArgs {
			return ErrMalformed
		}
		err := f.setString(&arg, MaxString)
		c.Args = append(c.Args, arg)
		return err
	case 3:
		return c.env(f)
	case 4:
		return f.setString(&c.Cwd, MaxPath)
	}
	return nil
}

func (c *ProcessConfig) env(f field) error {
	var name, value string
	err := f.message(func(f field) error {
		switch f.num {
		case 1:
			return f.setString(&name, MaxString)
		case 2:
			return f.setString(&value, MaxString)
		}
		return nil
	})
	if err != nil || len(c.Envs) >= MaxEnvs {
		return ErrMalformed
	}
	if c.Envs == nil {
		c.Envs = make(map[string]string)
	}
	c.Envs[name] = value
	return nil
}

// StartRequest starts a process.
type StartRequest struct {
	Process ProcessConfig // 1
	PTY     *PTY          // 2: nil is no terminal
	Tag     string        // 3
	// NoStdin is E2B's stdin = 4, whose absence means true.
	NoStdin bool
	// EndGroup kills what is left of its process group when it has ended.
	EndGroup bool // 1000
}

// Append appends the message to b.
func (m *StartRequest) Append(b []byte) []byte {
	b = appendMessage(b, 1, m.Process.append)
	if m.PTY != nil {
		b = appendMessage(b, 2, m.PTY.append)
	}
	b = appendString(b, 3, m.Tag)
	if m.NoStdin {
		b = append(appendTag(b, 4, typeVarint), 0)
	}
	return appendBool(b, 1000, m.EndGroup)
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *StartRequest) Unmarshal(b []byte) error {
	if len(b) > MaxStart {
		return ErrMalformed
	}
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.message(m.Process.field)
		case 2:
			m.PTY = new(PTY)
			return f.message(m.PTY.field)
		case 3:
			return f.setString(&m.Tag, MaxTag)
		case 4:
			var stdin bool
			err := f.setBool(&stdin)
			m.NoStdin = !stdin
			return err
		case 1000:
			return f.setBool(&m.EndGroup)
		}
		return nil
	})
}

// ProcessSelector names a process by its id or, where that is 0, by its tag.
type ProcessSelector struct {
	PID uint32 // 1
	Tag string // 2
}

func (s *ProcessSelector) append(b []byte) []byte {
	if s.PID == 0 && s.Tag != "" {
		return appendString(b, 2, s.Tag)
	}
	return appendUint(b, 1, uint64(s.PID))
}

func (s *ProcessSelector) field(f field) error {
	switch f.num {
	case 1:
		s.Tag = ""
		return f.setUint32(&s.PID)
	case 2:
		s.PID = 0
		return f.setString(&s.Tag, MaxTag)
	}
	return nil
}

// SendSignalRequest sends a signal.
type SendSignalRequest struct {
	Process ProcessSelector // 1
	Signal  uint32          // 2: E2B's enum holds Linux's numbers 15 and 9
	// Number is any other signal's Linux number; it goes before Signal.
	Number uint32 // 1000
	// Group sends it to the process group instead.
	Group bool // 1001
}

// Append appends the message to b.
func (m *SendSignalRequest) Append(b []byte) []byte {
	b = appendMessage(b, 1, m.Process.append)
	b = appendUint(b, 2, uint64(m.Signal))
	b = appendUint(b, 1000, uint64(m.Number))
	return appendBool(b, 1001, m.Group)
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *SendSignalRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.message(m.Process.field)
		case 2:
			return f.setUint32(&m.Signal)
		case 1000:
			return f.setUint32(&m.Number)
		case 1001:
			return f.setBool(&m.Group)
		}
		return nil
	})
}

// ProcessInput is a oneof: bytes for stdin, or what is typed at a terminal.
type ProcessInput struct {
	Stdin []byte // 1
	PTY   []byte // 2
}

func (i *ProcessInput) append(b []byte) []byte {
	if i.PTY != nil {
		return appendBytes(b, 2, i.PTY)
	}
	return appendBytes(b, 1, i.Stdin)
}

// field keeps the last member that is set, as protobuf does.
func (i *ProcessInput) field(f field) error {
	switch f.num {
	case 1:
		i.PTY = nil
		return f.setBytes(&i.Stdin)
	case 2:
		i.Stdin = nil
		return f.setBytes(&i.PTY)
	}
	return nil
}

// SendInputRequest writes to a process's stdin.
type SendInputRequest struct {
	Process ProcessSelector // 1
	Input   ProcessInput    // 2
}

// Append appends the message to b.
func (m *SendInputRequest) Append(b []byte) []byte {
	b = appendMessage(b, 1, m.Process.append)
	return appendMessage(b, 2, m.Input.append)
}

// Unmarshal reads the message from b. Input is a slice of b.
func (m *SendInputRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.message(m.Process.field)
		case 2:
			return f.message(m.Input.field)
		}
		return nil
	})
}

// StreamInputRequest holds a piece of stdin. E2B's start event, which selects
// the process, isn't needed: it goes on the stream of the process's Start.
type StreamInputRequest struct {
	Data ProcessInput // 2.2
}

// Append appends the message to b.
func (m *StreamInputRequest) Append(b []byte) []byte {
	return appendMessage(b, 2, func(b []byte) []byte { return appendMessage(b, 2, m.Data.append) })
}

// Unmarshal reads the message from b. Data is a slice of b.
func (m *StreamInputRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num != 2 {
			return nil
		}
		return f.message(func(f field) error {
			if f.num != 2 {
				return nil
			}
			return f.message(m.Data.field)
		})
	})
}

// CloseStdinRequest closes a process's stdin.
type CloseStdinRequest struct {
	Process ProcessSelector // 1
}

// Append appends the message to b.
func (m *CloseStdinRequest) Append(b []byte) []byte {
	return appendMessage(b, 1, m.Process.append)
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *CloseStdinRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num == 1 {
			return f.message(m.Process.field)
		}
		return nil
	})
}

// ProcessInfo is a running process.
type ProcessInfo struct {
	Config ProcessConfig // 1
	PID    uint32        // 2
	Tag    string        // 3
}

func (p *ProcessInfo) append(b []byte) []byte {
	b = appendMessage(b, 1, p.Config.append)
	b = appendUint(b, 2, uint64(p.PID))
	return appendString(b, 3, p.Tag)
}

func (p *ProcessInfo) field(f field) error {
	switch f.num {
	case 1:
		return f.message(p.Config.field)
	case 2:
		return f.setUint32(&p.PID)
	case 3:
		return f.setString(&p.Tag, MaxTag)
	}
	return nil
}

// ListResponse lists the processes that were started and have not ended.
type ListResponse struct {
	Processes []ProcessInfo // 1
}

// Append appends the message to b.
func (m *ListResponse) Append(b []byte) []byte {
	for i := range m.Processes {
		b = appendMessage(b, 1, m.Processes[i].append)
	}
	return b
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *ListResponse) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num != 1 {
			return nil
		}
		if len(m.Processes) >= MaxProcesses {
			return ErrMalformed
		}
		m.Processes = append(m.Processes, ProcessInfo{})
		return f.message(m.Processes[len(m.Processes)-1].field)
	})
}
