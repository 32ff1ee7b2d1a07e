package registration

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/token"
)

const (
	ns       = "vms"
	base     = "https://192.0.2.1"
	hostName = "host-1"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// lab is an Elemental API over a Kubernetes API, and what agents know.
type lab struct {
	t *testing.T
	client.Client
	api    *API
	key    []byte // signing key of the registration
	token  string // token of the registration
	writes int
	log    bytes.Buffer
}

func uriOf(name string) string { return base + Path(ns, name) }

func start(t *testing.T, compat Compat, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(elementalv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t}
	var err error
	if l.key, err = token.NewKey(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fire", "other"} {
		g := &elementalv1.ElementalRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: "uid-of-" + "registration"}}
		g.Spec.Config.Elemental.Registration.URI = uriOf(name)
		if name == "fire" {
			g.Spec.HostLabels, g.Spec.HostAnnotations = map[string]string{"rack": "a"}, map[string]string{"note": "from the registration"}
		}
		objects = append(objects, g, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{KeyData: l.key}})
	}
	if l.token, err = token.Sign(l.key, token.Registration{URI: uriOf("fire")}, now); err != nil {
		t.Fatal(err)
	}
	l.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&elementalv1.ElementalHost{}).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			l.writes++
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			l.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			l.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	l.api, err = New(Config{
		Client: l, Reader: l, Wall: clocktesting.NewFakePassiveClock(now), Compat: compat,
		Log: logr.FromSlogHandler(slog.NewTextHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// agent is a server's agent.
type agent struct {
	name   string
	key    ed25519.PrivateKey
	public string // PEM
}

func newAgent(t *testing.T, name string) *agent {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return &agent{name, key, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

// claims are those of an agent's token.
func (a *agent) claims() jwt.RegisteredClaims {
	return jwt.RegisteredClaims{
		Issuer: "elemental-agent/v0.7.0", Subject: a.name, Audience: jwt.ClaimStrings{uriOf("fire")},
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-2 * time.Second)), ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute)),
	}
}

func signed(t *testing.T, m jwt.SigningMethod, key any, c jwt.Claims) string {
	t.Helper()
	s, err := jwt.NewWithClaims(m, c).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (a *agent) token(t *testing.T) string {
	return signed(t, jwt.SigningMethodEdDSA, a.key, a.claims())
}

// host is the object of an agent's server.
func (a *agent) host() *elementalv1.ElementalHost {
	return &elementalv1.ElementalHost{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: a.name, UID: "uid-of-host"}, Spec: elementalv1.ElementalHostSpec{PubKey: a.public}}
}

// do sends a request below the registration.
func (l *lab) do(method, path, body string, headers ...string) *http.Response {
	l.t.Helper()
	return l.doAt(method, Path(ns, "fire")+path, body, headers...)
}

func (l *lab) doAt(method, path, body string, headers ...string) *http.Response {
	l.t.Helper()
	r := httptest.NewRequestWithContext(l.t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	l.api.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wants asserts a status and the text of an answer.
func wants(t *testing.T, r *http.Response, status int, body string) {
	t.Helper()
	got := text(t, r)
	if r.StatusCode != status || got != body {
		t.Errorf("answer %d %q, want %d %q", r.StatusCode, got, status, body)
	}
	if body != "" && !strings.HasPrefix(body, "{") && !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("Content-Type %q of an error, want text/plain", r.Header.Get("Content-Type"))
	}
}

func (l *lab) host(name string) *elementalv1.ElementalHost {
	l.t.Helper()
	h := new(elementalv1.ElementalHost)
	if err := l.Get(l.t.Context(), client.ObjectKey{Namespace: ns, Name: name}, h); err != nil {
		l.t.Fatal(err)
	}
	return h
}

// upstreamCreate is a body as the upstream agent sends it: with empty fields of its own.
func upstreamCreate(a *agent) string {
	b, err := json.Marshal(map[string]any{
		"Auth": "", "RegAuth": "", "Namespace": "", "RegistrationName": "", "name": a.name,
		"annotations": map[string]string{"agent": "yes"}, "labels": map[string]string{"zone": "b"}, "pubKey": a.public,
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (l *lab) register(a *agent) *http.Response {
	l.t.Helper()
	return l.do("POST", "/hosts", upstreamCreate(a), hostHeader, "Bearer "+a.token(l.t), registrationHeader, "Bearer "+l.token)
}

func (l *lab) patch(a *agent, body string) *http.Response {
	l.t.Helper()
	return l.do("PATCH", "/hosts/"+a.name, body, hostHeader, "Bearer "+a.token(l.t))
}
