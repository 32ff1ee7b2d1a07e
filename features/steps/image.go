package steps

import (
	"context"
	"crypto/md5" //nolint:gosec // the specification's default
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// wrongChecksum is a SHA-256 that no image has.
const wrongChecksum = "0000000000000000000000000000000000000000000000000000000000000000"

func (s *scenario) registerImages(sc *stepRegistry) {
	sc.Step(`^the operator sets the image$`, "sets spec.image to the lab's image", s.requestLabImage)
	sc.Step(`^the operator sets the image with a wrong checksum$`, "sets spec.image to the lab's image with a wrong checksum", s.requestWithWrongChecksum)
	sc.Step(`^the operator sets the image as (raw|qcow2)$`, "sets spec.image to the lab's image in this format", s.requestFormat)
	sc.Step(`^the operator sets the image with its (md5|sha256|sha512) checksum, whose type is (named|not named)$`, "sets spec.image with a literal checksum, with or without checksumType", s.requestWithChecksum)
	sc.Step(`^the operator sets an image that does not exist$`, "sets spec.image to a URL that answers 404", s.requestMissingImage)
	sc.Step(`^the operator sets an image that is larger than any disk$`, "sets spec.image to a file of 8 TiB", s.requestHugeImage)
	sc.Step(`^the operator sets a root device hint with the (serial number|WWN|device name) of the second disk$`, "sets spec.rootDeviceHints", s.hintAtSecondDisk)
	sc.Step(`^the server's second disk begins with the image$`, "compares the first bytes of the disk with the image, and its partition table with the image's and a config drive's partition", func() error { return s.holdsImage(1) })
	sc.Step(`^the operator corrects the checksum$`, "sets spec.image to the lab's image with the right checksum", s.correctChecksum)
	sc.Step(`^the operator removes the image$`, "clears spec.image", s.removeImage)
	sc.Step(`^the server's first disk begins with the image$`, "compares the first bytes of the disk with the image, and its partition table with the image's and a config drive's partition", s.diskHoldsImage)
	sc.Step(`^the image server stalls in the middle of the image$`, "stalls downloads of the image after 1 MiB", func() { s.testLab.downloads.hold() })
	sc.Step(`^the image server continues$`, "lets stalled downloads continue", func() { s.testLab.downloads.release() })
	sc.Step(`^the image is being written$`, "waits until a download is stalled", func(ctx context.Context) error { return s.testLab.downloads.waitHeld(ctx) })
	sc.NegativeStep(`^the image was downloaded once$`, "asserts, once each controller has reconciled every object, one download in this scenario, or since the image server stalled", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		return s.testLab.downloads.downloadedOnce()
	})
}

func (s *scenario) url() string { return s.lab.ImagesURL() + lab.DemoImage }

func (s *scenario) requestImage(ctx context.Context, checksum string) error {
	s.bootsBefore = s.machine().Boots
	raw := "raw"
	return s.change(ctx, func(h *metal3.BareMetalHost) {
		h.Spec.Image = &metal3.Image{URL: s.url(), Checksum: checksum, ChecksumType: metal3.SHA256, DiskFormat: &raw}
	})
}

func (s *scenario) requestLabImage(ctx context.Context) error {
	return s.requestImage(ctx, s.url()+".sha256")
}

func (s *scenario) requestWithWrongChecksum(ctx context.Context) error {
	return s.requestImage(ctx, wrongChecksum)
}

func (s *scenario) correctChecksum(ctx context.Context) error { return s.requestLabImage(ctx) }

