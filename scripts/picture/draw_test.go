package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// The committed picture shows the committed text, and no other.
func TestPictureIsOfItsText(t *testing.T) {
	text, err := os.Open("../../docs/img/run.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	want, err := os.ReadFile("../../docs/img/run.svg")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := run(text, &got, 100, "tranca run"); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("docs/img/run.svg is not what run.txt gives: run scripts/picture.sh")
	}
}

func TestDrawKeepsEveryCharacter(t *testing.T) {
	text := "$ tranca run -c 'print(\"<&>\")'\n<&>\ntranca: stopped\n" + strings.Repeat("wide ", 30) + "\n\nend ✓\n"
	svg, err := draw([]byte(text), 40, "a <title> & more")
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("no XML: %v", err)
		}
		if c, ok := tok.(xml.CharData); ok {
			shown.Write(bytes.ReplaceAll(bytes.TrimSpace(c), []byte("\u00a0"), []byte(" ")))
		}
	}
	want := "a <title> & morea <title> & more" + strings.ReplaceAll(text, "\n", "")
	strip := func(s string) string { return strings.ReplaceAll(s, " ", "") }
	if strip(shown.String()) != strip(want) {
		t.Errorf("shown:\n%s\nwant:\n%s", shown.String(), want)
	}
}

func TestWrap(t *testing.T) {
	rows := wrap(colour("$ "+strings.Repeat("a", 45)), 20)
	if len(rows) != 3 || rows[0][0].text != "$ " || rows[0][1].text != strings.Repeat("a", 18) || rows[2][0].text != strings.Repeat("a", 7) {
		t.Errorf("%q", rows)
	}
	if rows := wrap(colour(""), 20); len(rows) != 1 {
		t.Errorf("an empty line has %d rows", len(rows))
	}
}

func TestDrawRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"colours": "\x1b[1mbold\x1b[0m", "a tab": "a\tb", "no text": "\xff", "too much": strings.Repeat("x", maxInput+1),
	} {
		if _, err := draw([]byte(text), 80, "t"); err == nil {
			t.Errorf("%s is drawn", name)
		}
	}
	if _, err := draw([]byte("x"), 3, "t"); err == nil {
		t.Error("3 columns are drawn")
	}
}
