package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	words := []string{"memory", "wall", "walls", "cpu_time", "größe"}
	for _, c := range []struct {
		name    string
		changes int
		want    string
	}{
		{"memroy", 1, "memory"}, {"memry", 1, "memory"}, {"memoryy", 1, "memory"}, {"memary", 1, "memory"},
		{"MEMORY", 0, "memory"}, {"mmroy", 1, ""}, {"mmroy", 2, "memory"},
		{"wal", 1, "wall"}, {"wallss", 2, "walls"}, // the nearest, not the first
		{"grosse", 1, ""}, {"gröse", 1, "größe"}, // letters, not bytes
		{"", 9, ""}, {strings.Repeat("m", 65), 100, ""},
	} {
		if got := Nearest(c.name, words, c.changes); got != c.want {
			t.Errorf("%.20q within %d: %q, want %q", c.name, c.changes, got, c.want)
		}
	}
}
