// Sbom writes a CycloneDX bill of materials from what Go recorded in a binary
// and in those that it embeds.
//
//	sbom -version V -o FILE BINARY [EMBEDDED...]
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
)

func main() {
	version := flag.String("version", "dev", "version of the release")
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if err := write(*out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(out, version string, binaries []string) error {
	if len(binaries) == 0 || out == "" {
		return fmt.Errorf("want -o FILE and at least one binary")
	}
	var infos []*buildinfo.BuildInfo
	for _, name := range binaries {
		info, err := buildinfo.ReadFile(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		infos = append(infos, info)
	}
	return writeBOM(out, binaries[0], version, infos)
}
