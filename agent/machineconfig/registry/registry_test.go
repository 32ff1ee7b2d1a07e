package registry

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// blob is a layer whose registry sends sent.
type blob struct {
	v1.Layer
	size int64
	want v1.Hash
	sent string
}

func (b blob) Size() (int64, error)     { return b.size, nil }
func (b blob) Digest() (v1.Hash, error) { return b.want, nil }
func (b blob) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(b.sent)), nil
}
func hashOf(t *testing.T, content string) (h v1.Hash) {
	t.Helper()
	h, _, err := v1.SHA256(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestLayerIsVerifiedBeforeItIsReturned(t *testing.T) {
	want := hashOf(t, "layer")
	if got, err := fetch(blob{size: 5, want: want, sent: "layer"}, maxBytes); err != nil || !bytes.Equal(got, []byte("layer")) {
		t.Errorf("fetch = %q, %v; want the bytes", got, err)
	}
	got, err := fetch(blob{size: 5, want: want, sent: "LAYER"}, maxBytes)
	damaged := new(DigestError)
	if !errors.As(err, &damaged) || damaged.Want != want || damaged.Got != hashOf(t, "LAYER") || got != nil {
		t.Errorf("fetch of other bytes = %q, %v; want a DigestError with both digests", got, err)
	}
	if got, err := fetch(blob{size: 5, want: want, sent: "lay"}, maxBytes); !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &damaged) || got != nil {
		t.Errorf("fetch of fewer bytes = %q, %v; want %v", got, err, io.ErrUnexpectedEOF)
	}
	for _, size := range []int64{-1, 6, 1 << 60} {
		if got, err := fetch(blob{size: size, want: want, sent: "layer"}, 5); !errors.As(err, new(*SizeError)) || got != nil {
			t.Errorf("fetch of %d bytes = %q, %v; want a SizeError", size, got, err)
		}
	}
}
