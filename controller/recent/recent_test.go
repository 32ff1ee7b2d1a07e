package recent

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored answers every Get with one version of a secret.
type stored struct {
	client.Reader
	version string
	gets    int
}

func (s *stored) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.gets++
	if s.version == "" {
		return errors.New("not here")
	}
	o.SetUID("u")
	o.SetResourceVersion(s.version)
	return nil
}

func TestReaderGoesPastACacheThatIsBehind(t *testing.T) {
	for name, tt := range map[string]struct {
		cached, written string
		visible         bool // what there is the cache has
		live            int
		fails           bool
	}{
		"nothing written":         {cached: "7"},
		"cache has our write":     {cached: "9", written: "9"},
		"cache has a later one":   {cached: "12", written: "9"},
		"cache is behind":         {cached: "9", written: "12", live: 1}, // by number, not by letter
		"cache has not got it":    {cached: "", live: 1},
		"it is not there":         {cached: "", visible: true, fails: true},
		"version is no number":    {cached: "x", written: "3", live: 1},
		"forgotten with its host": {cached: "3", written: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := &stored{version: tt.cached}, &stored{version: "100"}
			r := &Reader{Cached: cached, Live: live, Hidden: !tt.visible}
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
			if live.gets != tt.live {
				t.Errorf("%d live reads of version %s, want %d", live.gets, got.ResourceVersion, tt.live)
			}
		})
	}
}

// What the cache has once caught up with is not kept.
func TestReaderKeepsNothingOfObjectsAtRest(t *testing.T) {
	r := &Reader{Cached: &stored{version: "9"}, Live: &stored{version: "9"}}
	r.Wrote(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "9"}})
	if err := r.Get(t.Context(), client.ObjectKey{Name: "s"}, &corev1.Secret{}); err != nil || len(r.written) != 0 {
		t.Errorf("Get: %v; it keeps %v", err, r.written)
	}
}
