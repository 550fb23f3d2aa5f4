package idrange

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var unexported = cmp.AllowUnexported(span{})

func TestParseSub(t *testing.T) {
	const text = "ann:100000:65536\nbob:165536:65536\r\n1000:300000:8\n# ann:1:1\nann:x:1\nann:1\nann:1:0\n" +
		":400000:8\nann:2147483640:4000\nann:0:10\nann:4294967290:100\n"
	own, all := parseSub(text, func(o string) bool { return o == "ann" || o == "1000" })
	wantOwn := []span{{100000, 165536}, {300000, 300008}, {2147483640, 1 << 31}}
	if d := cmp.Diff(wantOwn, own, unexported); d != "" {
		t.Error(d)
	}
	wantAll := []span{
		{100000, 165536}, {165536, 231072}, {300000, 300008}, {1, 2}, {400000, 400008},
		{2147483640, 2147487640}, {0, 10}, {4294967290, 4294967390},
	}
	if d := cmp.Diff(wantAll, all, unexported); d != "" {
		t.Error(d)
	}
}

func TestParseIDs(t *testing.T) {
	const passwd = "root:x:0:0::/root:/bin/sh\nann:x:1000:1001::/home/ann:\nbad\n+::::::\n"
	want := []span{{0, 1}, {0, 1}, {1000, 1001}, {1001, 1002}}
	if d := cmp.Diff(want, parseIDs(passwd, 3), unexported); d != "" {
		t.Error(d)
	}
	want = []span{{5, 6}}
	if d := cmp.Diff(want, parseIDs("tty:x:5:7\nold\n", 2), unexported); d != "" {
		t.Error(d)
	}
	names := namesOf("root:x:0:0:\ntoor:x:0:0:\nx:x:00:0:\nshort:x:0\n", 0)
	if d := cmp.Diff([]string{"root", "toor"}, names); d != "" {
		t.Error(d)
	}
}

func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		ranges, taken []span
		want          blocks
	}{
		"whole":               {[]span{{80, 160}}, nil, blocks{{10, 20}}},
		"rounded inwards":     {[]span{{81, 159}}, nil, blocks{{11, 19}}},
		"too small":           {[]span{{81, 95}}, nil, nil},
		"one id in a block":   {[]span{{80, 160}}, []span{{100, 101}}, blocks{{10, 12}, {13, 20}}},
		"first id of a block": {[]span{{80, 160}}, []span{{96, 97}}, blocks{{10, 12}, {13, 20}}},
		"all":                 {[]span{{80, 160}}, []span{{0, 1 << 32}}, nil},
		"end":                 {[]span{{80, 160}}, []span{{159, 200}}, blocks{{10, 19}}},
		"beside":              {[]span{{80, 160}}, []span{{72, 80}, {160, 170}}, blocks{{10, 20}}},
	} {
		if d := cmp.Diff(c.want, cut(c.ranges, c.taken), unexported); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// No block that is cut has an id outside of the ranges or one that is taken,
// and no other could be had.
func TestCutKeepsClear(t *testing.T) {
	spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span {
		first := rapid.Uint64Range(0, 400).Draw(t, "first")
		return span{first, first + rapid.Uint64Range(1, 120).Draw(t, "count")}
	}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		// Ranges of one user do not overlap.
		r := rapid.Uint64Range(0, 400).Draw(t, "first")
		ranges := []span{{r, r + rapid.Uint64Range(0, 300).Draw(t, "count")}}
		taken := spans.Draw(t, "taken")
		got := map[uint64]bool{}
		all := cut(ranges, taken)
		for i := range all.len() {
			got[all.at(i)] = true
		}
		if uint64(len(got)) != all.len() {
			t.Fatalf("%v has a block twice", all)
		}
		for n := range uint64(120) {
			b := span{n * Size, (n + 1) * Size}
			free := b.first >= ranges[0].first && b.end <= ranges[0].end
			for _, s := range taken {
				free = free && !b.meets(s)
			}
			if free != got[n] {
				t.Fatalf("block %d: free %v, cut %v", n, free, got[n])
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("root:x:0:0::/:/bin/sh\nann:100000:65536\n", "ann:2147483640:4294967295\n")
	f.Fuzz(func(t *testing.T, passwd, sub string) {
		for _, s := range parseIDs(passwd, 3) {
			if s.end != s.first+1 || s.first > 1<<32 {
				t.Errorf("%+v from %q", s, passwd)
			}
		}
		namesOf(passwd, 0)
		own, all := parseSub(sub, func(string) bool { return true })
		for _, s := range own {
			if s.first == 0 || s.first >= s.end || s.end > maxID {
				t.Errorf("own range %+v from %q", s, sub)
			}
		}
		taken := cut(own, all)
		if taken.len() != 0 {
			t.Errorf("%v is free of %v", taken, all)
		}
	})
}
