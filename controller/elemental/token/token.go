// Package token signs and checks the tokens of the Elemental API: JSON Web Tokens (RFC 7519)
// with EdDSA over Ed25519 (RFC 8037) and no other algorithm. It makes the keys that sign
// registration tokens, and knows no object and no header.
package token

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// maxSize bounds a token, in bytes. Agents' have some 400.
const maxSize = 8 << 10

// Registration is a token by which servers register.
type Registration struct {
	URI string // URI of the registration: subject and audience
	// Lifetime is how long the token is valid; 0 means without end, and a negative one that it has
	// expired already.
	Lifetime time.Duration
}

// issuer is who makes registration tokens.
const issuer = "ElementalRegistrationReconciler"

// Sign returns a registration token, signed by the key of a PEM (PKCS #8).
func Sign(key []byte, r Registration, now time.Time) (string, error) {
	k, err := parse(key)
	if err != nil {
		return "", err
	}
	c := jwt.RegisteredClaims{
		Issuer: issuer, Subject: r.URI, Audience: jwt.ClaimStrings{r.URI}, IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now),
	}
	if r.Lifetime != 0 {
		c.ExpiresAt = jwt.NewNumericDate(now.Add(r.Lifetime))
	}
	return jwt.NewWithClaims(jwt.SigningMethodEdDSA, c).SignedString(k)
}

// NewKey returns a new key as PEM (PKCS #8).
func NewKey() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("token: key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("token: key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Public returns the public key of a private key as PEM (PKCS #8).
func Public(key []byte) (ed25519.PublicKey, error) {
	k, err := parse(key)
	if err != nil {
		return nil, err
	}
	return k.Public().(ed25519.PublicKey), nil
}

func parse(key []byte) (ed25519.PrivateKey, error) {
	k, err := jwt.ParseEdPrivateKeyFromPEM(key)
	if err != nil {
		return nil, fmt.Errorf("parsing ed25519 key: %w", err)
	}
	return k.(ed25519.PrivateKey), nil // the parser accepts no other type
}

// ParsePublic returns the public key of a PEM (PKIX).
func ParsePublic(key string) (ed25519.PublicKey, error) {
	k, err := jwt.ParseEdPublicKeyFromPEM([]byte(key))
	if err != nil {
		return nil, fmt.Errorf("parsing host Public Key: %w", err)
	}
	return k.(ed25519.PublicKey), nil // the parser accepts no other type
}

// Expected holds the claims that a token must have.
type Expected struct {
	Subject, Audience string
	Expires           bool // the token has an end
	// Compat accepts any subject and audience, and a token without end, as the upstream API does:
	// it compares no claim but the times.
	Compat bool
	Now    func() time.Time
}

// Check returns an error unless a token is signed by key, is valid now, and has the
// expected claims. The error has no part of the token.
func Check(text string, key ed25519.PublicKey, want Expected) error {
	if len(text) > maxSize {
		return fmt.Errorf("token is malformed: it has more than %d bytes", maxSize)
	}
	options := []jwt.ParserOption{jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithTimeFunc(want.Now)}
	if !want.Compat {
		options = append(options, jwt.WithSubject(want.Subject), jwt.WithAudience(want.Audience))
		if want.Expires {
			options = append(options, jwt.WithExpirationRequired())
		}
	}
	_, err := jwt.NewParser(options...).ParseWithClaims(text, new(jwt.RegisteredClaims), func(*jwt.Token) (any, error) { return key, nil })
	return redact(err)
}

// redact returns the error of a token, without the texts of the decoders, which quote the bytes
// that they do not understand.
func redact(err error) error {
	if err == nil || !errors.Is(err, jwt.ErrTokenMalformed) {
		return err
	}
	return jwt.ErrTokenMalformed
}
