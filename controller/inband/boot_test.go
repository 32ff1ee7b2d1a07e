package inband

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

// A token is one text: other texts that base64 decodes to the same signature (RFC 4648,
// §3.5), and other notations of it, are no tokens.
func TestVerifyRefusesOtherEncodingsOfASignature(t *testing.T) {
	k := make(Key, KeySize)
	b := Boot{Host: "h1", ID: "b1"}
	token := k.Sign("agent", b)
	name, code, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(code)
	if err != nil {
		t.Fatal(err)
	}
	// The last character of 32 bytes has two unused bits: three other characters decode to
	// the same bytes.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, code[len(code)-1])
	others := map[string]string{
		"padded":                code + "=",
		"standard alphabet":     base64.RawStdEncoding.EncodeToString(raw),
		"standard, padded":      base64.StdEncoding.EncodeToString(raw),
		"lower-case hex":        hex.EncodeToString(raw),
		"upper-case hex":        strings.ToUpper(hex.EncodeToString(raw)),
		"line break at the end": code + "\n",
		"line break within":     code[:7] + "\r\n" + code[7:],
		"space at the end":      code + " ",
		"space before":          " " + code,
		"zero byte at the end":  code + "\x00",
		"other case":            strings.ToUpper(code),
		"shorter":               code[:len(code)-1],
		"empty":                 "",
		"bit 0 of the unused":   code[:len(code)-1] + alphabet[last^1:][:1],
		"bit 1 of the unused":   code[:len(code)-1] + alphabet[last^2:][:1],
		"both unused bits":      code[:len(code)-1] + alphabet[last^3:][:1],
	}
	for spelling, other := range others {
		if other == code {
			continue // this signature has none of the characters that differ
		}
		if got, err := k.Verify("agent", name+"."+other); err == nil {
			t.Errorf("Verify(%q), %s, = %v, want an error", name+"."+other, spelling, got)
		}
	}
	for _, other := range []string{" " + token, "H1" + token[2:], strings.Replace(token, "_", "_0", 1), token + "." + code} {
		if got, err := k.Verify("agent", other); err == nil {
			t.Errorf("Verify(%q) = %v, want an error", other, got)
		}
	}
	if got, err := k.Verify("agent", token); err != nil || got != b {
		t.Errorf("Verify(%q) = %v, %v, want %v", token, got, err, b)
	}
}

// FuzzVerify: the key accepts no text but the one that it has signed.
func FuzzVerify(f *testing.F) {
	k := make(Key, KeySize)
	b := Boot{Host: "h1", ID: "b1"}
	token := k.Sign("agent", b)
	f.Add(token)
	f.Add(token + "=")
	f.Add(token + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := k.Verify("agent", text); (err == nil) != (text == token) {
			t.Fatalf("Verify(%q) = %v, %v", text, got, err)
		}
	})
}
