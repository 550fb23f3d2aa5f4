package changeset

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestApplyKilled kills an application again and again in mid-step: the host has
// each path as it was or as it shall be, and in the end all of them, with
// nothing beside.
func TestApplyKilled(t *testing.T) {
	const storeVariable = "TRANCA_TEST_STORE"
	if path := os.Getenv(storeVariable); path != "" {
		s, err := OpenStore(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("begin")
		if _, err := s.Apply(context.Background(), testID, ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	host, upper := map[string]string{}, map[string]string{}
	for i := range 600 {
		dir := fmt.Sprintf("d%d/", i%20)
		host[dir+fmt.Sprint("old", i)], upper[dir+fmt.Sprint("old", i)] = "old", "new"
		host[dir+fmt.Sprint("gone", i)], upper[dir+fmt.Sprint("gone", i)] = "gone", "!"
		upper[dir+fmt.Sprint("made/", i)] = strings.Repeat("made", 1000)
	}
	w := newWorld(t, host)
	w.track()
	w.make(w.upper, upper)
	for i := range 20 {
		w.copiedUp(fmt.Sprintf("d%d", i))
	}
	w.read(Bounds{})
	killed := 0
	for wait := time.Millisecond; killed < 200; wait += 10 * time.Millisecond {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestApplyKilled$")
		cmd.Env = append(os.Environ(), storeVariable+"="+w.store.path)
		out, err := cmd.StdoutPipe()
		w.must(err)
		w.must(cmd.Start())
		_, _ = out.Read(make([]byte, 6)) // it begins
		timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		timer.Stop()
		checkHalf(t, w, host)
		if err == nil {
			break
		}
		if killed++; !strings.Contains(err.Error(), "killed") {
			t.Fatal(err)
		}
	}
	t.Logf("killed %d times", killed)
	if killed == 0 {
		t.Fatal("it was never killed")
	}
	got := tree(t, w.host)
	if n := len(got); n != 600+600+20+20 {
		t.Errorf("%d paths are there", n)
	}
	for name, content := range got {
		if strings.Contains(filepath.Base(name), ".tranca") || strings.HasSuffix(content, " old") || strings.HasSuffix(content, " gone") {
			t.Errorf("%s has %.20q", name, content)
		}
	}
}

// TestApplyClears removes what an application left that was killed at its last
// step: nothing is to be written there any more.
func TestApplyClears(t *testing.T) {
	w := newWorld(t, map[string]string{"d/a": "a", "gone/x": "x", "gone/y": "y"})
	w.track()
	w.make(w.upper, map[string]string{"d/a": "A", "gone": "!", "made/a": "A"})
	w.copiedUp("d")
	w.read(Bounds{})
	if _, err := w.apply(ApplyOptions{Only: []string{"d"}}); err != nil {
		t.Fatal(err)
	}
	temp, again, err := w.store.tempFor(testID)
	if err != nil || !again {
		t.Fatal(temp, again, err)
	}
	w.make(w.host, map[string]string{"d/" + temp: "a"})
	w.must(os.Rename(filepath.Join(w.host, "gone/x"), filepath.Join(w.host, "gone", temp)))
	w.must(os.Mkdir(filepath.Join(w.host, temp), 0o700)) // it was about to be the folder made
	if _, err := w.apply(ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, w.host); len(got) != 4 {
		t.Errorf("the host has %v", got)
	}
}

// checkHalf wants each file whole, in one state or the other.
func checkHalf(t *testing.T, w *world, host map[string]string) {
	t.Helper()
	for name, content := range tree(t, w.host) {
		_, body, _ := strings.Cut(content, " ")
		if strings.HasSuffix(name, "/") || strings.HasPrefix(filepath.Base(name), ".tranca-") {
			continue
		}
		was, there := host[name]
		if body != was && body != "new" && body != strings.Repeat("made", 1000) || there && body != was && body != "new" {
			t.Fatalf("%s has %.20q", name, body)
		}
	}
}
