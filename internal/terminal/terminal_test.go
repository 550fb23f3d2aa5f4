package terminal

import (
	"bytes"
	"os"
	"testing"
)

func TestUnicode(t *testing.T) {
	tests := []struct {
		env  map[string]string
		want bool
	}{
		{nil, false},
		{map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.utf8"}, true},
		{map[string]string{"LANG": "C"}, false},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LANG": "C", "LC_CTYPE": "C.UTF-8"}, true},
	}
	for _, tt := range tests {
		if got := Unicode(func(k string) string { return tt.env[k] }); got != tt.want {
			t.Errorf("%v: got %v", tt.env, got)
		}
	}
}

func TestWhatIsNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, v := range []any{nil, &bytes.Buffer{}, null, (*os.File)(nil)} {
		if Is(v) || Background(v) || Colour(v, func(string) string { return "" }) {
			t.Errorf("%T passes for a terminal", v)
		}
	}
}
