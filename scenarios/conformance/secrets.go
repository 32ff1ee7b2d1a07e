package conformance

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// redacted stands for a secret.
const redacted = "REDACTED"

// secretHeaders are headers whose values are secrets.
var secretHeaders = []string{"Authorization", "X-Auth-Token", "Cookie", "Set-Cookie", "Proxy-Authorization", "X-Csrf-Token"}

// secretProperty matches JSON properties with a secret text, by name.
var secretProperty = regexp.MustCompile(`(?i)("(?:[a-z0-9_]*password|passphrase|token|sessiontoken|secret|clientsecret|community(?:string|name)?|accesskey|privatekey|encryptionkey|authenticationkey|x-auth-token)"\s*:\s*)"(?:[^"\\]|\\.)*"`)

// secrets replaces the secrets of a run: its password, the tokens of its sessions,
// and all that a header or property with a secret's name holds.
type secrets struct {
	mu  sync.Mutex
	all []string
}

// add declares a text secret. Texts of fewer than four characters are not, since
// they would blacken any report.
func (s *secrets) add(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range texts {
		if len(t) < 4 || slices.Contains(s.all, t) {
			continue
		}
		s.all = append(s.all, t)
		if quoted, err := json.Marshal(t); err == nil && string(quoted[1:len(quoted)-1]) != t {
			s.all = append(s.all, string(quoted[1:len(quoted)-1]))
		}
	}
	slices.SortFunc(s.all, func(a, b string) int { return len(b) - len(a) })
}

// account declares a password secret, in the forms in which it is sent.
func (s *secrets) account(name, password string) {
	s.add(password, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
}

// learn takes the token of a session from its headers.
func (s *secrets) learn(x Exchange) {
	for _, h := range []http.Header{x.RequestHeader, x.Header} {
		s.add(h.Values("X-Auth-Token")...)
	}
}

// text replaces secrets in a text.
func (s *secrets) text(t string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range s.all {
		t = strings.ReplaceAll(t, secret, redacted)
	}
	return t
}

// body replaces secrets in a body.
func (s *secrets) body(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	return []byte(s.text(secretProperty.ReplaceAllString(string(b), `${1}"`+redacted+`"`)))
}

// header replaces secrets in headers.
func (s *secrets) header(h http.Header) http.Header {
	out := h.Clone()
	for name, values := range out {
		hidden := slices.Contains(secretHeaders, name)
		for i, v := range values {
			if hidden {
				values[i] = redacted
			} else {
				values[i] = s.text(v)
			}
		}
	}
	return out
}
