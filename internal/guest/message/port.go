package message

// MethodDial connects to a port of the sandbox's loopback. The answer is an
// empty message once it is connected; then FileChunk messages go both ways,
// and the end of a direction is that of the connection's. A reset of the stream
// is one of the connection.
const MethodDial = "/tranca.guest.Ports/Dial"

// DialRequest names a TCP port.
type DialRequest struct {
	Port uint32 // 1
}

// Append appends the message to b.
func (m *DialRequest) Append(b []byte) []byte { return appendUint(b, 1, uint64(m.Port)) }

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *DialRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num == 1 {
			return f.setUint32(&m.Port)
		}
		return nil
	})
}
