package rack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

const mediaPath = "/redfish/v1/Systems/1/VirtualMedia/Cd"

// images serves an image, and one that stops halfway until the client leaves. The
// channel began gets a value when that one was requested.
func images(t *testing.T) (url string, began chan struct{}) {
	t.Helper()
	began = make(chan struct{}, 1)
	mux := http.NewServeMux()
	send := func(w http.ResponseWriter, s string) { _, _ = io.WriteString(w, s) }
	mux.HandleFunc("/a.iso", func(w http.ResponseWriter, _ *http.Request) { send(w, "an image") })
	mux.HandleFunc("/half.iso", func(w http.ResponseWriter, r *http.Request) {
		send(w, "half")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		began <- struct{}{}
		<-r.Context().Done()
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL, began
}

// cached lists the image files of virtual media.
func cached(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "media"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func insert(image string) bmc.InsertMedia {
	return bmc.InsertMedia{Slot: "Cd", Image: image, WriteProtected: true}
}

func holds(t *testing.T, h *rack.Host) string {
	t.Helper()
	m, ok := h.Media("Cd")
	if !ok {
		return ""
	}
	defer m.Close()
	b, err := io.ReadAll(m)
	if err != nil || int64(len(b)) != m.Size {
		t.Errorf("media: %d bytes, %v, want %d", len(b), err, m.Size)
	}
	return string(b)
}

func TestInsertMediaFetchesTheImage(t *testing.T) {
	url, _ := images(t)
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	h := l.First()
	if got := holds(t, h); got != "" {
		t.Errorf("an empty slot holds %q", got)
	}
	body := fmt.Sprintf(`{"Image": %q}`, url+"/a.iso")
	if code, got := call(t, l, h, "POST", mediaPath+"/Actions/VirtualMedia.InsertMedia", body); code >= 300 {
		t.Fatalf("InsertMedia = %d, %v", code, got)
	}
	if _, got := call(t, l, h, "GET", mediaPath, ""); got["Inserted"] != true || got["Image"] != url+"/a.iso" {
		t.Errorf("media = %v, want it inserted", got)
	}
	if got := holds(t, h); got != "an image" {
		t.Errorf("the slot holds %q, want the image", got)
	}
	if _, err := h.ApplyBMC(t.Context(), insert(url+"/a.iso")); !errors.Is(err, bmc.ErrInUse) {
		t.Errorf("InsertMedia into a full slot = %v, want %v", err, bmc.ErrInUse)
	}
	if _, ok := h.Media("Usb"); ok {
		t.Error("Media(Usb) = true, want no such slot")
	}

	l.Stop()
	l = racktest.Start(t, rack.Config{Dir: dir})
	h = l.First()
	if got := holds(t, h); got != "an image" {
		t.Errorf("after a restart the slot holds %q, want the image", got)
	}
	open, ok := h.Media("Cd")
	if !ok {
		t.Fatal("Media() = false")
	}
	defer open.Close()
	if code, got := call(t, l, h, "POST", mediaPath+"/Actions/VirtualMedia.EjectMedia", "{}"); code >= 300 {
		t.Fatalf("EjectMedia = %d, %v", code, got)
	}
	if got := holds(t, h); got != "" {
		t.Errorf("after EjectMedia the slot holds %q", got)
	}
	if names := cached(t, dir); len(names) != 0 {
		t.Errorf("after EjectMedia there is %v, want no file", names)
	}
	if b, err := io.ReadAll(open); err != nil || string(b) != "an image" {
		t.Errorf("who had it open reads %q, %v", b, err)
	}
}

// A slot whose image file was lost is empty after a restart, once the user goes on with
// the files as they are.
func TestMediaWithLostImageIsEjectedAtStart(t *testing.T) {
	url, _ := images(t)
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	if _, err := l.First().ApplyBMC(t.Context(), insert(url+"/a.iso")); err != nil {
		t.Fatal(err)
	}
	l.Stop()
	if err := os.Truncate(filepath.Join(dir, "media", "node-0-Cd"), 3); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, integrity.File)); err != nil {
		t.Fatal(err)
	}
	l = racktest.Start(t, rack.Config{Dir: dir})
	if s := l.First().BMC().Slots[0]; s.Inserted || s.Image != "" {
		t.Errorf("slot = %+v, want it empty", s)
	}
	if names := cached(t, dir); len(names) != 0 {
		t.Errorf("there is %v, want no file", names)
	}
}

func TestInsertMediaReportsWhyTheFetchFailed(t *testing.T) {
	url, _ := images(t)
	l := racktest.Start(t, rack.Config{Media: outbound.Config{MaxSize: 5}})
	h := l.First()
	for in, want := range map[string]string{
		url + "/b.iso":       "404 Not Found",
		url + "/a.iso":       "larger than 5 bytes",
		"nfs://server/a.iso": "only http and https",
	} {
		_, err := h.ApplyBMC(t.Context(), insert(in))
		if !errors.Is(err, bmc.ErrMedia) || !strings.Contains(err.Error(), want) {
			t.Errorf("InsertMedia(%s) = %v, want %v with %q", in, err, bmc.ErrMedia, want)
		}
		if s := h.BMC().Slots[0]; s.Image != "" {
			t.Errorf("slot after InsertMedia(%s) = %+v, want it empty", in, s)
		}
		if names := cached(t, l.Dir()); len(names) != 0 {
			t.Errorf("after InsertMedia(%s) there is %v, want no file", in, names)
		}
	}
}

func TestEjectMediaCancelsTheFetch(t *testing.T) {
	url, began := images(t)
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	failed := make(chan error)
	go func() {
		_, err := h.ApplyBMC(context.Background(), insert(url+"/half.iso"))
		failed <- err
	}()
	<-began
	if s := h.BMC().Slots[0]; s.Inserted || s.Image == "" {
		t.Errorf("slot during the fetch = %+v, want it taken, not inserted", s)
	}
	if _, err := h.ApplyBMC(t.Context(), insert(url+"/a.iso")); !errors.Is(err, bmc.ErrInUse) {
		t.Errorf("InsertMedia during a fetch = %v, want %v", err, bmc.ErrInUse)
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.EjectMedia{Slot: "Cd"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ApplyBMC(t.Context(), insert(url+"/a.iso")); err != nil { // while the first fetch may still be ending
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, bmc.ErrMedia) || !strings.Contains(err.Error(), "ejected while it was fetched") {
		t.Errorf("InsertMedia = %v, want %v and why", err, bmc.ErrMedia)
	}
	if got := holds(t, h); got != "an image" {
		t.Errorf("the slot holds %q, want the second image", got)
	}
	if names := cached(t, l.Dir()); len(names) != 1 {
		t.Errorf("there is %v, want one file", names)
	}
}

// A client that cancels its request ends the fetch. The clock does not jump
// meanwhile.
func TestCancelledInsertMediaStopsTheFetch(t *testing.T) {
	url, began := images(t)
	l := racktest.Start(t, rack.Config{Clock: clock.NewJumping(racktest.Origin)})
	h := l.First()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := h.ApplyBMC(ctx, insert(url+"/half.iso"))
		failed <- err
	}()
	<-began
	if err := l.Clock().Settle(canceled(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("Settle() during a fetch = %v, want it to wait", err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, bmc.ErrMedia) || !errors.Is(err, context.Canceled) {
		t.Errorf("InsertMedia = %v, want %v", err, context.Canceled)
	}
	if s := h.BMC().Slots[0]; s.Image != "" {
		t.Errorf("slot = %+v, want it empty", s)
	}
	if _, err := h.ApplyBMC(ctx, insert(url+"/a.iso")); !errors.Is(err, context.Canceled) {
		t.Errorf("InsertMedia with a context that has ended = %v", err)
	}
}

// A rack that ends does not wait for images.
func TestRackStopsDuringAFetch(t *testing.T) {
	url, began := images(t)
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	done := make(chan int)
	go func() {
		code, _ := call(t, l, l.First(), "POST", mediaPath+"/Actions/VirtualMedia.InsertMedia", fmt.Sprintf(`{"Image": %q}`, url+"/half.iso"))
		done <- code
	}()
	<-began
	before := clock.Wall()
	l.Stop()
	if took := clock.Wall().Sub(before); took > 2*time.Second {
		t.Errorf("the rack took %v to end", took)
	}
	if code := <-done; code < 400 {
		t.Errorf("InsertMedia in a rack that ends = %d, want a refusal", code)
	}
	l = racktest.Start(t, rack.Config{Dir: dir})
	if s := l.First().BMC().Slots[0]; s.Image != "" {
		t.Errorf("slot = %+v, want it empty", s)
	}
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
