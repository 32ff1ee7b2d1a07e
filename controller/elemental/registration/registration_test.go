package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/token"
)

// E-05: a host is created once, with owner, labels and annotations.
func TestHostIsCreatedOnce(t *testing.T) {
	l, a := start(t, Compat{}), newAgent(t, hostName)
	r := l.register(a)
	wants(t, r, http.StatusCreated, "")
	if got, want := r.Header.Get("Location"), "/elemental/v1/namespaces/vms/registrations/fire/hosts/host-1"; got != want {
		t.Errorf("Location %q, want %q", got, want)
	}
	h := l.host(a.name)
	if diff := cmp.Diff(map[string]string{"rack": "a", "zone": "b"}, h.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "from the registration", "agent": "yes"}, h.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if len(h.OwnerReferences) != 1 || h.OwnerReferences[0].Name != "fire" || h.OwnerReferences[0].Kind != "ElementalRegistration" || !*h.OwnerReferences[0].Controller {
		t.Errorf("owners %+v, want the registration as controller", h.OwnerReferences)
	}
	if h.Spec.PubKey != a.public || len(h.Finalizers) != 1 {
		t.Errorf("the host has the key %q and finalizers %q", h.Spec.PubKey, h.Finalizers)
	}
	wants(t, l.register(a), http.StatusConflict, "Host 'vms' in namespace 'host-1' already exists")
}

// E-04: tokens that are missing or malformed, and a registration that is not there.
func TestRegistrationIsShownToItsTokenAlone(t *testing.T) {
	const invalid = "Forbidden: validating JWT token: "
	for _, tt := range []struct {
		name, path string
		headers    []string
		status     int
		want       string
	}{
		{"no header", "", nil, 401, "Unauthorized: missing 'Registration-Authorization' header: unauthorized"},
		{"not a bearer", "", []string{registrationHeader, "Basic eA=="}, 401, "Unauthorized: not a 'Bearer' token: unauthorized"},
		{"lower case", "", []string{registrationHeader, "bearer x"}, 401, "Unauthorized: not a 'Bearer' token: unauthorized"},
		{"malformed", "", []string{registrationHeader, "Bearer secret.of.nobody"}, 403, invalid + "token is malformed: forbidden"},
		{"empty", "", []string{registrationHeader, "Bearer "}, 403, invalid + "token is malformed: forbidden"},
		{"unknown registration", "x", nil, 404, "ElementalRegistration 'firex' not found"},
		{"name that is none", "%3Cb%3E", nil, 404, "ElementalRegistration 'fire&lt;b&gt;' not found"},
		{"another path", "/disks", nil, 404, "404 page not found\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wants(t, start(t, Compat{}).doAt("GET", Path(ns, "fire")+tt.path, "", tt.headers...), tt.status, tt.want)
		})
	}
	l := start(t, Compat{})
	r := l.do("GET", "", "", registrationHeader, "Bearer "+l.token)
	wants(t, r, 200, `{"hostLabels":{"rack":"a"},"hostAnnotations":{"note":"from the registration"},"config":{"elemental":{"registration":{"uri":"https://192.0.2.1/elemental/v1/namespaces/vms/registrations/fire"},"agent":{"hostname":{},"postInstall":{},"postReset":{}}}}}`)
	if got := r.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q, want application/json", got)
	}
}

// Methods that a path does not have get 404, and a path that is not clean a redirect, as upstream's
// router answers.
func TestRouting(t *testing.T) {
	l := start(t, Compat{})
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"PUT", "", 404}, {"POST", "", 404}, {"DELETE", "", 404}, {"GET", "/hosts", 404}, {"GET", "/hosts/h", 404}, {"POST", "/hosts/h/bootstrap", 404},
		{"GET", "//hosts/h/bootstrap", 301}, {"GET", "/hosts/h/../../../fire", 301}, {"PATCH", "/hosts/..%2f..%2f..", 301}, {"PATCH", "/hosts/%2e%2e", 301},
	} {
		if got := l.do(tt.method, tt.path, "").StatusCode; got != tt.want {
			t.Errorf("%s …%s = %d, want %d", tt.method, tt.path, got, tt.want)
		}
	}
}

