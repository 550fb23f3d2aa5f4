package mcp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif"  // so that image.DecodeConfig reads it
	_ "image/jpeg" // the same
	_ "image/png"  // the same
)

// Bounds of one image. Models refuse more, and some clients can't go on with a
// conversation that holds an image which the model refuses; so what is not
// certainly fit stays out of it.
const (
	maxImage  = 5 << 20
	maxPixels = 8000 // in each direction
)

// kinds are the kinds of image that every client takes, by their first bytes.
// A dot stands for any byte.
var kinds = []struct{ mime, magic string }{
	{"image/png", "\x89PNG\r\n\x1a\n"},
	{"image/jpeg", "\xff\xd8\xff"},
	{"image/gif", "GIF87a"},
	{"image/gif", "GIF89a"},
	{"image/webp", "RIFF....WEBP"},
}

// sniffed is enough of a file to tell an image by.
const sniffed = 12

// imageKind returns the MIME type of an image by its first bytes, or "".
func imageKind(head []byte) string {
	for _, k := range kinds {
		if len(head) >= len(k.magic) && matches(head, k.magic) {
			return k.mime
		}
	}
	return ""
}

func matches(head []byte, magic string) bool {
	for i := range len(magic) {
		if magic[i] != '.' && magic[i] != head[i] {
			return false
		}
	}
	return true
}

// picture is an image that a client can show.
type picture struct {
	mime          string
	data          []byte
	width, height int
}

// checkImage looks at the frame of an image: whole and of a sane size. It
// decodes no pixels, since few bytes may stand for very many. The error is
// fit for the agent.
func checkImage(mime string, data []byte) (picture, error) {
	p := picture{mime: mime, data: data}
	if len(data) > maxImage {
		return p, fmt.Errorf("it has more than %s", size(maxImage))
	}
	var known bool
	if mime == "image/webp" {
		p.width, p.height, known = webpSize(data)
	} else if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		p.width, p.height, known = c.Width, c.Height, true
	}
	if !known || !complete(mime, data) {
		return p, fmt.Errorf("it begins as %s, but is broken or not whole", mime)
	}
	if p.width < 1 || p.height < 1 || p.width > maxPixels || p.height > maxPixels {
		return p, fmt.Errorf("it has %d x %d pixels, and at most %d each way can be shown", p.width, p.height, maxPixels)
	}
	return p, nil
}

// complete reports whether the end of the image is there: a program that was
// stopped leaves half of one.
func complete(mime string, data []byte) bool {
	switch mime {
	case "image/png":
		return bytes.Contains(tail(data, 64), []byte("IEND\xaeB`\x82"))
	case "image/jpeg":
		return bytes.Contains(tail(data, 64), []byte{0xff, 0xd9})
	case "image/gif":
		return bytes.IndexByte(tail(data, 16), 0x3b) >= 0
	case "image/webp":
		return len(data) >= 12 && int64(binary.LittleEndian.Uint32(data[4:]))+8 <= int64(len(data))
	}
	return false
}

func tail(data []byte, n int) []byte { return data[max(0, len(data)-n):] }

// webpSize reads the size from the first chunk of a WebP file.
func webpSize(data []byte) (width, height int, ok bool) {
	if len(data) < 30 {
		return 0, 0, false
	}
	body := data[20:]
	switch string(data[12:16]) {
	case "VP8 ":
		if !bytes.Equal(body[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return 0, 0, false
		}
		w, h := binary.LittleEndian.Uint16(body[6:]), binary.LittleEndian.Uint16(body[8:])
		return int(w & 0x3fff), int(h & 0x3fff), true
	case "VP8L":
		if body[0] != 0x2f {
			return 0, 0, false
		}
		bits := binary.LittleEndian.Uint32(body[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
	case "VP8X":
		return int24(body[4:]) + 1, int24(body[7:]) + 1, true
	}
	return 0, 0, false
}

func int24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
