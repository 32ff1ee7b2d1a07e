package clusters

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// A Cluster's Proxy is in a Secret, which the LCMCluster names. The password is nowhere else.
func TestProxyOfACluster(t *testing.T) {
	all := objects()
	all[0].(*clusterv1.Cluster).Spec.ProviderSpec.Value.Proxy = "p"
	l := start(t, all...)
	if got := condition(t, l.pass(), ConditionProxy); got.Ready || got.Message != `spec.providerSpec.value.proxy: there is no Proxy "p" in the namespace` || l.lcm().Spec.ProxySecretName != "" {
		t.Errorf("condition %+v", got)
	}
	p := &kaasv1.Proxy{ObjectMeta: meta("p"), Spec: kaasv1.ProxySpec{HTTPProxy: "http://u:secretword@192.0.2.1:3128", NoProxy: "10.0.0.0/8"}}
	l.must(l.Create(t.Context(), p))
	c := l.pass()
	secret := func() map[string]string {
		t.Helper()
		s, out := &corev1.Secret{ObjectMeta: meta("c1-proxy")}, map[string]string{}
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		for k, v := range s.Data {
			out[k] = string(v)
		}
		if !metav1.IsControlledBy(s, c) {
			t.Errorf("the Secret is of %+v", s.OwnerReferences)
		}
		return out
	}
	if s := secret(); len(s) != 2 || s["HTTP_PROXY"] != string(p.Spec.HTTPProxy) || s["NO_PROXY"] != p.Spec.NoProxy || !condition(t, c, ConditionProxy).Ready {
		t.Errorf("the Secret has %v", s)
	}
	first := l.lcm().Spec
	if first.ProxySecretName != "c1-proxy" || len(first.ProxyHash) != 64 {
		t.Errorf("LCMCluster %+v", first)
	}
	update(l, p, func(p *kaasv1.Proxy) { p.Spec.HTTPProxy, p.Spec.HTTPSProxy = "", "https://u:secretword@192.0.2.2" })
	c = l.pass()
	if s := secret(); len(s) != 2 || s["HTTPS_PROXY"] != "https://u:secretword@192.0.2.2" || l.lcm().Spec.ProxyHash == first.ProxyHash {
		t.Errorf("the Secret has %v, the LCMCluster %+v", s, l.lcm().Spec)
	}
	ca := testCertificate(t)
	update(l, p, func(p *kaasv1.Proxy) { p.Spec.CACertificate = ca })
	if c = l.pass(); secret()["CA_CERTIFICATE"] != ca || !condition(t, c, ConditionProxy).Ready {
		t.Errorf("the Secret has %v, condition %+v", secret(), condition(t, c, ConditionProxy))
	}
	update(l, p, func(p *kaasv1.Proxy) { p.Spec.CACertificate = "x" })
	if got, want := condition(t, l.pass(), ConditionProxy), `spec.caCertificate of Proxy "p" has no certificate: give certificates in PEM`; got.Ready || got.Message != want {
		t.Errorf("no certificate: condition %+v, want %q", got, want)
	}
	update(l, p, func(p *kaasv1.Proxy) { p.Spec.CACertificate = "" })
	c = l.pass()
	text, err := yaml.Marshal([]any{c, l.lcm()})
	l.must(err)
	if strings.Contains(string(text), "secretword") {
		t.Errorf("the password is in\n%s", text)
	}
	update(l, c, func(c *clusterv1.Cluster) { c.Spec.ProviderSpec.Value.Proxy = "" })
	c = l.pass()
	if err := l.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "c1-proxy"}, new(corev1.Secret)); !apierrors.IsNotFound(err) || l.lcm().Spec.ProxySecretName+l.lcm().Spec.ProxyHash != "" || hasCondition(c, ConditionProxy) {
		t.Errorf("without a Proxy: %v, %+v", err, l.lcm().Spec)
	}
}

// testCertificate returns a certificate in PEM.
func testCertificate(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.CreateCertificate(nil, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b}))
}

// The Secret of a Cluster goes with it, and that of a user stays.
func TestSecretOfAProxyIsDeletedWithItsCluster(t *testing.T) {
	p := &kaasv1.Proxy{ObjectMeta: meta("p"), Spec: kaasv1.ProxySpec{HTTPProxy: "http://192.0.2.1:3128"}}
	key := client.ObjectKey{Namespace: key.Namespace, Name: "c1-proxy"}
	for _, ofUser := range []bool{false, true} {
		all := objects(p.DeepCopy())
		if ofUser {
			all = append(all, &corev1.Secret{ObjectMeta: meta(key.Name)})
		}
		all[0].(*clusterv1.Cluster).Spec.ProviderSpec.Value.Proxy = "p"
		l := start(t, all...)
		c := l.pass()
		if got := condition(t, c, ConditionProxy); got.Ready == ofUser || ofUser && got.Message != `Secret "c1-proxy" exists, and is not the Cluster's: remove it` {
			t.Errorf("condition %+v", got)
		}
		l.must(l.Delete(t.Context(), c))
		l.pass()
		if err := l.Get(t.Context(), key, new(corev1.Secret)); (err == nil) != ofUser {
			t.Errorf("of a user %t: Secret %v", ofUser, err)
		}
	}
}

// Secrets of users are not watched: a Cluster that waits for the removal of one looks again.
func TestSecretOfAUserIsWaitedFor(t *testing.T) {
	s := &corev1.Secret{ObjectMeta: meta("c1-proxy")}
	all := objects(&kaasv1.Proxy{ObjectMeta: meta("p"), Spec: kaasv1.ProxySpec{HTTPProxy: "http://192.0.2.1:3128"}}, s)
	all[0].(*clusterv1.Cluster).Spec.ProviderSpec.Value.Proxy = "p"
	l := start(t, all...)
	again := func(want time.Duration) {
		t.Helper()
		if got, err := l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || got.RequeueAfter != want {
			t.Errorf("Reconcile() = %+v, %v, want it again after %s", got, err, want)
		}
	}
	again(queue.SecretWait)
	if got := condition(t, l.pass(), ConditionProxy); got.Message != `Secret "c1-proxy" exists, and is not the Cluster's: remove it` {
		t.Errorf("condition %+v", got)
	}
	l.must(l.Delete(t.Context(), s))
	again(0)
	if got := condition(t, l.pass(), ConditionProxy); !got.Ready {
		t.Errorf("condition %+v after the Secret is removed", got)
	}
}
