package token

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at() time.Time { return now }

func newKey(t testing.TB) []byte {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// E-01: a registration token is its registration's alone, and has its claims.
func TestRegistrationToken(t *testing.T) {
	const uri = "https://192.0.2.1/elemental/v1/namespaces/a/registrations/b"
	key := newKey(t)
	text, err := Sign(key, Registration{URI: uri, Lifetime: time.Hour}, now)
	if err != nil {
		t.Fatal(err)
	}
	public, err := Public(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(text, public, Expected{Subject: uri, Audience: uri, Expires: true, Now: at}); err != nil {
		t.Errorf("Check of a new token = %v, want none", err)
	}
	var c jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(text, &c); err != nil {
		t.Fatal(err)
	}
	if c.Issuer != "ElementalRegistrationReconciler" || c.Subject != uri || c.Audience[0] != uri || !c.IssuedAt.Equal(now) || !c.NotBefore.Equal(now) || !c.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Errorf("claims %+v", c)
	}
	for name, tt := range map[string]struct {
		want Expected
		err  string
	}{
		"later":         {Expected{Subject: uri, Audience: uri, Now: func() time.Time { return now.Add(time.Hour) }}, "token is expired"},
		"earlier":       {Expected{Subject: uri, Audience: uri, Now: func() time.Time { return now.Add(-time.Second) }}, "token is not valid yet"},
		"another":       {Expected{Subject: uri + "x", Audience: uri, Now: at}, "token has invalid subject"},
		"another's":     {Expected{Subject: uri, Audience: uri + "x", Now: at}, "token has invalid audience"},
		"compat, later": {Expected{Compat: true, Now: func() time.Time { return now.Add(time.Hour) }}, "token is expired"},
	} {
		if err := Check(text, public, tt.want); err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("Check %s = %v, want %q", name, err, tt.err)
		}
	}
	if err := Check(text, public, Expected{Subject: "x", Audience: "y", Compat: true, Now: at}); err != nil {
		t.Errorf("Check with Compat = %v, want none", err)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	for _, text := range []string{"", "no PEM", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if _, err := Sign([]byte(text), Registration{}, now); err == nil {
			t.Errorf("Sign by the key %q = no error", text)
		}
		if _, err := Public([]byte(text)); err == nil {
			t.Errorf("Public(%q) = no error", text)
		}
		if _, err := ParsePublic(text); err == nil {
			t.Errorf("ParsePublic(%q) = no error", text)
		}
	}
}

// No input makes Check panic, or pass by another key.
func FuzzCheck(f *testing.F) {
	key, other := newKey(f), newKey(f)
	for _, k := range [][]byte{key, other} {
		text, err := Sign(k, Registration{URI: "u"}, now)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	public, err := Public(newKey(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := Check(text, public, Expected{Compat: true, Now: at}); err == nil {
			t.Errorf("Check(%q) = none, by a key that signed nothing", text)
		}
	})
}
