package inband

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// KeySize is the minimum size of a Key in bytes.
const KeySize = 32

// Boot identifies one boot of a host's agent. Both fields consist of letters, digits and
// dashes.
type Boot struct {
	Host string // UID of the host's object
	ID   string // unique among the boots of a host
}

// String returns HOST_ID, as in tokens and paths.
func (b Boot) String() string { return b.Host + "_" + b.ID }

// ParseBoot is the inverse of Boot.String.
func ParseBoot(s string) (Boot, error) {
	host, id, ok := strings.Cut(s, "_")
	if !ok || host == "" || id == "" || strings.ContainsAny(id, "_./") || strings.ContainsAny(host, "./") {
		return Boot{}, fmt.Errorf("boot %q: want HOST_ID", s)
	}
	return Boot{Host: host, ID: id}, nil
}

var errToken = errors.New("the token is invalid")

// Key signs tokens. It is a secret that outlives the controller's process, so that agents
// stay valid for the next process. A token is derived from the key, not stored: nothing
// has to be written before a boot.
type Key []byte

// Sign returns the token of a boot: the boot, and an HMAC of it and purpose.
func (k Key) Sign(purpose string, b Boot) string {
	return b.String() + "." + k.code(purpose, b)
}

// Signature returns the secret part of Sign's token, after the boot and a dot.
func (k Key) Signature(purpose string, b Boot) string { return k.code(purpose, b) }

// Verify checks a token for purpose in constant time and returns its boot.
func (k Key) Verify(purpose, token string) (Boot, error) {
	name, code, ok := strings.Cut(token, ".")
	if !ok {
		return Boot{}, errToken
	}
	b, err := ParseBoot(name)
	if err != nil {
		return Boot{}, errToken
	}
	if !hmac.Equal([]byte(code), []byte(k.code(purpose, b))) {
		return Boot{}, errToken
	}
	return b, nil
}

// code returns the text of a signature. Signatures are compared as text: base64 has many
// texts for the same bytes (RFC 4648, §3.5: the unused bits of the last character; Go's
// decoder skips line breaks, too), and a token is one text.
func (k Key) code(purpose string, b Boot) string {
	h := hmac.New(sha256.New, k)
	fmt.Fprintf(h, "metalab %s\x00%s", purpose, b)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Digest returns a hash of parts as 16 hex digits.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
