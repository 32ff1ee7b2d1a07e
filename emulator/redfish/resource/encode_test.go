package resource

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestEncodeEqualsEncodingJSON compares Encode with encoding/json.
func TestEncodeEqualsEncodingJSON(t *testing.T) {
	for _, o := range []Object{
		nil, {},
		{"b": 1, "a": "x", "c": true, "d": nil, "e": int64(-5), "f": 1.5, "g": uint8(7)},
		{"text": "a \"quoted\" \\ \n\r\t\x01 ünïcode 😀 <html> & \u007f"},
		{"lists": []any{1, "a", nil, Object{"x": []Object{}}}, "refs": refs("/a", "/b"), "none": []Object(nil), "texts": []string{"b", "a"}},
		{"named": []Privilege{Login}, "severity": struct{ A, B string }{"<", "b"}},
	} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		must(t, e.Encode(o))
		if got := Encode(o); !bytes.Equal(got, bytes.TrimSuffix(want.Bytes(), []byte("\n"))) {
			t.Errorf("encode(%v)\n got %s\nwant %s", o, got, want.Bytes())
		}
	}
	if got := Encode(Object{"x": "a\xffb"}); !json.Valid(got) || string(got) != "{\"x\":\"a\ufffdb\"}" {
		t.Errorf("not UTF-8: %s", got)
	}
}
