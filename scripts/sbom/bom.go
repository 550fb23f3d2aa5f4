package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bom is the part of CycloneDX 1.5 that is written. It holds no time and no
// random number, so that a release can be made again byte for byte.
type bom struct {
	Format      string      `json:"bomFormat"`
	Spec        string      `json:"specVersion"`
	Serial      string      `json:"serialNumber"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
	Composition []dependsOn `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependsOn struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

func writeBOM(out, binary, version string, infos []*buildinfo.BuildInfo) error {
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	text, err := json.MarshalIndent(makeBOM(filepath.Base(binary), version, sum, infos), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

func makeBOM(name, version string, sum [32]byte, infos []*buildinfo.BuildInfo) bom {
	modules := map[string]component{}
	for _, info := range infos {
		golang := "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
		modules[golang] = component{
			Type: "library", Ref: golang, Name: "std", Version: info.GoVersion, PURL: golang,
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			purl := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
			modules[purl] = component{
				Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl,
				Properties: []property{{"go:sum", m.Sum}},
			}
		}
	}
	refs := slices.Sorted(maps.Keys(modules))
	main := component{
		Type: "application", Ref: name, Name: name, Version: version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: make([]license, 1),
	}
	main.Licenses[0].License.ID = "Apache-2.0"
	b := bom{
		Format: "CycloneDX", Spec: "1.5", Serial: serial(sum), Version: 1,
		Metadata: metadata{main}, Composition: []dependsOn{{name, refs}},
	}
	for _, ref := range refs {
		b.Components = append(b.Components, modules[ref])
	}
	return b
}

// serial makes a UUID of version 8 (own content) from the binary's digest.
func serial(sum [32]byte) string {
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}
