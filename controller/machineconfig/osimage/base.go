package osimage

import (
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Base returns an image of one layer, a tar archive that gzip may have compressed, with labels:
// the base image of a lab.
func Base(layer []byte, arch string, labels map[string]string) (v1.Image, error) {
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("osimage: layer of the base image: %w", err)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	epoch := v1.Time{Time: time.Unix(0, 0).UTC()}
	if img, err = mutate.ConfigFile(img, &v1.ConfigFile{Architecture: arch, OS: "linux", Created: epoch, Config: v1.Config{Labels: labels}, RootFS: v1.RootFS{Type: "layers"}}); err != nil {
		return nil, fmt.Errorf("osimage: base image: %w", err)
	}
	img, err = mutate.Append(img, mutate.Addendum{Layer: l, History: v1.History{Created: epoch, CreatedBy: "the lab's base image"}})
	if err != nil {
		return nil, fmt.Errorf("osimage: base image: %w", err)
	}
	return img, nil
}
