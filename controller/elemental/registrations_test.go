package elemental

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/token"
)

func registrationNamed(name string) *elementalv1.ElementalRegistration {
	return &elementalv1.ElementalRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// checks returns the error of a token by the key of a registration's Secret.
func (l *lab) checks(g *elementalv1.ElementalRegistration, text string) error {
	l.t.Helper()
	key, err := token.Public(get(l, g.Name, new(corev1.Secret)).Data["privKey"])
	l.must(err)
	uri := g.Spec.Config.Elemental.Registration.URI
	return token.Check(text, key, token.Expected{Subject: uri, Audience: uri, Now: now.Local})
}

// E-01: address, key, reference and token appear, and the registration is ready.
func TestRegistrationIsCompleted(t *testing.T) {
	l := start(t, registrationNamed("fire"))
	l.settle()
	g := get(l, "fire", new(elementalv1.ElementalRegistration))
	config := g.Spec.Config.Elemental.Registration
	if want := "https://192.0.2.1/elemental/v1/namespaces/vms/registrations/fire"; config.URI != want || config.CACert != "the CA" {
		t.Errorf("uri %q and caCert %q, want %q and the CA", config.URI, config.CACert, want)
	}
	s := get(l, "fire", new(corev1.Secret))
	if !strings.Contains(string(s.Data["privKey"]), "BEGIN PRIVATE KEY") || !metav1.IsControlledBy(s, g) {
		t.Errorf("the Secret has the keys %d and the owners %v", len(s.Data), s.OwnerReferences)
	}
	if ref := g.Spec.PrivateKeyRef; ref == nil || ref.Name != "fire" || ref.Namespace != ns || ref.UID != s.UID {
		t.Errorf("privateKeyRef %+v, want the Secret", ref)
	}
	if err := l.checks(g, config.Token); err != nil {
		t.Errorf("the token is refused: %v", err)
	}
	is(t, g, capi.ReadyCondition, "True")
}

func TestRegistrationKeepsWhatItsUserGives(t *testing.T) {
	g := registrationNamed("fire")
	g.Spec.Config.Elemental.Registration = elementalv1.Registration{URI: "https://register.example.org/x", CACert: "another", Token: "disabled"}
	l := start(t, g, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fire"}, Data: map[string][]byte{"privKey": []byte("a user's")}})
	want := g.Spec.Config.Elemental.Registration
	l.settle()
	if got := get(l, "fire", new(elementalv1.ElementalRegistration)).Spec.Config.Elemental.Registration; got != want {
		t.Errorf("registration %+v, want %+v", got, want)
	}
	if got := get(l, "fire", new(corev1.Secret)).Data["privKey"]; string(got) != "a user's" {
		t.Errorf("the Secret of a user is overwritten: %q", got)
	}
}

// E-02: with the duration -1 the token has expired.
func TestFrozenRegistration(t *testing.T) {
	g := registrationNamed("fire")
	g.Spec.Config.Elemental.Registration.TokenDuration = -1
	l := start(t, g)
	l.settle()
	g = get(l, "fire", new(elementalv1.ElementalRegistration))
	if err := l.checks(g, g.Spec.Config.Elemental.Registration.Token); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("the token of a frozen registration: %v, want expired", err)
	}
}

// E-03: a new key is made where the reference is removed, and the old token is not its.
func TestSigningKeyIsReplaced(t *testing.T) {
	l := start(t, registrationNamed("fire"))
	l.settle()
	g := get(l, "fire", new(elementalv1.ElementalRegistration))
	old := g.Spec.Config.Elemental.Registration.Token
	l.must(l.Delete(t.Context(), get(l, "fire", new(corev1.Secret))))
	l.settle()
	g = get(l, "fire", new(elementalv1.ElementalRegistration))
	if g.Spec.Config.Elemental.Registration.Token != old {
		t.Errorf("the token is another without the Secret")
	}
	edit(l, g, func(g *elementalv1.ElementalRegistration) { g.Spec.Config.Elemental.Registration.Token = "" })
	l.settle()
	g = get(l, "fire", new(elementalv1.ElementalRegistration))
	is(t, g, capi.ReadyCondition, "False MissingSigningKey Error")
	edit(l, g, func(g *elementalv1.ElementalRegistration) { g.Spec.PrivateKeyRef = nil })
	l.settle()
	g = get(l, "fire", new(elementalv1.ElementalRegistration))
	is(t, g, capi.ReadyCondition, "True")
	if err := l.checks(g, g.Spec.Config.Elemental.Registration.Token); err != nil {
		t.Errorf("the new token is refused: %v", err)
	}
	if err := l.checks(g, old); err == nil {
		t.Errorf("the old token is accepted")
	}
}
