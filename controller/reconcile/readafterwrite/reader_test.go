package readafterwrite

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fixedReader answers every Get with the same version of a secret.
type fixedReader struct {
	client.Reader
	version string
	gets    int
}

func (s *fixedReader) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.gets++
	if s.version == "" {
		return errors.New("not found")
	}
	o.SetUID("u")
	o.SetResourceVersion(s.version)
	return nil
}

func TestGetReadsLiveWhenTheCacheIsOlderThanOurWrite(t *testing.T) {
	for name, tt := range map[string]struct {
		cached, written string // versions: of the cache, of our last write
		readMissesLive  bool
		liveReads       int
		fails           bool
	}{
		"nothing written":                {cached: "7", readMissesLive: true},
		"cache has our write":            {cached: "9", written: "9", readMissesLive: true},
		"cache has a later write":        {cached: "12", written: "9", readMissesLive: true},
		"cache is older":                 {cached: "9", written: "12", readMissesLive: true, liveReads: 1}, // compared as numbers, not as text
		"cache misses it, read live":     {cached: "", readMissesLive: true, liveReads: 1},
		"cache misses it, not read live": {cached: "", fails: true},
		"version is not a number":        {cached: "x", written: "3", readMissesLive: true, liveReads: 1},
		"object was forgotten":           {cached: "3", written: "-", readMissesLive: true},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := &fixedReader{version: tt.cached}, &fixedReader{version: "100"}
			r := &Reader{Cached: cached, Live: live, ReadMissesLive: tt.readMissesLive}
			o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: types.UID("u"), ResourceVersion: tt.written}}
			if tt.written == "-" {
				o.ResourceVersion = "50"
				r.Wrote(o)
				r.Forget(o)
			} else if tt.written != "" {
				r.Wrote(o)
			}
			var got corev1.Secret
			if err := r.Get(t.Context(), client.ObjectKey{Name: "s"}, &got); (err != nil) != tt.fails {
				t.Fatalf("Get: %v", err)
			}
			if live.gets != tt.liveReads {
				t.Errorf("%d live reads of version %s, want %d", live.gets, got.ResourceVersion, tt.liveReads)
			}
		})
	}
}

func TestReaderForgetsAWriteThatTheCacheHasSeen(t *testing.T) {
	r := &Reader{Cached: &fixedReader{version: "9"}, Live: &fixedReader{version: "9"}}
	r.Wrote(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "9"}})
	if err := r.Get(t.Context(), client.ObjectKey{Name: "s"}, &corev1.Secret{}); err != nil || len(r.written) != 0 {
		t.Errorf("Get: %v; writes still recorded: %v, want none", err, r.written)
	}
}
