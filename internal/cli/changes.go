package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/changeset"
)

// Changes is where this user's changes to mounts of mode cow are kept.
type Changes interface {
	// List returns what is kept, the newest first.
	List(ctx context.Context) ([]changeset.Info, error)
	// Diff shows each change against what the host has now.
	Diff(ctx context.Context, id tranca.ID, only []string, show func(*changeset.FileDiff) error) error
	// Apply writes changes to the host's folders.
	Apply(ctx context.Context, id tranca.ID, o changeset.ApplyOptions) (*changeset.Report, error)
	// Drop forgets them.
	Drop(id tranca.ID) error
	Close() error
}

// withChanges does the work of a command on what is kept. The first signal ends
// the context, and with it the work.
func (a *app) withChanges(ctx context.Context, c *cli.Command, work func(context.Context, Changes) error) error {
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	return a.reported(c, a.atChanges(ctx, work))
}

func (a *app) atChanges(ctx context.Context, work func(context.Context, Changes) error) error {
	if a.Changes == nil {
		return fmt.Errorf("%w: nothing is kept on this host", tranca.ErrUnsupported)
	}
	kept, err := a.Changes()
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, kept), kept.Close())
}

// ageOf is how long ago something was, as a table shows it.
func ageOf(t time.Time) string { return span(time.Since(t)) }
