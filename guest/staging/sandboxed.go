// Package staging boots OS images on the emulated servers of a lab: it pulls them from a
// registry, verifies every blob, unpacks them in memory, and stages the root on the server's
// disk. It stands for rpm-ostree there.
package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/metalab-dev/metalab/agent/machineconfig/deployment"
	"github.com/metalab-dev/metalab/agent/machineconfig/registry"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// OS boots images on one server.
type OS struct {
	System *sandbox.System
	// Registry reads images. Its zero value has no certificates and no mirrors.
	Registry registry.Client
	Arch     string // architecture of the server, as registries name it: amd64

	mu     sync.Mutex
	image  string       // that was pulled last
	pulled sandbox.Tree // its root; nil: none
}

// New returns the images of a server, which it reads with the files of its system.
func New(s *sandbox.System, arch string) *OS {
	return &OS{System: s, Registry: registry.Client{Files: s.Host()}, Arch: arch}
}

// Booted returns the root that is booted.
func (o *OS) Booted(context.Context) (deployment.Root, error) {
	d, err := o.System.Deployments()
	return deployment.Root(d.Booted), err
}

// Pull fetches an image, and keeps its root until it is staged.
func (o *OS) Pull(ctx context.Context, image string, auth registry.Credentials) error {
	layers, err := o.Registry.Layers(ctx, image, auth, o.Arch)
	if errors.As(err, new(*registry.SizeError)) {
		return &deployment.ImageError{Err: err}
	}
	if err != nil {
		return err
	}
	var blobs []io.Reader
	for _, l := range layers {
		blobs = append(blobs, bytes.NewReader(l))
	}
	files, err := sandbox.Unpack(blobs...)
	if refused := new(sandbox.ImageError); errors.As(err, &refused) {
		return &deployment.ImageError{Err: err}
	}
	if err != nil {
		return err
	}
	// What programs of the machine's /usr need below the image's own files.
	root := sandbox.MachineFiles()
	maps.Copy(root, files)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.image, o.pulled = image, root
	return nil
}

// Stage makes the root of the next boot.
func (o *OS) Stage(ctx context.Context, next deployment.Next) error {
	booted, err := o.Booted(ctx)
	if err != nil {
		return err
	}
	root := sandbox.Deployment{Image: next.Image, Arguments: deployment.Arguments(booted.Arguments, next.Remove, next.Add)}
	if next.Image == "" {
		return o.System.Stage(root, nil, next.Drop)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.image == next.Image && o.pulled != nil {
		err := o.System.Stage(root, o.pulled, next.Drop)
		if err == nil {
			o.pulled = nil
		}
		return err
	}
	ok, err := o.System.StageInstalled(root, next.Drop)
	if err == nil && !ok {
		err = fmt.Errorf("image %s is not on the disk: it must be pulled first", next.Image)
	}
	return err
}

// Unstage removes the root that is staged.
func (o *OS) Unstage(context.Context) error { return o.System.Unstage() }

// Watch implements machineconfig.Monitor: it reports every change of files.
func (o *OS) Watch(_ []string, changed func()) (stop func(), err error) {
	return o.System.Watch(func(sandbox.Tree) { changed() }), nil
}
