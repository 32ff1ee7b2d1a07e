package steps

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
)

// registrant speaks to the Elemental API as the agent of a server does, without a server.
type registrant struct {
	name   string
	key    ed25519.PrivateKey
	public string // PEM, PKIX
	uri    string // URI of the registration
	token  string // token of the registration
	client *http.Client
}

// newRegistrant returns an agent that has the configuration of a registration.
func newRegistrant(name string, registration elementalv1.Registration) (*registrant, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(registration.CACert)) {
		return nil, fmt.Errorf("the registration has no certificate authority: %q", registration.CACert)
	}
	return &registrant{
		name: name, key: key, public: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), uri: registration.URI, token: registration.Token,
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
	}, nil
}

// reply is the answer to a request.
type reply struct {
	status int
	body   string
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// do sends a request below the registration, with a new token of the host.
func (g *registrant) do(ctx context.Context, method, path string, body any) (reply, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, g.uri+path, content)
	if err != nil {
		return reply{}, err
	}
	now := time.Now()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.RegisteredClaims{
		Issuer: "elemental-agent/v0.7.0", Subject: g.name, Audience: jwt.ClaimStrings{g.uri},
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-2 * time.Second)), ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute)),
	}).SignedString(g.key)
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("User-Agent", "elemental-agent/v0.7.0")
	r.Header.Set("Authorization", "Bearer "+signed)
	r.Header.Set("Registration-Authorization", "Bearer "+g.token)
	answer, err := g.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return reply{answer.StatusCode, string(b)}, err
}

// expect sends a request and returns an error unless the answer has this status.
func (g *registrant) expect(ctx context.Context, status int, method, path string, body any) (reply, error) {
	got, err := g.do(ctx, method, path, body)
	if err == nil && got.status != status {
		err = fmt.Errorf("%s %s%s = %s, want %d", method, g.uri, path, got, status)
	}
	return got, err
}

// report sends a PATCH of the host.
func (g *registrant) report(ctx context.Context, body map[string]any) error {
	_, err := g.expect(ctx, http.StatusOK, http.MethodPatch, "/hosts/"+g.name, body)
	return err
}

func conditionReport(kind, status, reason, severity string) map[string]any {
	return map[string]any{"condition": map[string]any{"type": kind, "status": status, "reason": reason, "severity": severity, "lastTransitionTime": nil}}
}

// register sends the requests of `register --install` in their order.
func (g *registrant) register(ctx context.Context) error {
	if _, err := g.expect(ctx, http.StatusOK, http.MethodGet, "", nil); err != nil {
		return err
	}
	if _, err := g.expect(ctx, http.StatusNotFound, http.MethodPatch, "/hosts/"+g.name, map[string]any{}); err != nil {
		return err
	}
	if _, err := g.expect(ctx, http.StatusCreated, http.MethodPost, "/hosts", map[string]any{"name": g.name, "pubKey": g.public}); err != nil {
		return err
	}
	installed := conditionReport("InstallationReady", "True", "", "Info")
	installed["installed"] = true
	for _, body := range []map[string]any{
		{"phase": elementalv1.PhaseRegistering}, {"phase": elementalv1.PhaseFinalizingRegistration},
		conditionReport("RegistrationReady", "True", "", "Info"), conditionReport("InstallationReady", "False", "WaitingForInstallation", "Info"),
		{"phase": elementalv1.PhaseInstalling}, installed,
	} {
		if err := g.report(ctx, body); err != nil {
			return err
		}
	}
	return nil
}
