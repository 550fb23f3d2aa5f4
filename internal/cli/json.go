package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/terminal"
)

func jsonFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "json", Usage: usage} }

// printJSON writes v, indented. On a terminal what JSON leaves unescaped (DEL,
// C1 controls) is made visible too.
func (a *app) printJSON(v any) error { return writeJSON(shielded(a.Stdout), v) }

// printResult is printJSON for what may be large, and whose reader may never
// read. What can't be told there is told on standard error.
func (a *app) printResult(ctx context.Context, res *tranca.Result, wall time.Duration) error {
	s := newStream(shielded(a.Stdout), func(error) {})
	err := writeJSON(s, res)
	lost := s.end(ctx, readerPatience(a.Stdout, wall))
	var unread *unreadError
	switch {
	case errors.As(lost, &unread):
		explainError(a.Stderr, lost)
		return exit(statusFailed)
	case lost != nil:
		return lost
	}
	return err
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// shielded returns w, behind a filter where it is a terminal.
func shielded(w io.Writer) io.Writer {
	if terminal.Is(w) {
		return terminal.NewFilter(w)
	}
	return w
}

// errorJSON is what --json prints instead of a result.
type errorJSON struct {
	Error struct {
		// Class is the error's class, as in the root package's errors.
		Class   string `json:"class"`
		Message string `json:"message"`
		// Refusal is set for the class "refused" where it is known in detail.
		Refusal *tranca.RefusalError `json:"refusal,omitempty"`
		Status  int                  `json:"status"`
	} `json:"error"`
}

var errorClasses = []struct {
	err  error
	name string
}{
	{tranca.ErrUnavailable, "unavailable"},
	{tranca.ErrRefused, "refused"},
	{tranca.ErrInvalid, "invalid"},
	{tranca.ErrNotFound, "not_found"},
	{tranca.ErrBusy, "busy"},
	{tranca.ErrUnsupported, "unsupported"},
	{tranca.ErrProtocol, "protocol"},
	{tranca.ErrNoSpace, "no_space"},
	{tranca.ErrGone, "gone"},
	{tranca.ErrClosed, "closed"},
}

func (a *app) printErrorJSON(err error) error {
	var e errorJSON
	e.Error.Class = "error"
	for _, c := range errorClasses {
		if errors.Is(err, c.err) {
			e.Error.Class = c.name
			break
		}
	}
	e.Error.Message = err.Error()
	errors.As(err, &e.Error.Refusal)
	e.Error.Status = errorStatus(err)
	return a.printJSON(e)
}
