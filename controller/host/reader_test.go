package host

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
		live            int
	}{
		"nothing written":         {cached: "7"},
		"cache has our write":     {cached: "9", written: "9"},
		"cache has a later one":   {cached: "12", written: "9"},
		"cache is behind":         {cached: "9", written: "12", live: 1}, // by number, not by letter
		"cache has not got it":    {cached: "", live: 1},
		"version is no number":    {cached: "x", written: "3", live: 1},
		"forgotten with its host": {cached: "3", written: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := &stored{version: tt.cached}, &stored{version: "100"}
			r := newReader(cached, live)
			o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: types.UID("u"), ResourceVersion: tt.written}}
			if tt.written == "-" {
				o.ResourceVersion = "50"
				r.wrote(o)
				r.forget(o)
			} else if tt.written != "" {
				r.wrote(o)
			}
			var got corev1.Secret
			if err := r.get(t.Context(), client.ObjectKey{Name: "s"}, &got); err != nil {
				t.Fatalf("get: %v", err)
			}
			if live.gets != tt.live {
				t.Errorf("%d live reads of version %s, want %d", live.gets, got.ResourceVersion, tt.live)
			}
		})
	}
}
