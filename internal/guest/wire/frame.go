package wire

import (
	"encoding/binary"
	"strconv"
)

// The bounds of the protocol.
const (
	// Version is what this package speaks. There is no negotiation: host and
	// agent are built together.
	Version = 1
	// HeaderSize is the length of a frame's header in bytes.
	HeaderSize = 12
	// MaxPayload bounds the payload of one frame in bytes.
	MaxPayload = 256 << 10
	// MaxMethod bounds the name in an open frame in bytes.
	MaxMethod = 64
	// MaxReason bounds the text of a reset in bytes.
	MaxReason = 512
	// Window bounds what is under way in one direction of one stream.
	Window = 1 << 20
	// MinWindow is what the answering side may take before it gives credit back.
	MinWindow = Window / 8
	// FrameCost is what a msg frame costs of the window besides its payload:
	// about what the receiver spends on keeping it.
	FrameCost = 128
	// MaxStreams bounds the open streams of a session, side streams included.
	MaxStreams = 1024
	// MaxSides bounds the side streams of one call.
	MaxSides = 3
)

const magic = "tranca"

const helloSize = len(magic) + 2

// maxStreamID ends a session long before numbers could wrap around.
const maxStreamID = 1 << 31

type kind uint8

const (
	kindHello kind = iota + 1
	kindOpen
	kindMsg
	kindEnd
	kindReset
	kindCredit
)

const flagMore = 1

// header is the fixed part of a frame.
type header struct {
	kind   kind
	flags  uint8
	stream uint32
	length uint32
}

func (h header) put(b []byte) {
	b[0], b[1], b[2], b[3] = byte(h.kind), h.flags, 0, 0
	binary.BigEndian.PutUint32(b[4:], h.stream)
	binary.BigEndian.PutUint32(b[8:], h.length)
}

func (h header) append(b []byte) []byte {
	var raw [HeaderSize]byte
	h.put(raw[:])
	return append(b, raw[:]...)
}

// parseHeader checks all that can be checked without knowing the session's
// state.
func parseHeader(b []byte) (header, error) {
	h := header{
		kind:   kind(b[0]),
		flags:  b[1],
		stream: binary.BigEndian.Uint32(b[4:]),
		length: binary.BigEndian.Uint32(b[8:]),
	}
	if b[2] != 0 || b[3] != 0 {
		return h, broken("reserved bytes of a frame are not zero")
	}
	if (h.stream == 0) != (h.kind == kindHello) {
		return h, broken("frame kind " + strconv.Itoa(int(h.kind)) + " on stream " + utoa(h.stream))
	}
	low, high, flags := uint32(0), uint32(0), uint8(0)
	switch h.kind {
	case kindHello:
		low, high = uint32(helloSize), uint32(helloSize)
	case kindOpen:
		low, high, flags = 1, MaxMethod, MaxSides
	case kindMsg:
		high, flags = MaxPayload, flagMore
	case kindEnd:
	case kindReset:
		low, high = 4, 4+MaxReason
	case kindCredit:
		low, high = 4, 4
	default:
		return h, broken("unknown frame kind " + strconv.Itoa(int(h.kind)))
	}
	if h.length < low || h.length > high {
		return h, broken("frame kind " + strconv.Itoa(int(h.kind)) + " with a payload of " + utoa(h.length) + " bytes")
	}
	if h.flags > flags {
		return h, broken("frame kind " + strconv.Itoa(int(h.kind)) + " with flags " + strconv.Itoa(int(h.flags)))
	}
	return h, nil
}

func appendHello(b []byte) []byte {
	b = header{kind: kindHello, length: uint32(helloSize)}.append(b)
	b = append(b, magic...)
	return binary.BigEndian.AppendUint16(b, Version)
}

func checkHello(p []byte) error {
	if string(p[:len(magic)]) != magic {
		return broken("hello without the magic word")
	}
	if v := binary.BigEndian.Uint16(p[len(magic):]); v != Version {
		return broken("the other side speaks version " + strconv.Itoa(int(v)) +
			", this one " + strconv.Itoa(Version) + ": host and agent come from different builds")
	}
	return nil
}

func utoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