func (s *scenario) removeImage(ctx context.Context) error {
	return s.change(ctx, func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
}

func (s *scenario) requestFormat(ctx context.Context, format string) error {
	name := map[string]string{"raw": images.DemoRaw, "qcow2": images.DemoQCOW2}[format]
	s.bootsBefore = s.machine().Boots
	return s.change(ctx, func(h *metal3.BareMetalHost) {
		url := s.lab.ImagesURL() + name
		h.Spec.Image = &metal3.Image{URL: url, Checksum: url + ".sha256", ChecksumType: metal3.SHA256, DiskFormat: &format}
	})
}

func (s *scenario) requestWithChecksum(ctx context.Context, kind, named string) error {
	b, err := s.imageBytes()
	if err != nil {
		return err
	}
	sum := map[string]hash.Hash{"md5": md5.New(), "sha256": sha256.New(), "sha512": sha512.New()}[kind]
	sum.Write(b)
	raw, checksumType := "raw", metal3.ChecksumType(kind)
	if named == "not named" {
		checksumType = ""
	}
	return s.change(ctx, func(h *metal3.BareMetalHost) {
		h.Spec.Image = &metal3.Image{URL: s.url(), Checksum: hex.EncodeToString(sum.Sum(nil)), ChecksumType: checksumType, DiskFormat: &raw}
	})
}

func (s *scenario) requestMissingImage(ctx context.Context) error {
	raw := "raw"
	return s.change(ctx, func(h *metal3.BareMetalHost) {
		h.Spec.Image = &metal3.Image{URL: s.lab.ImagesURL() + "not-there.raw", Checksum: wrongChecksum, ChecksumType: metal3.SHA256, DiskFormat: &raw}
	})
}

// hugeFile is a sparse file of 8 TiB.
const hugeFile, hugeSize = "huge.raw", 8 << 40

func (s *scenario) requestHugeImage(ctx context.Context) error {
	f, err := os.Create(filepath.Join(s.dir, lab.ImagesDir, hugeFile))
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(hugeSize), f.Close()); err != nil {
		return err
	}
	raw := "raw"
	return s.change(ctx, func(h *metal3.BareMetalHost) {
		h.Spec.Image = &metal3.Image{URL: s.lab.ImagesURL() + hugeFile, Checksum: wrongChecksum, ChecksumType: metal3.SHA256, DiskFormat: &raw}
	})
}

func (s *scenario) hintAtSecondDisk(ctx context.Context, by string) error {
	d := s.machine().Identity.Storage[0].Drives[1]
	hints := map[string]metal3.RootDeviceHints{
		"serial number": {SerialNumber: d.Serial}, "WWN": {WWN: "0x" + d.WWN}, "device name": {DeviceName: "/dev/sdb"},
	}[by]
	return s.change(ctx, func(h *metal3.BareMetalHost) { h.Spec.RootDeviceHints = &hints })
}

// imageBytes returns the lab's image.
func (s *scenario) imageBytes() ([]byte, error) {
	return os.ReadFile(filepath.Join(s.dir, lab.ImagesDir, lab.DemoImage))
}

func (s *scenario) diskHoldsImage() error { return s.holdsImage(0) }

func (s *scenario) holdsImage(disk int) error {
	want, err := s.imageBytes()
	if err != nil {
		return err
	}
	m, _, err := s.disk(disk)
	if err != nil {
		return err
	}
	return images.Written(m, want)
}

// downloadGate wraps the image server. It counts downloads of the image, and can
// stall them in the middle.
type downloadGate struct {
	mu       sync.Mutex
	released chan struct{} // closed when downloads may continue; nil when none is stalled
	held     chan struct{} // closed when a download is stalled
	count    int
}

func (g *downloadGate) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/"+lab.DemoImage) {
			next.ServeHTTP(w, r)
			return
		}
		g.mu.Lock()
		g.count++
		shut, middle := g.released, g.held
		g.mu.Unlock()
		if shut == nil {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&heldResponse{ResponseWriter: w, gate: shut, middle: middle, after: 1 << 20, ctx: r.Context()}, r)
	})
}

// resetCount forgets the downloads of other scenarios.
func (g *downloadGate) resetCount() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count = 0
}

func (g *downloadGate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.released, g.held, g.count = make(chan struct{}), make(chan struct{}), 0
}

func (g *downloadGate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.released != nil {
		close(g.released)
		g.released = nil
	}
}

func (g *downloadGate) waitHeld(ctx context.Context) error {
	g.mu.Lock()
	middle := g.held
	g.mu.Unlock()
	return eventually(ctx, "the image is being written", func(context.Context) (bool, string, error) {
		select {
		case <-middle:
			return true, "", nil
		default:
			return false, "not yet", nil
		}
	})
}

func (g *downloadGate) downloadedOnce() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count != 1 {
		return fmt.Errorf("the image was downloaded %d times", g.count)
	}
	return nil
}

// heldResponse is a response that stalls in the middle of its body until the gate
// is released.
type heldResponse struct {
	http.ResponseWriter
	gate   <-chan struct{}
	middle chan struct{}
	after  int // bytes
	ctx    context.Context
}

func (h *heldResponse) Write(b []byte) (int, error) {
	if h.after > 0 && len(b) < h.after {
		h.after -= len(b)
		return h.ResponseWriter.Write(b)
	}
	if h.after > 0 {
		h.after = 0
		if f, ok := h.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		close(h.middle)
		select {
		case <-h.gate:
		case <-h.ctx.Done():
			return 0, h.ctx.Err()
		}
	}
	return h.ResponseWriter.Write(b)
}
