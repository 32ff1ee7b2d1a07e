package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plain converts a document without duplicate names to encoding/json's types.
func plain(v any) any {
	switch x := v.(type) {
	case Document:
		o := map[string]any{}
		for _, f := range x.Fields {
			o[f.Name] = plain(f.Value)
		}
		return o
	case []any:
		out := []any{}
		for _, y := range x {
			out = append(out, plain(y))
		}
		return out
	}
	return v
}

// manyNames returns an object with many names, each of them twice.
func manyNames() string {
	b := []byte("{")
	for i := range 4 * indexThreshold {
		b = fmt.Appendf(b, `"n%d":%d,`, i%(2*indexThreshold), i)
	}
	return string(b[:len(b)-1]) + "}"
}

// FuzzParse compares Parse with encoding/json.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : [ 1 , -2.5e+3 , true , false , null ] , "b":{"c":"\u00e9\n\ud83d\ude00"} } `, `[]`, `"x"`, `{"a":1,"a":2}`, `{"":[[],{}]}`,
		"{\"a\":\"\xff\"}", `{"a":0}x`, `{` + strings.Repeat(`"a":1,"b":2,`, indexThreshold) + `"c":3}`, manyNames(), strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := Parse(b)
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var want map[string]any
		switch wrong := d.Decode(&want); {
		case errors.Is(err, ErrMalformed):
			if json.Valid(b) {
				t.Fatalf("parse(%q) = %v, and it is JSON", b, err)
			}
		case err != nil: // not an object, or nested too deep
		case wrong != nil:
			t.Fatalf("parse(%q) = %v, the library says %v", b, in, wrong)
		default:
			if d := cmp.Diff(any(want), plain(in)); d != "" {
				t.Fatalf("parse(%q) (-library +ours):\n%s", b, d)
			}
		}
	})
}

func TestParseReportsDuplicateNames(t *testing.T) {
	in, err := Parse([]byte(`{"b":1,"a":2,"b":3}`))
	if err != nil || len(in.Fields) != 2 {
		t.Fatalf("parse() = %+v, %v", in, err)
	}
	if b, a := in.Fields[0], in.Fields[1]; b.Name != "b" || !b.Duplicate || a.Name != "a" || a.Duplicate || b.Value != json.Number("3") {
		t.Errorf("parse() = %+v, %v", in, err)
	}
}

func BenchmarkParse(b *testing.B) {
	body := []byte(`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`)
	for b.Loop() {
		if _, err := Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}