// E-02: the token of a frozen registration has expired; hosts that have registered go on.
// E-03: without the key's Secret a GET answers 500, and a token of another key gets 403.
func TestTokensOfARegistration(t *testing.T) {
	sign := func(key []byte, r token.Registration) string {
		s, err := token.Sign(key, r, now)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a := newAgent(t, hostName)
	l := start(t, Compat{}, a.host())
	frozen := sign(l.key, token.Registration{URI: uriOf("fire"), Lifetime: -1})
	wants(t, l.do("GET", "", "", registrationHeader, "Bearer "+frozen), 403, "Forbidden: validating JWT token: token has invalid claims: token is expired: forbidden")
	if got := l.patch(a, "{}").StatusCode; got != 200 {
		t.Errorf("PATCH by a host of a frozen registration = %d, want 200", got)
	}
	other, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	old := sign(other, token.Registration{URI: uriOf("fire")})
	wants(t, l.do("GET", "", "", registrationHeader, "Bearer "+old), 403, "Forbidden: validating JWT token: token signature is invalid: ed25519: verification error: forbidden")
	later := sign(l.key, token.Registration{URI: uriOf("fire"), Lifetime: time.Hour})
	if got := l.do("GET", "", "", registrationHeader, "Bearer "+later).StatusCode; got != 200 {
		t.Errorf("GET with a token that lasts an hour = %d, want 200", got)
	}

	key := client.ObjectKey{Namespace: ns, Name: "fire"}
	var s corev1.Secret
	if err := l.Get(t.Context(), key, &s); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		data map[string][]byte
		want string
	}{
		{map[string][]byte{KeyData: []byte("no PEM")}, "registration signing key is not in the expected format"},
		{nil, "registration signing key is missing"},
	} {
		s.Data = tt.data
		if err := l.Update(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		wants(t, l.do("GET", "", "", registrationHeader, "Bearer "+l.token), 500, "Could not authenticate request: "+tt.want)
	}
	if err := l.Delete(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	wants(t, l.do("GET", "", "", registrationHeader, "Bearer "+l.token), 500, "Could not authenticate request: getting registration secret: registration secret is missing")
}

// E-06: the key of another host.
// E-07: HS256 and none.
// E-08: claims for another host or registration, unless they are accepted as upstream does.
func TestTokensOfHosts(t *testing.T) {
	a, stranger := newAgent(t, hostName), newAgent(t, hostName)
	with := func(change func(*jwt.RegisteredClaims)) string {
		c := a.claims()
		change(&c)
		return signed(t, jwt.SigningMethodEdDSA, a.key, c)
	}
	for _, tt := range []struct {
		name, token    string
		strict, compat int
		want           string
	}{
		{"its own", a.token(t), 201, 201, ""},
		{"another key", stranger.token(t), 403, 403, "token signature is invalid: ed25519: verification error"},
		{"HS256", signed(t, jwt.SigningMethodHS256, []byte(a.public), a.claims()), 403, 403, "token signature is invalid: signing method HS256 is invalid"},
		{"none", signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, a.claims()), 403, 403, "token signature is invalid: signing method none is invalid"},
		{"expired", with(func(c *jwt.RegisteredClaims) { c.ExpiresAt = jwt.NewNumericDate(now.Add(-time.Second)) }), 403, 403, "token has invalid claims: token is expired"},
		{"of a clock that is ahead", with(func(c *jwt.RegisteredClaims) { c.NotBefore = jwt.NewNumericDate(now.Add(3 * time.Minute)) }), 403, 403, "token has invalid claims: token is not valid yet"},
		{"another host", with(func(c *jwt.RegisteredClaims) { c.Subject = "host-2" }), 403, 201, "token has invalid claims: token has invalid subject"},
		{"another registration", with(func(c *jwt.RegisteredClaims) { c.Audience = jwt.ClaimStrings{"http://evil"} }), 403, 201, "token has invalid claims: token has invalid audience"},
		{"without end", with(func(c *jwt.RegisteredClaims) { c.ExpiresAt = nil }), 403, 201, "token has invalid claims: token is missing required claim: exp claim is required"},
		{"without claims", signed(t, jwt.SigningMethodEdDSA, a.key, jwt.RegisteredClaims{}), 403, 201, ""},
		{"too long", with(func(c *jwt.RegisteredClaims) { c.ID = strings.Repeat("x", 9<<10) }), 403, 403, "token is malformed: it has more than 8192 bytes"},
	} {
		for _, mode := range []struct {
			compat Compat
			status int
		}{{Compat{}, tt.strict}, {Compat{Claims: true}, tt.compat}} {
			t.Run(fmt.Sprintf("%s %+v", tt.name, mode.compat), func(t *testing.T) {
				l := start(t, mode.compat)
				r := l.do("POST", "/hosts", upstreamCreate(a), hostHeader, "Bearer "+tt.token, registrationHeader, "Bearer "+l.token)
				got := text(t, r)
				if r.StatusCode != mode.status || r.StatusCode == 403 && !strings.Contains(got, tt.want) {
					t.Errorf("POST with a token %s = %d %q, want %d %q", tt.name, r.StatusCode, got, mode.status, tt.want)
				}
				if strings.Contains(l.log.String(), tt.token) || strings.Contains(got, tt.token) {
					t.Errorf("the token is in the log or the answer:\n%s\n%s", &l.log, got)
				}
			})
		}
	}
}

// A body that is no JSON is refused before tokens are looked at; else the host's token comes
// first.
func TestOrderOfChecksOfANewHost(t *testing.T) {
	l, a := start(t, Compat{}), newAgent(t, hostName)
	wants(t, l.do("POST", "/hosts", "no JSON"), 400, "Could not decode request body: invalid character 'o' in literal null (expecting 'u')")
	wants(t, l.do("POST", "/hosts", ""), 400, "Could not decode request body: EOF")
	wants(t, l.do("POST", "/hosts", upstreamCreate(a)), 401, "Unauthorized: missing 'Authorization' header: unauthorized")
	wants(t, l.do("POST", "/hosts", upstreamCreate(a), hostHeader, "Bearer "+a.token(t)), 401, "Unauthorized: missing 'Registration-Authorization' header: unauthorized")
	wants(t, l.do("POST", "/hosts", `{"name":"host-1","pubKey":"no PEM"}`, hostHeader, "Bearer "+a.token(t)), 403, "Forbidden: validating JWT token: parsing host Public Key: invalid key: Key must be a PEM encoded PKCS1 or PKCS8 key: forbidden")
	if l.writes != 0 {
		t.Errorf("%d writes by refused requests", l.writes)
	}
}

func TestNamesOfHostsAreNames(t *testing.T) {
	for _, name := range []string{"../x", "a/b", "UPPER", "a b", strings.Repeat("x", 254), "%2e%2e"} {
		l, a := start(t, Compat{}), newAgent(t, name)
		r := l.register(a)
		if got := text(t, r); r.StatusCode != 400 || l.writes != 0 {
			t.Errorf("POST of host %q = %d %q and %d writes, want 400 and none", name, r.StatusCode, got, l.writes)
		}
	}
	l, a := start(t, Compat{}), newAgent(t, "")
	if r := l.register(a); r.StatusCode != 400 {
		t.Errorf("POST of a host without a name = %d, want 400", r.StatusCode)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	l, a := start(t, Compat{}), newAgent(t, hostName)
	large := `{"name":"` + strings.Repeat("x", maxBody) + `"}`
	if r := l.do("POST", "/hosts", large); r.StatusCode != 413 {
		t.Errorf("POST of more than %d bytes = %d, want 413", maxBody, r.StatusCode)
	}
	l = start(t, Compat{}, a.host())
	wants(t, l.do("PATCH", "/hosts/"+a.name, large), 401, "Unauthorized: missing 'Authorization' header: unauthorized")
	if r := l.patch(a, large); r.StatusCode != 413 {
		t.Errorf("PATCH of more than %d bytes = %d, want 413", maxBody, r.StatusCode)
	}
}

// E-38: bodies as the upstream agent sends them, with fields that nobody knows and a condition
// without a time.
func TestHostReports(t *testing.T) {
	a := newAgent(t, hostName)
	h := a.host()
	h.Labels = map[string]string{"zone": "b"}
	l := start(t, Compat{}, h)
	const extras = `"Auth":"","Namespace":"","RegistrationName":"","HostName":"","more":[{}],`
	wants(t, l.patch(a, "{}"), 200, `{"name":"host-1","labels":{"zone":"b"}}`)
	if l.writes != 0 {
		t.Errorf("a PATCH of nothing writes %d times", l.writes)
	}
	wants(t, l.patch(a, `{`+extras+`"phase":"Finalizing Registration","annotations":{"a":"b"}}`), 200, `{"name":"host-1","annotations":{"a":"b"},"labels":{"zone":"b"}}`)
	wants(t, l.patch(a, `{`+extras+`"installed":true,"condition":{"type":"InstallationReady","status":"True","severity":"Info","lastTransitionTime":null}}`), 200,
		`{"name":"host-1","annotations":{"a":"b"},"labels":{"elementalhost.infrastructure.cluster.x-k8s.io/installed":"true","zone":"b"},"installed":true}`)
	wants(t, l.patch(a, `{`+extras+`"inPlaceUpdate":"done","condition":{"type":"OSVersionReady","status":"False","severity":"Error","reason":"OSVersionReconciliationFailed","message":"no","lastTransitionTime":null}}`), 200,
		`{"name":"host-1","annotations":{"a":"b"},"labels":{"elementalhost.infrastructure.cluster.x-k8s.io/in-place-update":"done","elementalhost.infrastructure.cluster.x-k8s.io/installed":"true","zone":"b"},"installed":true,"inPlaceUpgrade":"done"}`)
	h = l.host(a.name)
	if h.Status.Phase != elementalv1.PhaseFinalizingRegistration {
		t.Errorf("phase %q, want %q", h.Status.Phase, elementalv1.PhaseFinalizingRegistration)
	}
	var got []string
	for _, c := range h.Status.Conditions {
		got = append(got, fmt.Sprint(c.Type, " ", c.Status, " ", c.Reason, " ", c.Severity, " ", c.LastTransitionTime.UTC().Format(time.RFC3339)))
	}
	want := []string{
		"Ready False OSVersionReconciliationFailed Error 2026-05-04T12:00:00Z",
		"InstallationReady True  Info 2026-05-04T12:00:00Z",
		"OSVersionReady False OSVersionReconciliationFailed Error 2026-05-04T12:00:00Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	before := l.writes
	l.patch(a, `{"phase":"Finalizing Registration"}`)
	if l.writes != before {
		t.Errorf("a report of what is known writes %d times", l.writes-before)
	}
}

// A host can report through any registration of its namespace: upstream looks it up by name.
func TestHostReportsThroughAnotherRegistration(t *testing.T) {
	a := newAgent(t, hostName)
	l := start(t, Compat{}, a.host())
	c := a.claims()
	c.Audience = jwt.ClaimStrings{uriOf("other")}
	r := l.doAt("PATCH", Path(ns, "other")+"/hosts/"+a.name, "{}", hostHeader, "Bearer "+signed(t, jwt.SigningMethodEdDSA, a.key, c))
	wants(t, r, 200, `{"name":"host-1"}`)
}

// E-35: false sets no label, unless it is to as with upstream.
func TestFalseSetsNoLabel(t *testing.T) {
	for _, compat := range []bool{false, true} {
		a := newAgent(t, hostName)
		h := a.host()
		h.Spec.BootstrapSecret = &corev1.ObjectReference{Name: "data"}
		l := start(t, Compat{Labels: compat}, h)
		if r := l.patch(a, `{"installed":false,"bootstrapped":false,"reset":false}`); r.StatusCode != 200 {
			t.Fatalf("PATCH = %d, want 200", r.StatusCode)
		}
		want := map[string]string(nil)
		if compat {
			want = map[string]string{elementalv1.InstalledLabel: "true", elementalv1.BootstrappedLabel: "true", elementalv1.ResetLabel: "true"}
		}
		if got := l.host(a.name).Labels; !maps.Equal(got, want) {
			t.Errorf("labels after false with %v: %v, want %v", compat, got, want)
		}
	}
}

// The cache may lack the Secret that GET of the bootstrap data, which reads past it, has found.
func TestBootstrappedReportIsTakenWhileTheCacheIsLate(t *testing.T) {
	a := newAgent(t, hostName)
	associated := a.host()
	associated.Spec.BootstrapSecret = &corev1.ObjectReference{Name: "data"}
	l := start(t, Compat{}, associated)
	api, err := New(Config{Client: &staleReader{Client: l.Client, host: a.host()}, Reader: l.Client, Wall: clocktesting.NewFakePassiveClock(now)})
	if err != nil {
		t.Fatal(err)
	}
	l.api = api
	if r := l.patch(a, `{"bootstrapped":true}`); r.StatusCode != 200 {
		t.Errorf("PATCH = %d, want 200", r.StatusCode)
	}
}

// E-23: a host without bootstrap data cannot have bootstrapped.
func TestBootstrappedNeedsBootstrapData(t *testing.T) {
	a := newAgent(t, hostName)
	l := start(t, Compat{}, a.host())
	wants(t, l.patch(a, `{"bootstrapped":true}`), 400, "Can't mark the Host as bootstrapped if no bootstrap secret has been associated yet.")
	wants(t, l.patch(a, `no JSON`), 400, "Could not decode request: invalid character 'o' in literal null (expecting 'u')")
	wants(t, l.patch(a, `{"condition":{"type":"","status":"True"}}`), 400, "Could not patch ElementalHost 'host-1': condition.type and condition.status are missing")
	if l.writes != 0 {
		t.Errorf("%d writes by refused reports", l.writes)
	}
	h := l.host(a.name)
	h.Spec.BootstrapSecret = &corev1.ObjectReference{Name: "data"}
	if err := l.Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	wants(t, l.patch(a, `{"bootstrapped":true}`), 200, `{"name":"host-1","labels":{"elementalhost.infrastructure.cluster.x-k8s.io/bootstrapped":"true"},"bootstrapReady":true,"bootstrapped":true}`)
}

// E-24: bootstrap data before the association, of a Secret that is gone, and empty.
func TestBootstrapData(t *testing.T) {
	a := newAgent(t, hostName)
	get := func(l *lab) *http.Response {
		return l.do("GET", "/hosts/"+a.name+"/bootstrap", "", hostHeader, "Bearer "+a.token(t))
	}
	l := start(t, Compat{}, a.host())
	wants(t, get(l), 404, "There is no associated boostrap secret yet")
	h := a.host()
	h.Spec.BootstrapSecret = &corev1.ObjectReference{Namespace: ns, Name: "data"}
	wants(t, get(start(t, Compat{}, h.DeepCopy())), 500, "Could not find expected Bootstrap secret")
	for _, tt := range []struct {
		data   map[string][]byte
		status int
		want   string
	}{
		{nil, 500, "Could not prepare bootstrap response: CAPI bootstrap secret does not contain any config"},
		{map[string][]byte{"value": []byte("#cloud-config\n")}, 200, `{"format":"cloud-config","config":"#cloud-config\n"}`},
		{map[string][]byte{"value": []byte("{}"), "format": []byte("ignition")}, 200, `{"format":"ignition","config":"{}"}`},
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data"}, Data: tt.data}
		l := start(t, Compat{}, h.DeepCopy(), s)
		wants(t, get(l), tt.status, tt.want)
	}
	l = start(t, Compat{}, h.DeepCopy())
	wants(t, l.do("GET", "/hosts/"+a.name+"/bootstrap", ""), 401, "Unauthorized: missing 'Authorization' header: unauthorized")
}

// A host that is gone answers 404; when another server has its name, the token of the
// first gets 403, although the cache still has the first.
func TestHostThatIsGone(t *testing.T) {
	a, next := newAgent(t, hostName), newAgent(t, hostName)
	l := start(t, Compat{}, a.host())
	wants(t, l.do("DELETE", "/hosts/"+a.name, "", hostHeader, "Bearer "+a.token(t)), 202, "")
	wants(t, l.patch(a, "{}"), 404, "ElementalHost 'host-1' not found")
	wants(t, l.do("DELETE", "/hosts/"+a.name, "", hostHeader, "Bearer "+a.token(t)), 404, "ElementalHost 'host-1' not found")
	wants(t, l.do("GET", "/hosts/"+a.name+"/bootstrap", "", hostHeader, "Bearer "+a.token(t)), 404, "ElementalHost 'host-1' not found")
	wants(t, l.register(next), 201, "")
	if r := l.patch(a, "{}"); r.StatusCode != 403 {
		t.Errorf("PATCH with the token of the server before = %d, want 403", r.StatusCode)
	}
	late := &staleReader{Client: l.Client, host: a.host()}
	api, err := New(Config{Client: late, Reader: l.Client, Wall: clocktesting.NewFakePassiveClock(now)})
	if err != nil {
		t.Fatal(err)
	}
	l.api = api
	if r := l.patch(next, "{}"); r.StatusCode != 200 {
		t.Errorf("PATCH by the next server while the cache is late = %d, want 200", r.StatusCode)
	}
	if r := l.patch(a, `{"phase":"Running"}`); r.StatusCode == 200 {
		t.Errorf("a report of the server before changes the host of the next: %d", r.StatusCode)
	}
}

// staleReader is a cache that still has a host that is gone.
type staleReader struct {
	client.Client
	host *elementalv1.ElementalHost
}

func (s *staleReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if h, ok := o.(*elementalv1.ElementalHost); ok {
		s.host.DeepCopyInto(h)
		h.ResourceVersion = "99"
		return nil
	}
	return s.Client.Get(ctx, key, o, opts...)
}

// A report is applied to the present host: a controller's write in between stays.
func TestReportSurvivesConcurrentChange(t *testing.T) {
	a := newAgent(t, hostName)
	l := start(t, Compat{}, a.host())
	changed := false
	inner := l.Client.(client.WithWatch)
	l.Client = interceptor.NewClient(inner, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if !changed {
				changed = true
				h := l.host(a.name)
				before := h.DeepCopy()
				condition.Set(h, condition.True(elementalv1.BootstrapReady), now)
				if err := inner.Status().Patch(ctx, h, client.MergeFrom(before)); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	api, err := New(Config{Client: l.Client, Reader: l.Client, Wall: clocktesting.NewFakePassiveClock(now)})
	if err != nil {
		t.Fatal(err)
	}
	l.api = api
	if r := l.patch(a, `{"condition":{"type":"RegistrationReady","status":"True"}}`); r.StatusCode != 200 {
		t.Fatalf("PATCH = %d %s, want 200", r.StatusCode, text(t, r))
	}
	h := l.host(a.name)
	if !condition.IsTrue(h, elementalv1.BootstrapReady) || !condition.IsTrue(h, elementalv1.RegistrationReady) {
		t.Errorf("conditions %+v, want those of the report and of the controller", h.Status.Conditions)
	}
}

// The API of Kubernetes fails: 500, or 400 where the report is at fault.
func TestKubernetesFailures(t *testing.T) {
	a := newAgent(t, hostName)
	for _, tt := range []struct {
		err    error
		status int
	}{
		{errors.New("etcd is down"), 500},
		{apierrors.NewInvalid(elementalv1.GroupVersion.WithKind("ElementalHost").GroupKind(), hostName, nil), 400},
	} {
		l := start(t, Compat{}, a.host())
		c := interceptor.NewClient(l.Client.(client.WithWatch), interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return tt.err
			},
		})
		api, err := New(Config{Client: c, Reader: c, Wall: clocktesting.NewFakePassiveClock(now)})
		if err != nil {
			t.Fatal(err)
		}
		l.api = api
		wants(t, l.patch(a, `{"phase":"Running"}`), tt.status, "Could not patch ElementalHost 'host-1'")
	}
}

// E-30: the report of a reset is answered, although the controller lets the host go at once.
func TestReportOfAResetIsAnswered(t *testing.T) {
	a := newAgent(t, hostName)
	h := a.host()
	h.Finalizers = []string{elementalv1.Finalizer}
	l := start(t, Compat{}, h)
	wants(t, l.do("DELETE", "/hosts/"+a.name, "", hostHeader, "Bearer "+a.token(t)), 202, "")
	c := interceptor.NewClient(l.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, o, p, opts...)
			h := l.host(a.name) // the controller is faster than what follows
			h.Finalizers = nil
			return errors.Join(err, l.Update(ctx, h))
		},
	})
	api, err := New(Config{Client: c, Reader: c, Wall: clocktesting.NewFakePassiveClock(now)})
	if err != nil {
		t.Fatal(err)
	}
	l.api = api
	if r := l.patch(a, `{"reset":true,"condition":{"type":"ResetReady","status":"True"}}`); r.StatusCode != 200 {
		t.Errorf("the report of the reset = %d %s, want 200", r.StatusCode, text(t, r))
	}
	wants(t, l.patch(a, "{}"), 404, "ElementalHost 'host-1' not found")
}

// The order of a registration with installation, and its cost: at most 8 writes.
func TestRegistrationTakesEightWrites(t *testing.T) {
	l, a := start(t, Compat{}), newAgent(t, hostName)
	wants(t, l.patch(a, "{}"), 404, "ElementalHost 'host-1' not found")
	l.register(a)
	for _, body := range []string{
		`{"phase":"Registering"}`, `{"phase":"Finalizing Registration"}`,
		`{"condition":{"type":"RegistrationReady","status":"True","lastTransitionTime":null}}`,
		`{"condition":{"type":"InstallationReady","status":"False","severity":"Info","reason":"WaitingForInstallation","lastTransitionTime":null}}`,
		`{"phase":"Installing"}`,
		`{"installed":true,"condition":{"type":"InstallationReady","status":"True","lastTransitionTime":null}}`,
	} {
		if r := l.patch(a, body); r.StatusCode != 200 {
			t.Fatalf("PATCH %s = %d", body, r.StatusCode)
		}
	}
	if l.writes > 8 {
		t.Errorf("a registration with installation took %d writes, want at most 8", l.writes)
	}
}
