package image

import (
	"errors"
	"strings"
	"testing"

	"tranca"
)

func TestParseName(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	for text, want := range map[string]Name{
		"code": {Name: "code"}, "code:latest": {Name: "code"}, "code:1.2_A-b": {Name: "code:1.2_A-b"},
		"docker.io/library/python:3": {Name: "python:3"}, "index.docker.io/a/b": {Name: "a/b"}, "library/x": {Name: "x"},
		"library/x/y": {Name: "library/x/y"}, "localhost:5000/a__b/c---d": {Name: "localhost:5000/a__b/c---d"},
		"r.example/team/tool:v1": {Name: "r.example/team/tool:v1"}, "[::1]:5000/x": {},
		"code@" + digest: {Name: "code", Digest: digest}, digest: {Digest: digest}, "sha256:abcdef": {Digest: "sha256:abcdef"},
		"": {}, "host": {}, "host:latest": {}, "Code": {}, "a..b": {}, "-a": {}, "a:": {}, "a:.b": {}, "a//b": {}, "a b": {},
		"../x": {}, "/x": {}, "a:b:c": {}, "a@b": {}, "a@sha256:12": {}, "sha256:abc": {}, "a___b": {}, "a\x00": {}, "ü": {},
		"r.example:port/x": {}, strings.Repeat("a", 256): {}, "a:" + strings.Repeat("b", 129): {}, "r.example/": {},
	} {
		got, err := ParseName(text)
		if want == (Name{}) {
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Errorf("%q is %+v, %v", text, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParsePlatform(t *testing.T) {
	for text, want := range map[string]Platform{
		"": {}, "linux/arm64": {OS: "linux", Architecture: "arm64"}, "linux/arm/v7": {OS: "linux", Architecture: "arm", Variant: "v7"},
	} {
		if got, err := ParsePlatform(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"linux", "linux/", "/", "a/b/c/d"} {
		if _, err := ParsePlatform(text); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
