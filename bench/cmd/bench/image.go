package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"tranca"
	"tranca/internal/backend/process"
	"tranca/internal/bench/sample"
	"tranca/internal/engine"
	"tranca/internal/image"
)

// The subjects of the image rows.
const (
	hostTree    = "host's tree: engine, cold"
	cachedImage = "cached image: engine, cold"
)

var errNoEngine = errors.New("-engine and -image name a Docker Engine and an image in it: make bench starts its own, as root")

// mostOfImage bounds in milliseconds what an image that is in the store adds to
// a sandbox.
const mostOfImage = 5

// images times one answer in a fresh sandbox with the image of the container
// rows, which is in a store, beside one with the host's own tree.
func (o *options) images(ctx context.Context, rep *report) error {
	folder, err := os.MkdirTemp("", "bench-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	store := image.New(image.Options{Dir: folder})
	const name = "bench:1"
	if err := o.saveTo(ctx, store, name); err != nil {
		return err
	}
	b, err := process.New(process.Options{})
	if err != nil {
		return err
	}
	host, imaged := o.policy(), o.policy()
	imaged.Image = name
	s, err := overBy(ctx, b, engine.Config{
		Policy: host, Images: store, Profiles: []engine.Profile{{Name: "image", Policy: imaged}},
	})
	if err != nil {
		return err
	}
	defer s.close()
	times, err := sample.Interleave(ctx, []sample.Subject{
		{Name: hostTree, Do: s.answers},
		{Name: cachedImage, Do: s.answersBy("image")},
	}, o.warm, max(o.rounds/2, 1), o.seed)
	if err != nil {
		return err
	}
	rep.beside("image", "x host's tree", times, hostTree, nil, hostTree, cachedImage)
	rep.Rows = append(rep.Rows, row{
		Part: "image", Name: "a cached image adds to a sandbox", Figure: "difference of the p50",
		Value: ms(times[cachedImage].Percentile(50) - times[hostTree].Percentile(50)), Target: mostOfImage, Unit: "ms",
	})
	return nil
}

// saveTo takes the engine's image into a store.
func (o *options) saveTo(ctx context.Context, store *image.Store, name string) error {
	if o.engine == "" || o.image == "" {
		return errNoEngine
	}
	save := exec.CommandContext(ctx, "docker", "-H", "unix://"+o.engine, "save", o.image)
	save.Stderr = os.Stderr
	archive, err := save.StdoutPipe()
	if err != nil {
		return err
	}
	if err := save.Start(); err != nil {
		return err
	}
	_, err = store.ImportStream(ctx, archive, image.AddOptions{Name: name})
	if err := errors.Join(err, save.Wait()); err != nil {
		return fmt.Errorf("docker save %s: %w", o.image, err)
	}
	return nil
}

// answersBy is answers by one of several profiles.
func (s *subject) answersBy(profile string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := s.engine.Run(ctx, tranca.Request{Code: code, Profile: profile})
		if err != nil {
			return err
		}
		return checkAnswer(r)
	}
}
