package server

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"tranca/internal/api"
)

// TestPlainOutput shows which streams end with their connection: frames that
// are followed by the socket, whose last one tells the end.
func TestPlainOutput(t *testing.T) {
	w := start(t)
	path := w.launch(w.create(), api.StartRequest{Args: []string{"flood", "10000"}})
	for _, tc := range []struct {
		query, accept string
		plain         bool
	}{
		{"", api.TypeFrames, true},
		{"?follow=true", api.TypeFrames, true},
		{"?follow=false", api.TypeFrames, false},
		{"", api.TypeEvents, false},
	} {
		r := w.want(200, "GET", path+"/output"+tc.query, nil, "Accept", tc.accept)
		chunked := slices.Contains(r.TransferEncoding, "chunked")
		if r.Close != tc.plain || chunked == tc.plain || r.ContentLength >= 0 && tc.plain {
			t.Errorf("%q of %s: close %v, %q, length %d", tc.query, tc.accept, r.Close, r.TransferEncoding, r.ContentLength)
		}
		if !tc.plain {
			continue
		}
		var last api.Event
		for src, buf := bytes.NewReader(r.body), []byte(nil); ; {
			ev, _, err := api.ReadFrame(src, &buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			last = ev
		}
		if last.Type != api.EventExit {
			t.Errorf("%q: the last event is %+v", tc.query, last)
		}
	}
}
