// Package wire carries several independent streams of messages over the one
// byte stream between the host and the guest agent: a unix socket now, a
// virtio-serial port or vsock later. It passes no file descriptors and knows
// nothing of what the messages mean.
//
// # Frames
//
// Everything is a frame: a header of [HeaderSize] bytes, big-endian, and a
// payload.
//
//	byte 0      kind
//	byte 1      flags
//	bytes 2-3   zero
//	bytes 4-7   stream
//	bytes 8-11  length of the payload, at most MaxPayload
//
//	kind     stream  payload                            flags
//	1 hello  0       "tranca" and a 16-bit version      none
//	2 open   new     method, 1 to MaxMethod bytes       number of side streams
//	3 msg    n       one message, or a piece of one     1: more pieces follow
//	4 end    n       none                               none
//	5 reset  n       32-bit code, at most MaxReason     none
//	                 bytes of text
//	6 credit n       32-bit number of bytes, not zero   none
//
// hello is the first frame of each side. It is written together with the
// side's first other frame and nobody waits for it, so it costs no round trip.
// A side that knows another version stops.
//
// open comes from the host only. It makes stream n and, with s in its flags,
// the side streams n+1 to n+s. Numbers start at 1 and are never reused; each
// open takes the next free one. A side stream belongs to the same call and has
// its own flow control, so that a reader who stalls on a program's stdout does
// not hold up its stderr. It carries messages of the answering side only: the
// host's direction counts as ended from the start. At most [MaxStreams] streams are open at a time.
//
// msg carries a message. One that is longer than MaxPayload comes in pieces,
// all but the last flagged; together they are at most the receiver's
// [Config].MaxMessage long.
//
// end closes the sender's direction. reset closes it too, says why, and asks
// the other side to stop sending; it may follow an end. After its end or reset
// a side sends no msg on that stream. A side that gets a reset and has not
// closed its own direction yet does so with a reset. A stream is gone when
// both directions are closed; then only a credit or a reset that crossed on the
// way may still arrive, and is ignored.
//
// # Flow control
//
// In each direction of each stream the sender may have [Window] bytes under
// way. A msg costs its payload and [FrameCost], so that empty ones are not
// free. credit gives back what the receiver's user has taken. More under way
// than the window, or more credit than was spent, breaks the protocol. So a
// stalled reader stops its own stream only, and a receiver never holds more
// than about two windows a stream whatever the sender does.
//
// The goroutine that reads frames never writes one and never waits for a
// user. That is what keeps the two sides from blocking each other.
//
// Whatever is not written here breaks the protocol: [Session.Run] then
// returns a [*ProtocolError] and closes the byte stream.
//
// # Why not an existing one
//
// ttrpc: no flow control of a single stream, and it drags in protobuf's
// runtime and gRPC's status, which cost the agent's start. yamux: a
// dependency with timers and keepalives of its own, and streams of bytes, so
// that message boundaries would have to be framed once more on top.
package wire
