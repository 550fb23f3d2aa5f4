package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/terminal"
)

// maxCode bounds what is read as code, so that /dev/zero is an error and not
// the end of this machine's memory. The engine has its own, lower bound.
const maxCode = 64 << 20

// request makes the request from arguments and flags, apart from what it asks
// of the policy.
func (a *app) request(ctx context.Context, c *cli.Command) (tranca.Request, error) {
	req := tranca.Request{Language: c.String("lang"), Args: c.Args().Slice(), Stdin: a.programInput()}
	if c.IsSet("code") {
		req.Code = c.String("code")
		return req, nil
	}
	if len(req.Args) == 0 {
		return req, &usageError{c.FullName(), "no code: name a file, or - for standard input, or give it with -c"}
	}
	name := req.Args[0]
	req.Args = req.Args[1:]
	if name == "-" {
		req.Stdin = nil
		code, err := readCode(ctx, a.Stdin, "standard input")
		req.Code = code
		return req, err
	}
	f, err := os.Open(name)
	if err != nil {
		return req, fileError(err)
	}
	defer f.Close()
	req.Code, err = readCode(ctx, f, name)
	return req, err
}

// programInput is what the program reads. A terminal that another job is
// using is left alone: reading it would stop this process.
func (a *app) programInput() io.Reader {
	if terminal.Background(a.Stdin) {
		return nil
	}
	return a.Stdin
}

// readCode reads code and gives up when ctx ends, since what it reads may be
// a terminal or a FIFO on which nothing ever comes.
func readCode(ctx context.Context, r io.Reader, name string) (string, error) {
	text, err := readMost(ctx, r, maxCode)
	if err != nil {
		return "", err
	}
	if len(text) > maxCode {
		return "", fmt.Errorf("%w: the code in %s is larger than %d MiB", tranca.ErrInvalid, name, maxCode>>20)
	}
	return string(text), nil
}

// readMost reads one byte more than allowed, so that it is seen what is too
// long, and gives up when ctx ends.
func readMost(ctx context.Context, r io.Reader, allowed int64) ([]byte, error) {
	type outcome struct {
		text []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(r, allowed+1))
		read <- outcome{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case o := <-read:
		if o.err != nil {
			return nil, fileError(o.err)
		}
		return o.text, nil
	}
}

// fileError gives an error of the file system its class.
func fileError(err error) error {
	class := tranca.ErrInvalid
	if errors.Is(err, fs.ErrNotExist) {
		class = tranca.ErrNotFound
	}
	return fmt.Errorf("%w: %w", class, err)
}
