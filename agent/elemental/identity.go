package elemental

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Life of a token of the host: it is made for one request. The server's clock may be a little
// behind.
const (
	tokenLife = time.Minute
	tokenSkew = 2 * time.Second
)

// identity is the key by which the server proves that it is the one that has registered.
type identity struct {
	key     ed25519.PrivateKey
	private []byte // PKCS #8 in PEM
	public  []byte // PKIX in PEM
}

const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

func newIdentity(key ed25519.PrivateKey) (identity, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return identity{}, fmt.Errorf("elemental: key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return identity{}, fmt.Errorf("elemental: key: %w", err)
	}
	return identity{key, pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: private}), pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: public})}, nil
}

// parseIdentity reads a private key.
func parseIdentity(name string, b []byte) (identity, error) {
	block, _ := pem.Decode(b)
	if block == nil || block.Type != privateBlock {
		return identity{}, fmt.Errorf("elemental: %s: it has no PEM block of the type %s", name, privateBlock)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return identity{}, fmt.Errorf("elemental: %s: %w", name, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return identity{}, fmt.Errorf("elemental: %s: it is no Ed25519 key", name)
	}
	return newIdentity(key)
}

// loadIdentity reads the key of the server. If there is none and it may be made, it is stored
// before it is used: an agent that is killed after it has registered finds it again.
func loadIdentity(s System, name string, create bool) (identity, error) {
	b, err := s.ReadFile(name)
	switch {
	case err == nil:
		return parseIdentity(name, b)
	case !errors.Is(err, fs.ErrNotExist):
		return identity{}, fmt.Errorf("elemental: %w", err)
	case !create:
		return identity{}, fmt.Errorf("elemental: %s does not exist: this server is not registered: run register first", name)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("elemental: key: %w", err)
	}
	i, err := newIdentity(key)
	if err != nil {
		return identity{}, err
	}
	if err := s.Put(sys.File{Name: name, Mode: keyMode, Content: i.private}); err != nil {
		return identity{}, fmt.Errorf("elemental: %s: %w", name, err)
	}
	return i, nil
}

// token returns a token of a host for one request to a registration.
func (i identity) token(version, host, uri string, now time.Time) (string, error) {
	t, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.RegisteredClaims{
		Issuer: userAgent(version), Subject: host, Audience: jwt.ClaimStrings{uri},
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-tokenSkew)), ExpiresAt: jwt.NewNumericDate(now.Add(tokenLife)),
	}).SignedString(i.key)
	if err != nil {
		return "", fmt.Errorf("elemental: token: %w", err)
	}
	return t, nil
}

// userAgent identifies the agent.
func userAgent(version string) string { return "elemental-agent/" + version }
