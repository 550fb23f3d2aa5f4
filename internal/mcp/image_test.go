package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// webp is a picture of one pixel.
const webp = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="

func pictures(t *testing.T, w, h int) map[string][]byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.White})
	all := map[string][]byte{}
	for mime, encode := range map[string]func(*bytes.Buffer) error{
		"image/png":  func(b *bytes.Buffer) error { return png.Encode(b, img) },
		"image/jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) },
		"image/gif":  func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		all[mime] = b.Bytes()
	}
	return all
}

func TestImagesOfEachKind(t *testing.T) {
	all := pictures(t, 3, 2)
	for mime, data := range all {
		p, err := checkImage(imageKind(data), data)
		if err != nil || p.mime != mime || p.width != 3 || p.height != 2 {
			t.Errorf("%s: %+v, %v", mime, p, err)
		}
	}
	data, err := base64.StdEncoding.DecodeString(webp)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := checkImage(imageKind(data), data); err != nil || p.mime != "image/webp" || p.width != 1 || p.height != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestBrokenImages(t *testing.T) {
	all := pictures(t, 30, 20)
	webp, err := base64.StdEncoding.DecodeString(webp)
	if err != nil {
		t.Fatal(err)
	}
	all["image/webp"] = webp
	for mime, data := range all {
		for name, broken := range map[string][]byte{
			"half": data[:len(data)/2], "without its end": data[:len(data)-4], "its head": data[:sniffed],
		} {
			if _, err := checkImage(mime, broken); err == nil {
				t.Errorf("%s, %s: it passes", mime, name)
			}
		}
	}
	if _, err := checkImage("image/png", hugePNG(40000)); err == nil || !strings.Contains(err.Error(), "40000") {
		t.Errorf("a huge frame: %v", err)
	}
	if _, err := checkImage("image/png", make([]byte, maxImage+1)); err == nil {
		t.Error("too many bytes pass")
	}
	for _, text := range []string{"", "hello", "GIF", "RIFF\x00\x00\x00\x00WAVE", "<svg/>", "%PDF-1.4"} {
		if kind := imageKind([]byte(text)); kind != "" {
			t.Errorf("%q is taken for %s", text, kind)
		}
	}
}

// hugePNG is small, and says that it is so wide and high.
func hugePNG(side uint32) []byte {
	chunk := func(kind string, data []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		body := append([]byte(kind), data...)
		return binary.BigEndian.AppendUint32(append(b, body...), crc32.ChecksumIEEE(body))
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side)
	out := []byte("\x89PNG\r\n\x1a\n")
	out = append(out, chunk("IHDR", append(head, 8, 2, 0, 0, 0))...)
	return append(out, chunk("IEND", nil)...)
}

func FuzzCheckImage(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"))
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"))
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00\xff\xd9"))
	if data, err := base64.StdEncoding.DecodeString(webp); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kind := imageKind(data)
		if kind == "" {
			return
		}
		if p, err := checkImage(kind, data); err == nil && (p.width < 1 || p.height < 1 || p.width > maxPixels || p.height > maxPixels) {
			t.Errorf("%d x %d pixels pass", p.width, p.height)
		}
	})
}
