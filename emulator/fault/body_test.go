package fault

import (
	"encoding/json"
	"testing"
	"time"
)

func rewriteWith(t *testing.T, body string, rules ...Rule) (contentType, got string) {
	t.Helper()
	p := new(Plan)
	for _, r := range rules {
		if _, err := p.Add(time.Time{}, r); err != nil {
			t.Fatal(err)
		}
	}
	d := p.Decide(Subject{Site: Request}, time.Time{})
	if !d.Rewrites() {
		t.Fatal("Rewrites() = false")
	}
	in := []byte(body)
	contentType, out := d.Rewrite("application/json", in)
	if string(in) != body {
		t.Errorf("the body that was given became %s", in)
	}
	return contentType, string(out)
}

func TestBodiesAreRewritten(t *testing.T) {
	const body = `{"Id":"1","PowerState":"On","Big":12345678901234567890,"Status":{"State":"Enabled","Health":"OK"},"Members":[{"@odata.id":"/a"},{"@odata.id":"/b"}]}`
	text := func(s string) *string { return &s }
	tests := []struct {
		name string
		rule Rule
		want string
	}{
		{"merge", Rule{Patch: map[string]any{"PowerState": "<Off>", "Status": map[string]any{"Health": nil}, "New": map[string]any{"A": 1}}},
			`{"Big":12345678901234567890,"Id":"1","Members":[{"@odata.id":"/a"},{"@odata.id":"/b"}],"New":{"A":1},"PowerState":"<Off>","Status":{"State":"Enabled"}}`},
		{"null", Rule{Set: Values{"/Status/Health": nil, "/PowerState": 7}},
			`{"Big":12345678901234567890,"Id":"1","Members":[{"@odata.id":"/a"},{"@odata.id":"/b"}],"PowerState":7,"Status":{"Health":null,"State":"Enabled"}}`},
		{"the same member twice", Rule{Set: Values{"/Members/1": map[string]any{"@odata.id": "/a"}, "/Members/-": map[string]any{"@odata.id": "/c"}, "/Members/9": 1}},
			`{"Big":12345678901234567890,"Id":"1","Members":[{"@odata.id":"/a"},{"@odata.id":"/a"},{"@odata.id":"/c"}],"PowerState":"On","Status":{"Health":"OK","State":"Enabled"}}`},
		{"pointer with escapes", Rule{Set: Values{"/Oem/a~1b~0c": true}, Truncate: "22"}, `{"Big":123456789012345`[:22]},
		{"body", Rule{Body: text("<html>busy</html>")}, "<html>busy</html>"},
		{"comma too many", Rule{InvalidJSON: true}, body[:len(body)-1] + ",}"},
		{"half", Rule{Truncate: "50%"}, body[:len(body)/2]},
		{"nothing left", Rule{Truncate: "0"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := rewriteWith(t, body, tt.rule); got != tt.want {
				t.Errorf("body = %s\nwant   %s", got, tt.want)
			}
		})
	}
}

func TestRewritesApplyInOrder(t *testing.T) {
	html := "<p>"
	kind, got := rewriteWith(t, `{}`, Rule{Patch: map[string]any{"A": 1}}, Rule{Patch: map[string]any{"B": 2}}, Rule{InvalidJSON: true})
	if want := `{"A":1,"B":2,}`; got != want || json.Valid([]byte(got)) || kind != "application/json" {
		t.Errorf("body = %s (%s), want %s", got, kind, want)
	}
	kind, got = rewriteWith(t, `{}`, Rule{Body: &html, ContentType: "text/html"}, Rule{Patch: map[string]any{"A": 1}})
	if got != html || kind != "text/html" {
		t.Errorf("body = %s (%s), want what is no JSON left alone", got, kind)
	}
	if _, got := rewriteWith(t, "", Rule{InvalidJSON: true}); got != "{,}" {
		t.Errorf("body = %s", got)
	}
}

// RFC 7396, appendix A.
func TestMergePatchExamplesOfRFC7396(t *testing.T) {
	for _, tt := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		target, err := decode([]byte(tt.target))
		if err != nil {
			t.Fatal(err)
		}
		patch, err := decode([]byte(tt.patch))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(merge(target, patch)); string(got) != tt.want || err != nil {
			t.Errorf("merge(%s, %s) = %s, %v, want %s", tt.target, tt.patch, got, err, tt.want)
		}
	}
}
