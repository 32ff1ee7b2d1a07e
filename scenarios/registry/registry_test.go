package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/metalab-dev/metalab/scenarios/registry"
)

// access reads and writes a registry with the account that may push.
type access struct{ authn.Basic }

func (a access) options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuth(&a.Basic), remote.WithRetryBackoff(remote.Backoff{Steps: 1})}
}

func (a access) exists(ctx context.Context, image name.Digest) error {
	_, err := remote.Head(image, a.options(ctx)...)
	return err
}

// serve returns a registry with an image, and the image's reference.
func serve(t *testing.T) (s *registry.Server, a access, image name.Digest) {
	t.Helper()
	s, err := registry.New(registry.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	repository, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/os/a")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Auths map[string]struct{ Auth []byte }
	}
	if err := json.Unmarshal(s.DockerConfig(registry.Pusher, "host"), &config); err != nil {
		t.Fatal(err)
	}
	a.Username, a.Password, _ = strings.Cut(string(config.Auths["host"].Auth), ":")
	_, image = a.push(t, repository.Tag("latest"))
	return s, a, image
}

// push pushes an image of random bytes, below which are the layers of others.
func (a access) push(t *testing.T, to name.Tag, below ...v1.Image) (img v1.Image, image name.Digest) {
	t.Helper()
	img, err := random.Image(512, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range below {
		layers, err := b.Layers()
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layers...); err != nil {
			t.Fatal(err)
		}
	}
	if err := remote.Write(to, img, a.options(t.Context())...); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return img, to.Digest(digest.String())
}

// blobsOf returns the digests of the blobs of images, sorted.
func blobsOf(t *testing.T, images ...v1.Image) (out []string) {
	t.Helper()
	for _, img := range images {
		m, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m.Config.Digest.String())
		for _, l := range m.Layers {
			out = append(out, l.Digest.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestBlobsGoWithTheirLastImage deletes one of two images that share a layer, while a third is
// being pushed, and starts the registry again (statement M37).
func TestBlobsGoWithTheirLastImage(t *testing.T) {
	s, a, first := serve(t)
	base, err := remote.Image(first, a.options(t.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	above, second := a.push(t, first.Context().Tag("above"), base)
	want := func(what string, s *registry.Server, images ...v1.Image) {
		t.Helper()
		got, err := s.Blobs()
		if diff := cmp.Diff(blobsOf(t, images...), got); diff != "" || err != nil {
			t.Errorf("blobs %s (-want +got):\n%s%v", what, diff, err)
		}
	}
	want("of both images", s, base, above)
	unfinished, err := random.Image(512, 1)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := unfinished.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteLayer(first.Context(), layers[0], a.options(t.Context())...); err != nil {
		t.Fatal(err)
	}
	if err := remote.Delete(second, a.options(t.Context())...); err != nil {
		t.Fatal(err)
	}
	left, err := s.Blobs()
	if pushed, derr := layers[0].Digest(); err != nil || derr != nil || len(left) != len(blobsOf(t, base))+1 || !slices.Contains(left, pushed.String()) {
		t.Errorf("blobs after the deletion = %q, %v; want those of the other image, and %v that is being pushed", left, err, pushed)
	}
	if err := remote.Write(first.Context().Tag("late"), unfinished, a.options(t.Context())...); err != nil {
		t.Fatal(err)
	}
	want("of the other image and the late one", s, base, unfinished)
	again, err := registry.New(registry.Config{Dir: s.Dir})
	if err != nil {
		t.Fatal(err)
	}
	want("after a restart", again, base, unfinished)
}

// TestRestartRemovesBlobsOfPushesThatWereGivenUp starts a registry again after a push that has
// ended without its manifest.
func TestRestartRemovesBlobsOfPushesThatWereGivenUp(t *testing.T) {
	s, a, first := serve(t)
	base, err := remote.Image(first, a.options(t.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := random.Layer(512, types.OCILayer)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteLayer(first.Context(), layer, a.options(t.Context())...); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(s.Dir, "blobs", "upload-1")
	if err := os.WriteFile(cut, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = registry.New(registry.Config{Dir: s.Dir}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Blobs()
	if diff := cmp.Diff(blobsOf(t, base), got); diff != "" || err != nil {
		t.Errorf("blobs after a restart (-want +got):\n%s%v", diff, err)
	}
	if _, err := os.Stat(cut); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of an upload that was cut off: %v, want %v", err, fs.ErrNotExist)
	}
}

// readLayer reads the layer of an image to its end.
func readLayer(img v1.Image) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	r, err := layers[0].Compressed()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

func TestDamagedBlobHasAnotherDigest(t *testing.T) {
	s, a, image := serve(t)
	img, err := remote.Image(image, a.options(t.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	if err := readLayer(img); err != nil {
		t.Errorf("layer of %s: %v, want its bytes", image, err)
	}
	s.SetFault(registry.Damaged)
	if img, err = remote.Image(image, a.options(t.Context())...); err != nil {
		t.Fatalf("GET %s = %v, want the manifest, which is not damaged", image, err)
	}
	if err := readLayer(img); err == nil || !strings.Contains(err.Error(), "sha256") {
		t.Errorf("layer of %s with the fault %s: %v, want an error about its digest", image, registry.Damaged, err)
	}
}

func TestStalledRegistryAnswersOnceItHasNoFault(t *testing.T) {
	s, a, image := serve(t)
	s.SetFault(registry.Stalled)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := a.exists(ctx, image); err == nil {
		t.Errorf("HEAD %s = nil of a stalled registry, want no answer", image)
	}
	answer := make(chan error)
	go func() { answer <- a.exists(t.Context(), image) }()
	s.SetFault(registry.None)
	if err := <-answer; err != nil {
		t.Errorf("HEAD %s = %v once the registry has no fault, want an answer", image, err)
	}
}

func TestDownRegistryClosesConnections(t *testing.T) {
	s, a, image := serve(t)
	s.SetFault(registry.Down)
	if _, err := remote.Image(image, a.options(t.Context())...); err == nil {
		t.Errorf("GET %s = nil of a registry that is down, want an error", image)
	}
	r := httptest.NewRequest(http.MethodGet, "/v2/", nil)
	defer func() {
		if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // the very value
			t.Errorf("ServeHTTP panics with %v, want %v", got, http.ErrAbortHandler)
		}
	}()
	s.ServeHTTP(httptest.NewRecorder(), r)
}
