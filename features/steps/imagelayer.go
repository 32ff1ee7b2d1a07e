package steps

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// imageFile calls f with the content of a file of an image, whose name has no leading slash.
func imageFile(img v1.Image, name string, f func(content io.Reader) error) error {
	r := mutate.Extract(img)
	defer r.Close() // it only releases the layers
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the image has no /%s", name)
		}
		if err != nil {
			return err
		}
		if strings.TrimPrefix(path.Clean("/"+h.Name), "/") == name {
			return f(t)
		}
	}
}
