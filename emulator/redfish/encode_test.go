package redfish

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// TestEncodeEqualsEncodingJSON compares Encode with encoding/json.
func TestEncodeEqualsEncodingJSON(t *testing.T) {
	for _, o := range []resource.Object{
		nil, {},
		{"b": 1, "a": "x", "c": true, "d": nil, "e": int64(-5), "f": 1.5, "g": uint8(7)},
		{"text": "a \"quoted\" \\ \n\r\t\x01 ünïcode 😀 <html> & \u007f"},
		{"lists": []any{1, "a", nil, resource.Object{"x": []resource.Object{}}}, "refs": resource.Refs("/a", "/b"), "none": []resource.Object(nil), "texts": []string{"b", "a"}},
		{"named": []resource.Privilege{resource.Login}, "severity": struct{ A, B string }{"<", "b"}},
	} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		must(t, e.Encode(o))
		if got := resource.Encode(o); !bytes.Equal(got, bytes.TrimSuffix(want.Bytes(), []byte("\n"))) {
			t.Errorf("encode(%v)\n got %s\nwant %s", o, got, want.Bytes())
		}
	}
	if got := resource.Encode(resource.Object{"x": "a\xffb"}); !json.Valid(got) || string(got) != "{\"x\":\"a\ufffdb\"}" {
		t.Errorf("not UTF-8: %s", got)
	}
}

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
