// Package message holds what host and guest agent say to each other, apart
// from how it is carried.
//
// The messages are those of E2B's in-sandbox daemon, packages process and
// filesystem, in the protobuf wire format with the same names and numbers.
// What tranca adds has field numbers from 1000, or messages and methods of its
// own under "tranca.guest". So the same structs serve a Connect client of
// somebody else's sandboxes. Fields that nobody here uses yet are skipped when
// they are read.
//
//	method                          request            answer
//	/process.Process/Start          StartRequest       StartResponse...
//	                                StreamInputRequest...
//	/process.Process/List           ListRequest        ListResponse
//	/process.Process/SendSignal     SendSignalRequest  SendSignalResponse
//	/process.Process/SendInput      SendInputRequest   SendInputResponse
//	/process.Process/CloseStdin     CloseStdinRequest  CloseStdinResponse
//	/process.Process/Update         UpdateRequest      UpdateResponse
//	/filesystem.Filesystem/Stat     StatRequest        StatResponse
//	/filesystem.Filesystem/MakeDir  MakeDirRequest     MakeDirResponse
//	/filesystem.Filesystem/Move     MoveRequest        MoveResponse
//	/filesystem.Filesystem/ListDir  ListDirRequest     ListDirResponse...
//	/filesystem.Filesystem/Remove   RemoveRequest      RemoveResponse
//	/tranca.guest.Agent/Ping        PingRequest        PingResponse
//	/tranca.guest.Files/Read        ReadRequest        ReadResponse...
//	/tranca.guest.Files/Write       WriteRequest       WriteResponse
//	                                FileChunk...
//	/tranca.guest.Files/Symlink     SymlinkRequest     SymlinkResponse
//	/tranca.guest.Ports/Dial        DialRequest        DialResponse
//	                                FileChunk...       FileChunk...
//
// Over package wire, Start is a call with two side streams: the first carries
// the program's stdout, the second its stderr, each as StartResponse messages
// that hold data events, so that each has its own flow control. The main stream
// carries start and end. Both side streams have ended before the end event is
// sent. The other way, the main stream carries stdin as StreamInputRequest
// messages that hold data, and its end closes stdin. A reset of it kills the
// program. A program with a terminal has all its output in the first side
// stream, as pty data; what is typed comes as pty data too, and its end closes
// nothing.
//
// Strings are bytes as the kernel has them: names and paths need not be UTF-8.
//
// Every Unmarshal bounds lengths and counts by the constants below, never
// panics, and may keep slices of its input where it says so. The codec is our
// own, some lines long: protobuf's would add fmt, reflection and a read of the
// program's own file to the agent's start.
package message
