package exchange

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// hidden replaces secrets.
const hidden = "***"

// secretNames matches the names of properties whose values are secrets in any resource or
// vendor's OEM: of accounts, sessions, SNMP, certificates, virtual media and BIOS passwords.
var secretNames = regexp.MustCompile(`(?i)(passw|passphrase|pwd|secret|token|privatekey|encryptionkey|authenticationkey|sharedkey|hashkey|^kg$|bmckey|community|credential|httpheaders|authorization|cookie|certificatestring)`)

// masked returns a body for people: JSON without secrets, or its size where it is no JSON.
func masked(b []byte, cut bool) string {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return ""
	case cut:
		return fmt.Sprintf("(more than %d bytes)", MaxBody)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		return fmt.Sprintf("(%d bytes that are no JSON)", len(b))
	}
	out := new(bytes.Buffer)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(mask(v)); err != nil {
		return fmt.Sprintf("(%d bytes of JSON)", len(b))
	}
	return strings.TrimSpace(out.String())
}

// mask returns a JSON value without secrets.
func mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value != nil && secretNames.MatchString(name) && !harmless(value) {
				v[name] = hidden
				continue
			}
			v[name] = mask(value)
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i])
		}
	case string:
		return withoutPassword(v)
	}
	return v
}

// harmless reports whether a value says something about a secret and is none: whether there
// is one, how long it may be, or where it is.
func harmless(v any) bool {
	switch v := v.(type) {
	case bool, json.Number:
		return true
	case map[string]any: // a link
		_, link := v["@odata.id"]
		return link && len(v) == 1
	case string:
		return v == ""
	}
	return false
}

// withoutPassword hides the password of a URL.
func withoutPassword(text string) string {
	if !strings.Contains(text, "://") || !strings.Contains(text, "@") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return hidden
	}
	return u.Redacted()
}
