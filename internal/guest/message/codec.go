package message

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// ErrMalformed is returned for bytes that are no such message, or one that is
// out of bounds.
var ErrMalformed = errors.New("malformed message")

// The wire types of protobuf. Groups are not used.
const (
	typeVarint  = 0
	typeFixed64 = 1
	typeBytes   = 2
	typeFixed32 = 5
)

// field is one field as it stands on the wire.
type field struct {
	num  uint32
	kind uint8
	n    uint64 // of a varint
	b    []byte // of typeBytes; a slice of the input
}

// maxFieldNumber is protobuf's.
const maxFieldNumber = 1<<29 - 1

// eachField calls f for each field of b.
func eachField(b []byte, f func(field) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > maxFieldNumber {
			return ErrMalformed
		}
		b = b[n:]
		fl := field{num: uint32(tag >> 3), kind: uint8(tag & 7)}
		switch fl.kind {
		case typeVarint:
			fl.n, n = binary.Uvarint(b)
		case typeFixed64:
			n = 8
		case typeFixed32:
			n = 4
		case typeBytes:
			var length uint64
			length, n = binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return ErrMalformed
			}
			fl.b = b[n : n+int(length)]
			n += int(length)
		default:
			return ErrMalformed
		}
		if n <= 0 || n > len(b) {
			return ErrMalformed
		}
		b = b[n:]
		if err := f(fl); err != nil {
			return err
		}
	}
	return nil
}

// setString takes a string field of at most limit bytes.
func (f field) setString(s *string, limit int) error {
	if f.kind != typeBytes || len(f.b) > limit {
		return ErrMalformed
	}
	*s = string(f.b)
	return nil
}

// setBytes takes a bytes field without copying it.
func (f field) setBytes(b *[]byte) error {
	if f.kind != typeBytes {
		return ErrMalformed
	}
	*b = f.b
	return nil
}

// setUint32 takes a uint32 or an enum. Like protobuf it cuts what is too long.
func (f field) setUint32(n *uint32) error {
	if f.kind != typeVarint {
		return ErrMalformed
	}
	*n = uint32(f.n)
	return nil
}

func (f field) setInt64(n *int64) error {
	if f.kind != typeVarint {
		return ErrMalformed
	}
	*n = int64(f.n)
	return nil
}

func (f field) setInt32(n *int32) error {
	if f.kind != typeVarint {
		return ErrMalformed
	}
	*n = int32(f.n)
	return nil
}

func (f field) setSint32(n *int32) error {
	if f.kind != typeVarint {
		return ErrMalformed
	}
	u := uint32(f.n)
	*n = int32(u>>1) ^ -int32(u&1)
	return nil
}

func (f field) setBool(v *bool) error {
	if f.kind != typeVarint {
		return ErrMalformed
	}
	*v = f.n != 0
	return nil
}

// message takes an embedded message by its own fields.
func (f field) message(each func(field) error) error {
	if f.kind != typeBytes {
		return ErrMalformed
	}
	return eachField(f.b, each)
}

func appendTag(b []byte, num uint32, kind uint8) []byte {
	return binary.AppendUvarint(b, uint64(num)<<3|uint64(kind))
}

// appendUint leaves out a zero, as proto3 does.
func appendUint(b []byte, num uint32, n uint64) []byte {
	if n == 0 {
		return b
	}
	return binary.AppendUvarint(appendTag(b, num, typeVarint), n)
}

// appendInt writes an int32 or int64: negative ones take ten bytes.
func appendInt(b []byte, num uint32, n int64) []byte { return appendUint(b, num, uint64(n)) }

func appendSint32(b []byte, num uint32, n int32) []byte {
	return appendUint(b, num, uint64(uint32(n)<<1^uint32(n>>31)))
}

func appendBool(b []byte, num uint32, v bool) []byte {
	if !v {
		return b
	}
	return appendUint(b, num, 1)
}

func appendString(b []byte, num uint32, s string) []byte {
	if s == "" {
		return b
	}
	return appendElement(b, num, s)
}

// appendElement also writes an empty string: an element of a repeated field, or
// a member of a oneof.
func appendElement(b []byte, num uint32, s string) []byte {
	b = appendTag(b, num, typeBytes)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendBytes(b []byte, num uint32, p []byte) []byte {
	b = appendTag(b, num, typeBytes)
	b = binary.AppendUvarint(b, uint64(len(p)))
	return append(b, p...)
}

// appendMessage writes an embedded message that body appends.
func appendMessage(b []byte, num uint32, body func([]byte) []byte) []byte {
	b = appendTag(b, num, typeBytes)
	// The length is not known yet. Most messages are short: leave one byte and
	// move the body where more are needed.
	at := len(b)
	b = body(append(b, 0))
	length := len(b) - at - 1
	if need := uvarintLen(uint64(length)); need > 1 {
		b = append(b, make([]byte, need-1)...)
		copy(b[at+need:], b[at+1:at+1+length])
	}
	binary.PutUvarint(b[at:], uint64(length))
	return b
}

func uvarintLen(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

func appendLength(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// nested writes the tags and lengths of three messages in each other, the last
// of which holds n bytes that are not written.
func nested(b []byte, n int, outer, middle, inner uint32) []byte {
	innerLen := 1 + uvarintLen(uint64(n)) + n
	middleLen := 1 + uvarintLen(uint64(innerLen)) + innerLen
	b = appendLength(appendTag(b, outer, typeBytes), middleLen)
	b = appendLength(appendTag(b, middle, typeBytes), innerLen)
	return appendLength(appendTag(b, inner, typeBytes), n)
}
