package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/agent/machineconfig/registry"
	"github.com/metalab-dev/metalab/agent/sys"
)

// RPMOSTree boots images by rpm-ostree(1). It pulls with the credentials in
// /run/ostree/auth.json.
type RPMOSTree struct {
	Exec func(ctx context.Context, c sys.Command) (int, error)
}

// scheme is how rpm-ostree names an image of a registry whose digest is verified by its
// reference (ostree-container, "ostree-unverified-registry").
const scheme = "ostree-unverified-registry:"

func (r RPMOSTree) run(ctx context.Context, args ...string) ([]byte, error) {
	var out, text bytes.Buffer
	code, err := r.Exec(ctx, sys.Command{Args: append([]string{"rpm-ostree"}, args...), Stdout: &out, Stderr: &text})
	switch {
	case err != nil:
		return nil, fmt.Errorf("rpm-ostree %s: %w", args[0], err)
	case code == sys.CodeNotFound:
		return nil, fmt.Errorf("rpm-ostree %s: this system has no rpm-ostree: it boots no OS images", args[0])
	case code != 0:
		return nil, fmt.Errorf("rpm-ostree %s ended with code %d: %s", args[0], code, strings.TrimSpace(text.String()))
	}
	return out.Bytes(), nil
}

// Booted returns the root that is booted.
func (r RPMOSTree) Booted(ctx context.Context) (Root, error) {
	out, err := r.run(ctx, "status", "--json")
	if err != nil {
		return Root{}, err
	}
	var status struct {
		Deployments []struct {
			Booted    bool   `json:"booted"`
			Reference string `json:"container-image-reference"`
		} `json:"deployments"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return Root{}, fmt.Errorf("rpm-ostree status: %w", err)
	}
	arguments, err := r.run(ctx, "kargs")
	if err != nil {
		return Root{}, err
	}
	root := Root{Arguments: strings.Fields(string(arguments))}
	for _, d := range status.Deployments {
		if d.Booted {
			_, image, _ := strings.Cut(d.Reference, ":") // the scheme
			root.Image = strings.TrimPrefix(image, "docker://")
		}
	}
	return root, nil
}

// Pull downloads an image.
func (r RPMOSTree) Pull(ctx context.Context, image string, _ registry.Credentials) error {
	if err := registry.CheckReference(image); err != nil {
		return &ImageError{err}
	}
	_, err := r.run(ctx, "rebase", "--download-only", "--experimental", scheme+image)
	return err
}

// Stage makes the root of the next boot. rpm-ostree merges /etc, and keeps local copies of
// files: there must be none of those that Drop names.
func (r RPMOSTree) Stage(ctx context.Context, next Next) error {
	booted, err := r.Booted(ctx)
	if err != nil {
		return err
	}
	if next.Image != booted.Image && next.Image != "" {
		if _, err := r.run(ctx, "rebase", "--experimental", scheme+next.Image); err != nil {
			return err
		}
	}
	var args []string
	for _, a := range next.Remove {
		args = append(args, "--delete-if-present="+a)
	}
	for _, a := range next.Add {
		args = append(args, "--append="+a)
	}
	if len(args) == 0 {
		return nil
	}
	_, err = r.run(ctx, append([]string{"kargs"}, args...)...)
	return err
}

// Unstage removes the root that is staged.
func (r RPMOSTree) Unstage(ctx context.Context) error {
	_, err := r.run(ctx, "cleanup", "--pending")
	return err
}
