//go:build linux

package app

import (
	"context"
	"os"
	"path/filepath"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/app/backends"
	"tranca/internal/cli"
	"tranca/internal/hostcheck"
)

// inspect probes every backend and looks at the host, by the lists that count
// here or that the operator named.
func inspect(ctx context.Context, setup cli.InspectSetup) (cli.Inspection, error) {
	known, checks, err := lists(setup)
	if err != nil {
		return cli.Inspection{}, err
	}
	seen := cli.Inspection{Probed: probeKnowing(ctx, known)}
	var reports []tranca.Report
	for _, p := range seen.Probed {
		if p.Err == nil {
			reports = append(reports, p.Report)
		}
	}
	table := known.Table()
	host := hostcheck.This(table, reports, filepath.SplitList(os.Getenv(backends.CgroupVariable)))
	seen.Checks = hostcheck.Run(ctx, checks, host)
	seen.Behaviour = func(a tranca.Advisory) (string, []string) { return host.Behaviour(a, seen.Checks) }
	seen.Lists = []cli.ListInForce{
		{Name: "advisories", Source: table.Source, Date: table.Date, Note: table.Note},
		{Name: "checks", Source: checks.Source, Date: checks.Date, Note: checks.Note},
	}
	return seen, nil
}

// lists finds the lists that count.
func lists(setup cli.InspectSetup) (*advisory.InForce, *hostcheck.List, error) {
	known := backends.Advisories()
	if setup.Advisories != "" {
		path, err := filepath.Abs(setup.Advisories)
		if err != nil {
			return nil, nil, err
		}
		if known, err = advisory.Named(path, backends.ReadList); err != nil {
			return nil, nil, err
		}
	}
	if setup.Checks == "" {
		return known, hostcheck.Installed(hostcheck.SystemFile, backends.ReadList), nil
	}
	path, err := filepath.Abs(setup.Checks)
	if err != nil {
		return nil, nil, err
	}
	checks, err := hostcheck.Named(path, backends.ReadList)
	return known, checks, err
}
