package registration

import (
	"crypto/ed25519"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/token"
)

// The headers of tokens.
const (
	hostHeader         = "Authorization"
	registrationHeader = "Registration-Authorization"
)

// KeyData is the key of a registration's Secret that has its private key (PEM, PKCS #8).
const KeyData = "privKey"

// bearer returns the token of a header.
func (r *request) bearer(header string) (string, error) {
	value := r.r.Header.Get(header)
	if value == "" {
		return "", &refusal{status: http.StatusUnauthorized, text: "Unauthorized: missing '" + header + "' header: unauthorized"}
	}
	text, found := strings.CutPrefix(value, "Bearer ")
	if !found {
		return "", &refusal{status: http.StatusUnauthorized, text: "Unauthorized: not a 'Bearer' token: unauthorized"}
	}
	return text, nil
}

// check checks a token.
func (r *request) check(text string, key ed25519.PublicKey, want token.Expected) error {
	want.Compat, want.Now = r.Compat.Claims, r.Wall.Now
	if err := token.Check(text, key, want); err != nil {
		return forbidden(err)
	}
	return nil
}

func forbidden(err error) error {
	return &refusal{status: http.StatusForbidden, text: "Forbidden: validating JWT token: " + err.Error() + ": forbidden"}
}

// authorizeHost returns an error unless the request has a token that the host made for the
// registration.
func (r *request) authorizeHost(name, publicKey string, g *elementalv1.ElementalRegistration) error {
	text, err := r.bearer(hostHeader)
	if err != nil {
		return err
	}
	key, err := token.ParsePublic(publicKey)
	if err != nil {
		return forbidden(err)
	}
	return r.check(text, key, token.Expected{Subject: name, Audience: uri(g), Expires: true})
}

// authorizeRegistration returns an error unless the request has a token of the registration.
func (r *request) authorizeRegistration(g *elementalv1.ElementalRegistration) error {
	text, err := r.bearer(registrationHeader)
	if err != nil {
		return err
	}
	const unable = "Could not authenticate request: "
	var s corev1.Secret // the Secret with the registration's name, whatever privateKeyRef says
	if err := r.Reader.Get(r.context(), client.ObjectKeyFromObject(g), &s); err != nil {
		return refuse(http.StatusInternalServerError, err, unable+"getting registration secret: registration secret is missing")
	}
	private, ok := s.Data[KeyData]
	if !ok {
		return refuse(http.StatusInternalServerError, nil, unable+"registration signing key is missing")
	}
	key, err := token.Public(private)
	if err != nil {
		return refuse(http.StatusInternalServerError, err, unable+"registration signing key is not in the expected format")
	}
	return r.check(text, key, token.Expected{Subject: uri(g), Audience: uri(g)})
}

func uri(g *elementalv1.ElementalRegistration) string {
	return g.Spec.Config.Elemental.Registration.URI
}
