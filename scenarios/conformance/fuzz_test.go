package conformance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// FuzzValue reads a body as every type. What a BMC sends ends in a value or in an error
// that names the property, never in a panic.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"@odata.id":"/x"}],"b":null}`, `{"a":{"a":"x"}}`, `[]`, `{"a":1e999}`, `"a"`, `{} {}`, "\xff", `{"error":{"@Message.ExtendedInfo":[{"MessageId":1}]}}`} {
		f.Add([]byte(seed), "a", "0")
	}
	f.Fuzz(func(t *testing.T, body []byte, first, second string) {
		r := &Response{URI: "/x", Body: body, Status: http.StatusBadRequest}
		if p := r.Problem(); !strings.HasPrefix(p, "400 Bad Request") {
			t.Errorf("Problem of %q = %q, want the status first", body, p)
		}
		v, err := r.JSON()
		if (err == nil) != json.Valid(body) {
			t.Fatalf("JSON(%q) = %v, and json.Valid is %t", body, err, json.Valid(body))
		}
		for _, v := range []Value{v, v.At(first), v.At(first, second), {}} {
			_, text := v.Text()
			_, number := v.Number()
			_, truth := v.Bool()
			_, list := v.List()
			_, _ = v.Texts()
			_, _ = v.Names()
			_, _ = v.Link()
			types := 0
			for _, err := range []error{text, number, truth, list} {
				if err == nil {
					types++
				} else if !strings.Contains(err.Error(), v.Path()) {
					t.Errorf("the error %q does not name %q", err, v.Path())
				}
			}
			if types > 1 {
				t.Errorf("%s of %q has %d types", v.Path(), body, types)
			}
		}
	})
}

// FuzzSecretsStayHidden lets a BMC send the password and the token back in a body, in the
// forms that JSON has for them, and in a header.
func FuzzSecretsStayHidden(f *testing.F) {
	f.Add("calvin-1", "token-5678", `{"UserName":"root","Password":"`, `"}`)
	f.Add(`a"b\c&<d`, "0123456789abcdef", `{"error":"`, `"}`)
	f.Add("päss wörd", "tok/en+en==", "", "")
	f.Fuzz(func(t *testing.T, password, token, before, after string) {
		for _, s := range []string{password, token} {
			if len(s) < 4 || strings.Contains(redacted, s) || strings.Contains(before+after, s) {
				t.Skip() // too short to be replaced, or a text that is there anyway
			}
		}
		if strings.Contains(password, token) || strings.Contains(token, password) {
			t.Skip()
		}
		var s secrets
		s.account("root", password)
		s.learn(Exchange{Header: http.Header{"X-Auth-Token": {token}}})
		quoted, err := json.Marshal(password)
		if err != nil {
			t.Fatal(err)
		}
		quoted = quoted[1 : len(quoted)-1]
		body := s.body([]byte(before + password + "\n" + string(quoted) + "\n" + token + after))
		for _, secret := range [][]byte{[]byte(password), quoted, []byte(token)} {
			if bytes.Contains(body, secret) && !joined(string(secret)) {
				t.Errorf("the body %q has the secret %q", body, secret)
			}
		}
		h := s.header(http.Header{"X-Auth-Token": {token}, "Location": {"/sessions/" + token}})
		for name, values := range h {
			if strings.Contains(values[0], token) && !joined(token) {
				t.Errorf("the header %s is %q", name, values[0])
			}
		}
	})
}

// joined reports whether a secret can arise from the replacement and the text beside it,
// such as DACTEDx.
func joined(secret string) bool {
	for i := 1; i < len(redacted); i++ {
		if strings.HasPrefix(secret, redacted[i:]) || strings.HasSuffix(secret, redacted[:i]) {
			return true
		}
	}
	return strings.Contains(secret, redacted)
}
