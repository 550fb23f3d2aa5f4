package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"tranca"
	"tranca/hostile/report"
	"tranca/hostile/report/reporttest"
	"tranca/internal/cli"
)

// fakeHostile stands in for the suite: it finds what FAKE_HOSTILE names, of the
// columns and probes that it was asked for.
func fakeHostile(ctx context.Context, s cli.HostileSetup) (*report.Report, error) {
	r := reporttest.Good()
	switch os.Getenv("FAKE_HOSTILE") {
	case "bad":
		r = reporttest.Bad()
	case "broken":
		return nil, errors.New("the disposable place can't be made: no user namespaces")
	case "dies":
		return reporttest.Partial(), errors.New("the disk is full")
	case "stopped":
		return untilStopped(ctx, s)
	}
	if err := known(r, s); err != nil {
		return nil, err
	}
	r, _ = r.Narrow(func(c *report.Column) bool {
		switch c.Kind {
		case report.ColumnBackend:
			return len(s.Backends) == 0 || slices.Contains(s.Backends, c.Name)
		case report.ColumnReference:
			return s.Reference
		}
		return c.Kind == report.ColumnControl
	}, func(p *report.Probe) bool {
		fits, _ := report.Selects(s.Only, p.ID)
		return fits
	})
	for i := range r.Columns {
		r.Columns[i].Waived = s.Waive
	}
	for _, text := range s.Against {
		name, args, err := report.ParseCommand(text)
		if err != nil {
			return nil, err
		}
		r.Columns = append(r.Columns, report.Column{Name: name, Kind: report.ColumnAgainst, Tool: "a tool", Command: fmt.Sprintf("%q", args)})
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		s.Progress(report.Progress{Done: i, Total: len(r.Cells), Probe: c.Probe, Column: c.Column})
		s.Progress(report.Progress{Done: i + 1, Total: len(r.Cells), Probe: c.Probe, Column: c.Column, Cell: c})
	}
	return r, nil
}

func known(r *report.Report, s cli.HostileSetup) error {
	if s.ProbesDir != "" {
		if _, err := fakeProbes(s.ProbesDir); err != nil {
			return err
		}
	}
	names := []string{"subprocess", "process", "container", "gvisor"}
	for _, b := range s.Backends {
		if !slices.Contains(names, b) {
			return report.NoSuch("backend", b, names)
		}
	}
	var ids []string
	for _, p := range r.Probes {
		ids = append(ids, p.ID)
	}
	for _, pattern := range s.Only {
		if !slices.ContainsFunc(ids, func(id string) bool { fits, _ := report.Selects([]string{pattern}, id); return fits }) {
			return report.NoSuch("probe", pattern, ids)
		}
	}
	return nil
}

// untilStopped is a run that a signal ends after its first probe.
func untilStopped(ctx context.Context, s cli.HostileSetup) (*report.Report, error) {
	s.Progress(report.Progress{Total: 20, Note: "the first control"})
	fmt.Fprintln(os.Stdout, "under way") // what the script waits for
	<-ctx.Done()
	r := reporttest.Partial()
	r.Stopped = strings.TrimPrefix(context.Cause(ctx).Error(), "stopped by ")
	return r, context.Cause(ctx)
}

func fakeProbes(dir string) ([]report.Probe, error) {
	if dir != "" {
		return nil, fmt.Errorf("%w: %s/x-01/probe.yaml:3: unknown field \"tri\"; did you mean try?\n%s/x-02/probe.yaml:1: it has no try", tranca.ErrInvalid, dir, dir)
	}
	return reporttest.Probes(), nil
}
