package container_test

import (
	"context"
	"strings"
	"testing"

	"tranca"
)

// What an image says about how it wants to be run changes nothing, and an image
// needs nothing of tranca's.
func TestImages(t *testing.T) {
	for name, c := range map[string]struct {
		image imageSpec
		words []string // of the probe
		want  string
	}{
		"without a shell":         {imageSpec{}, []string{"ids"}, "1000 1000 1000 1000\n"},
		"with an entrypoint":      {imageSpec{config: map[string]any{"Entrypoint": []string{"/bin/probe", "exit"}, "Cmd": []string{"exit"}}}, []string{"ids"}, "1000 1000 1000 1000\n"},
		"with a user":             {imageSpec{config: map[string]any{"User": "12345:12345"}}, []string{"ids"}, "1000 1000 1000 1000\n"},
		"with a healthcheck":      {imageSpec{config: map[string]any{"Healthcheck": map[string]any{"Test": []string{"CMD", "/bin/probe", "write=/work/checked"}, "Interval": 1e9, "Retries": 3}}}, []string{"sleep=2s", "list=/work"}, "/work [] <nil>\n"},
		"with a working folder":   {imageSpec{config: map[string]any{"WorkingDir": "/proc/self/fd/7"}}, []string{"ids"}, "1000 1000 1000 1000\n"},
		"with a setuid program":   {imageSpec{mode: 0o6755}, []string{"ids", "exec=/bin/probe"}, "1000 1000 1000 1000\n1000 1000 1000 1000\n<nil>\n"},
		"with files for the root": {imageSpec{files: map[string]string{"etc/secret": "of the image"}}, []string{"read=/etc/secret", "write=/etc/secret"}, "\"of the image\" <nil>\nopen /etc/secret: read-only file system\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := docker.options(t)
			c.image.load(t, &o)
			b := open(t, o)
			t.Cleanup(func() { b.Close(context.Background()) })
			sb := create(t, b, testPolicy())
			out, exit := run(t, sb, append([]string{"/bin/probe"}, c.words...)...)
			if err := sb.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if out != c.want && !strings.Contains(out, "permission denied") {
				t.Errorf("it says %q, want %q (%v)", out, c.want, exit)
			}
		})
	}
}

func TestTheImagesEnvironmentIsBeneathThePolicys(t *testing.T) {
	o, _ := docker.options(t)
	imageSpec{config: map[string]any{"Env": []string{"PATH=/bin", "A=image", "B=image"}}}.load(t, &o)
	b := open(t, o)
	t.Cleanup(func() { b.Close(context.Background()) })
	sb := create(t, b, testPolicy(func(p *tranca.Policy) { p.Env["B"] = "policy" }))
	out, _ := run(t, sb, "probe", "env")
	for _, want := range []string{"A=image\n", "B=policy\n", "PATH=/bin\n", "HOME=/work\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if strings.Contains(out, "HOSTNAME=") {
		t.Errorf("the engine's own variable: %q", out)
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A volume of the image is no folder on the host's disk.
func TestAVolumeOfTheImage(t *testing.T) {
	o, _ := docker.options(t)
	imageSpec{config: map[string]any{"Volumes": map[string]any{"/data": map[string]any{}, "/work": map[string]any{}}}, files: map[string]string{"data/file": "x"}}.load(t, &o)
	c := client(t, o)
	before, err := c.Volumes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, o)
	t.Cleanup(func() { b.Close(context.Background()) })
	sb := create(t, b, testPolicy())
	out, _ := run(t, sb, "/bin/probe", "write=/data/mine", "list=/data", "write=/work/mine")
	if out != "open /data/mine: read-only file system\n/data [] <nil>\n<nil>\n" {
		t.Errorf("it says %q", out)
	}
	during, err := c.Volumes(t.Context())
	if err != nil || len(during) > len(before) {
		t.Errorf("%d volumes, %d before (%v)", len(during), len(before), err)
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// An image whose /proc or /dev leads elsewhere is refused, or does no harm.
func TestAnImageWhoseSystemFoldersAreLinks(t *testing.T) {
	for _, link := range []string{"proc", "dev", "sys", "tmp", "work", ".tranca"} {
		t.Run(link, func(t *testing.T) {
			o, _ := docker.options(t)
			imageSpec{links: map[string]string{link: "/etc"}, files: map[string]string{"etc/x": "y"}}.load(t, &o)
			b := open(t, o)
			defer b.Close(t.Context())
			sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: testPolicy()})
			if err != nil {
				t.Log("refused:", err)
				return
			}
			out, _ := run(t, sb, "/bin/probe", "ids", "write=/etc/evil", "list=/etc")
			if err := sb.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if !strings.HasPrefix(out, "1000 1000 1000 1000\nopen /etc/evil: ") && link != "tmp" {
				t.Errorf("it says %q", out)
			}
		})
	}
}
