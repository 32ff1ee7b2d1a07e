package redfish

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Whatever a BMC sends, the error is one short line without the password.
func FuzzResponseError(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"message":"m","@Message.ExtendedInfo":[{"MessageId":"Base.1.8.X","MessageArgs":["a",1,null]}]}}`,
		`{"error":{"@Message.ExtendedInfo":{"Message":"one"}}}`, `{"error":{"@Message.ExtendedInfo":"text"}}`,
		`{"error":"text"} {}`, "<html>", "pass\nword", "\xff\x00", `[]`, `{"error":{"@Message.ExtendedInfo":[1,{"Message":2}]}}`,
	} {
		f.Add(400, seed)
	}
	c := &client{credentials: bmc.Credentials{Username: "admin", Password: "pa\x00ss"}}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 300 || status > 999 {
			return
		}
		err := c.responseError(t.Context(), "GET /", &outcome{status: status, body: []byte(body)}, nil)
		text := err.Error()
		if len(text) > maxErrorText+200 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) ||
			strings.Contains(text, c.credentials.Password) {
			t.Fatalf("explain(%d, %q) = %q", status, body, text)
		}
	})
}
