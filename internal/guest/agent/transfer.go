package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

func errorsIsEOF(err error) bool { return errors.Is(err, io.EOF) }

// read answers with a file's entry and then its content.
func (a *agent) read(c *wire.Call) error {
	var req message.ReadRequest
	if err := receive(c, &req); err != nil {
		return err
	}
	path := a.abs(req.Path)
	if err := checkPath(path); err != nil {
		return err
	}
	if req.Offset < 0 {
		return invalid("a negative offset")
	}
	var f *os.File
	var st *unix.Stat_t
	err := a.id.do(func() (err error) {
		f, st, err = openRegular(path, unix.O_RDONLY, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer f.Close()
	entry := entryFrom(st, path, path)
	entry.Name = ""
	first := message.ReadResponse{Entry: &entry}
	if err := c.Send(context.Background(), first.Append(nil), false); err != nil {
		return err
	}
	if err := sendFile(c, f, req.Offset); err != nil {
		return err
	}
	return c.CloseSend()
}

// sendFile sends a file from an offset to where it ends when that is reached.
func sendFile(c *wire.Call, f *os.File, offset int64) error {
	size := firstRead
	for {
		b := wire.NewBuf(size)
		n, err := f.ReadAt(b.Bytes(), offset)
		if n > 0 {
			offset += int64(n)
			if serr := sendChunk(c, b, n); serr != nil {
				return serr
			}
		} else {
			b.Free()
		}
		if errorsIsEOF(err) {
			return nil
		}
		if err != nil {
			return onPath("reading", f.Name(), err)
		}
		size = min(4*size, mostRead)
	}
}

// sendChunk sends the n bytes that were read into b, and frees it.
func sendChunk(c *wire.Call, b *wire.Buf, n int) error {
	defer b.Free()
	b.Truncate(n)
	var store [message.MaxDataPrefix]byte
	b.Prepend(message.ChunkPrefix(&store, n))
	return c.SendBuf(context.Background(), b)
}

// write takes a file's content.
func (a *agent) write(c *wire.Call) error {
	var req message.WriteRequest
	if err := receive(c, &req); err != nil {
		return err
	}
	path := a.abs(req.Path)
	if err := checkPath(path); err != nil {
		return err
	}
	if req.Offset < 0 || (req.Offset > 0 && !req.Resume) {
		return invalid("an offset that is negative, or of a file that is replaced")
	}
	var f *os.File
	err := a.id.do(func() (err error) {
		if req.Resume {
			f, err = openToResume(path, req.Offset, req.Mode&0o777)
		} else {
			f, err = openToWrite(path, req.Mode&0o777, 0)
		}
		return err
	})
	if err != nil {
		return err
	}
	n, err := receiveFile(c, f)
	// Some file systems tell a full disk only here.
	if cerr := f.Close(); err == nil && cerr != nil {
		err = onPath("closing", path, cerr)
	}
	answer := message.WriteResponse{Size: n}
	if err != nil {
		if !req.Resume {
			return err
		}
		// Where to go on is the caller's business, also after a fault.
		e := toWire(err)
		answer.Code, answer.Reason = uint32(e.Code), e.Message
	}
	return c.Send(context.Background(), answer.Append(nil), true)
}

// openToWrite opens an empty regular file. A new one gets the mode whatever the
// agent's umask is; one that is there keeps its own. More are further flags.
func openToWrite(path string, mode uint32, more int) (*os.File, error) {
	f, _, err := openRegular(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, mode)
	if err == nil {
		if err = unix.Fchmod(int(f.Fd()), mode); err != nil {
			f.Close()
			return nil, onPath("setting the mode of", path, err)
		}
		return f, nil
	}
	if !errors.Is(err, syscall.EEXIST) {
		return nil, err
	}
	// It is there, or it is a link to what isn't. Emptied only once it is known
	// to be a regular file.
	f, _, err = openRegular(path, unix.O_WRONLY|unix.O_CREAT|more, mode)
	if errors.Is(err, syscall.EISDIR) {
		return nil, invalid(strconv.Quote(path) + " is no regular file")
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Ftruncate(int(f.Fd()), 0); err != nil {
		f.Close()
		return nil, onPath("emptying", path, err)
	}
	return f, nil
}

// receiveFile writes what comes on the call to a file.
func receiveFile(c *wire.Call, f *os.File) (int64, error) {
	var total int64
	for {
		b, err := c.Recv(context.Background())
		if errorsIsEOF(err) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		var chunk message.FileChunk
		err = chunk.Unmarshal(b.Bytes())
		if err == nil {
			var n int
			n, err = f.Write(chunk.Data)
			total += int64(n)
		}
		b.Free()
		if err != nil {
			return total, onPath("writing", f.Name(), err)
		}
	}
}
