package image

import (
	"cmp"
	"encoding/json"
	"time"
)

// Bounds are what an image may take at most. A field that is 0 has the default.
type Bounds struct {
	// Layers counts layers; the default is 256.
	Layers int
	// Bytes bounds one blob, one layer's archive when it is decompressed, and
	// the files of a tree together; the default is 64 GiB.
	Bytes int64
	// Entries bounds the entries of all layers together; the default is 2,000,000.
	Entries int
	// Time bounds the unpacking of one image; the default is one hour.
	Time time.Duration
}

func (b Bounds) withDefaults() Bounds {
	return Bounds{
		Layers: cmp.Or(b.Layers, 256), Bytes: cmp.Or(b.Bytes, 64<<30),
		Entries: cmp.Or(b.Entries, 2_000_000), Time: cmp.Or(b.Time, time.Hour),
	}
}

// archive is how long a layer's archive may be when it is decompressed: with
// room for the headers of its entries.
func (b Bounds) archive() int64 { return b.Bytes + int64(b.Entries)*2048 }

// AddOptions say how an image comes into the store.
type AddOptions struct {
	// Name is what it is called from then on; needed.
	Name string
	// Platform is the one to take of several; the zero value is this host's.
	Platform Platform
	Progress Progress
}

// Info is what is known of an image.
type Info struct {
	// Digest is that of the manifest; Names are what it is called, sorted.
	Digest string   `json:"digest"`
	Names  []string `json:"names"`
	Source string   `json:"source,omitempty"`
	// Platform is for what it was made.
	Platform Platform `json:"platform"`
	// Size is what its layers take, in bytes, and Tally what is in its tree.
	Size  int64 `json:"size"`
	Tally Tally `json:"tree"`
	// Added is when it came, and Used when a sandbox last began with it; zero
	// where that isn't known.
	Added time.Time `json:"added,omitzero"`
	Used  time.Time `json:"used,omitzero"`
	// Damaged says why it can't be used; empty where it can.
	Damaged string `json:"damaged,omitempty"`
}

// Detail is all that the store knows of an image.
type Detail struct {
	Info
	// Root is where the tree lies.
	Root   string       `json:"root"`
	Config string       `json:"config"`
	Layers []Descriptor `json:"layers"`
	// Env is what a program finds. What Docker would run and as whom is shown,
	// and decides nothing here.
	Env        map[string]string `json:"env"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Command    []string          `json:"command,omitempty"`
	User       string            `json:"user,omitempty"`
	Workdir    string            `json:"workdir,omitempty"`
	Volumes    []string          `json:"volumes,omitempty"`
	Health     json.RawMessage   `json:"healthcheck,omitempty"`
}

// Tally is what an unpacked tree holds.
type Tally struct {
	// Entries counts the entries of all layers.
	Entries int `json:"entries"`
	// Bytes is the content of all files that were written.
	Bytes int64 `json:"bytes"`
	// LeftOut counts devices, FIFOs and sockets, which are left out, and Some
	// names the first of them.
	LeftOut int      `json:"left_out,omitempty"`
	Some    []string `json:"some_left_out,omitempty"`
	// Made names the places that every sandbox has of its own and the image had
	// not; they are empty in the tree.
	Made []string `json:"made,omitempty"`
	// SetID counts programs that lost their set-id bits.
	SetID int `json:"set_id_stripped,omitempty"`
}

// Removed is what was taken out of the store.
type Removed struct {
	// Names were given up, and Images are the digests that are gone.
	Names  []string `json:"names"`
	Images []string `json:"images"`
	// Bytes is what that freed.
	Bytes int64 `json:"bytes"`
	// Kept says of images that were to go why they did not.
	Kept []string `json:"kept,omitempty"`
}

// Profiles are the images that tranca can build without being told what is in
// them.
var Profiles = []string{"code", "minimal"}
