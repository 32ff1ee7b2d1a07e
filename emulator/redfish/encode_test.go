package redfish

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func BenchmarkEncode(b *testing.B) {
	h := newHost(b)
	s := newService(b, h)
	m := s.tree.Find(&url.URL{Path: sys})
	o := m.Object(m.View(resource.TakeSnapshot(h)))
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			resource.Encode(o)
		}
	})
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false)
			must(b, e.Encode(o))
		}
	})
}
