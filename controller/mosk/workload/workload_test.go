package workload

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/breaker"
)

// kubeconfig has a server, and a user with the fields.
func kubeconfig(server, cluster, user string) string {
	return `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "` + server + `"` + cluster + `}}]
users: [{name: u, user: {` + user + `}}]
`
}

func TestKubeconfigsThatReachTheControllersAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"token", kubeconfig("https://192.0.2.1:6443", "", "token: t"), ""},
		{"certificate data", kubeconfig("https://192.0.2.1:6443", `, certificate-authority-data: ""`, `client-certificate-data: "", token: t`), ""},
		{"program", kubeconfig("https://192.0.2.1:6443", "", "exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"), `exec of user "u"`},
		{"plugin", kubeconfig("https://192.0.2.1:6443", "", "auth-provider: {name: gcp}"), `auth-provider of user "u"`},
		{"token file", kubeconfig("https://192.0.2.1:6443", "", "tokenFile: /var/run/secrets/token"), `tokenFile of user "u"`},
		{"key file", kubeconfig("https://192.0.2.1:6443", "", "client-key: /etc/key"), `client-key of user "u"`},
		{"CA file", kubeconfig("https://192.0.2.1:6443", ", certificate-authority: /etc/passwd", "token: t"), `certificate-authority of cluster "c"`},
		{"no TLS", kubeconfig("http://192.0.2.1:6443", "", "token: t"), `server "http://192.0.2.1:6443" of cluster "c": give an https URL`},
		{"no context", "apiVersion: v1\nkind: Config\n", `current-context "" is none of its contexts`},
		{"no cluster", strings.Replace(kubeconfig("https://192.0.2.1", "", "token: t"), "cluster: c,", "cluster: d,", 1), `there is no cluster "d"`},
		{"no user", strings.Replace(kubeconfig("https://192.0.2.1", "", "token: t"), "user: u}", "user: v}", 1), `there is no user "v"`},
		{"no YAML", "{", "Secret lab/s: kubeconfig: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(client.ObjectKey{Namespace: "lab", Name: "s"}, []byte(tt.text))
			if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, new(*SecretError)) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("parse() error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), lcmv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cluster := func(name, secret string) *lcmv1.LCMCluster {
		return &lcmv1.LCMCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Spec: lcmv1.LCMClusterSpec{KubeconfigSecretName: secret}}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster("shared", ""), cluster("own", "own-kubeconfig"), cluster("empty", "empty-kubeconfig"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "empty-kubeconfig"}}).Build()
	shared := API{Client: c, Config: &rest.Config{Host: "https://192.0.2.9"}}
	apis, err := New(c, c, scheme, shared)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name, want string) (out API) {
		t.Helper()
		out, err := apis.Of(t.Context(), "lab", name)
		if want == "" && err != nil || want != "" && (!errors.As(err, new(*SecretError)) || !strings.HasSuffix(err.Error(), want)) {
			t.Fatalf("Of(%s) error %v, want %q", name, err, want)
		}
		return out
	}
	for _, name := range []string{"shared", "none"} {
		if got := of(name, ""); got.Own || got.Config != shared.Config {
			t.Errorf("Of(%s) = %+v, want the shared API", name, got)
		}
	}
	of("empty", "Secret lab/empty-kubeconfig has no key kubeconfig: put the kubeconfig there")
	of("own", "Secret lab/own-kubeconfig does not exist yet: it has the kubeconfig, with the key kubeconfig")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: SecretName("own")}, Data: map[string][]byte{KubeconfigKey: []byte(kubeconfig("https://192.0.2.1:6443", "", "token: t"))}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	first := of("own", "")
	if !first.Own || first.Config.Host != "https://192.0.2.1:6443" || first.Config.BearerToken != "t" {
		t.Errorf("Of(own) = %+v", first.Config)
	}
	if again := of("own", ""); again.Client != first.Client {
		t.Error("Of(own) makes another client of the same kubeconfig")
	}
	secret.Data[KubeconfigKey] = []byte(kubeconfig("https://192.0.2.2:6443", "", "token: t"))
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if got := of("own", ""); got.Config.Host != "https://192.0.2.2:6443" {
		t.Errorf("after a change of the Secret: %s", got.Config.Host)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A server of a user that never answers holds neither the controllers nor Helm, which has clients of its own:
// package breaker has the rest.
func TestAPIThatNeverAnswersIsLeft(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), lcmv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&lcmv1.LCMCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "own"}, Spec: lcmv1.LCMClusterSpec{KubeconfigSecretName: "s"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s"}, Data: map[string][]byte{KubeconfigKey: []byte(kubeconfig("https://192.0.2.1:6443", "", "token: t"))}},
	).Build()
	apis, err := New(c, c, scheme, API{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	own, err := apis.Of(t.Context(), "lab", "own")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		through := rest.CopyConfig(own.Config).WrapTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}))
		for _, want := range []time.Duration{breaker.Limit, 0} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://192.0.2.1:6443/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if _, err := through.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "lab/own") || time.Since(start) != want {
				t.Errorf("a request took %s: %v, want %s and the cluster's name", time.Since(start), err, want)
			}
		}
	})
}

// The name of a Node does not tie it to a machine: the account that has registered it does, or the UID of
// the machine's host.
func TestNodesAreTiedToMachines(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), metal3.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	machine := func(namespace, name, host string) client.Object {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{clusterv1.BareMetalHostAnnotation: host}}}
	}
	host := func(namespace, name, uid, consumer string) client.Object {
		h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
		h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "cluster.k8s.io/v1alpha1", Kind: "Machine", Namespace: namespace, Name: consumer}
		return h
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		machine("a", "w-0", "a/h-0"), host("a", "h-0", "uid-0", "w-0"),
		machine("a", "w-1", "a/h-0"), // it names a host that is another Machine's
		machine("b", "w-0", "a/h-0"), // of another namespace
		machine("b", "w-2", "b/h-2"), host("b", "h-2", "", "w-2"),
	).Build()
	const agent, hostUID, nobody = "system:serviceaccount:a:w-0-lcm-agent", "metal3://uid-0", "is not known to be that of LCMMachine"
	for _, tt := range []struct {
		machine, account, provider string
		own                        bool
		want                       string // "" for tied
	}{
		{"a/w-0", agent, "", false, ""},
		{"a/w-0", agent, "", true, ""},
		{"b/w-0", agent, "", false, "Node w-0 is that of LCMMachine a/w-0: give one"},
		{"a/w-1", agent, "", false, "Node w-0 is that of LCMMachine a/w-0: give one"},
		{"a/w-1", agent, "", true, "Node w-0 is that of LCMMachine a/w-0: give one"},
		{"b/w-0", agent, hostUID, false, "Node w-0 is that of LCMMachine a/w-0: give one"},
		{"a/w-0", "", "", false, nobody},
		{"a/w-0", "", "", true, ""},
		{"a/w-0", "somebody", "", false, nobody},
		{"a/w-0", "somebody", "", true, ""},
		{"a/w-0", "system:serviceaccount:lab-nodes:w-0", "", false, nobody}, // an operator names those
		{"a/w-0", "system:serviceaccount:lab-nodes:w-0", "", true, ""},
		{"a/w-1", "system:serviceaccount:lab-nodes:w-0", "", true, "Node w-0 is that of the Machine w-0: give one"},
		{"a/w-0", "", hostUID, false, ""},
		{"a/w-0", "system:serviceaccount:lab-nodes:w-0", hostUID, false, ""},
		{"a/w-0", "", hostUID, true, ""},
		{"a/w-1", "", hostUID, false, nobody},
		{"a/w-1", "", hostUID, true, nobody},
		{"b/w-0", "", hostUID, false, nobody},
		{"b/w-2", "", "metal3://", false, nobody},
		{"b/none", "", hostUID, false, nobody},
		{"a/w-0", "", "cloud://uid-0", false, nobody},
		{"a/w-0", "", "cloud://uid-0", true, ""},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w-0", Annotations: map[string]string{nodeaccount.Annotation: tt.account}}}
		n.Spec.ProviderID = tt.provider
		namespace, name, _ := strings.Cut(tt.machine, "/")
		tie, err := TieOf(t.Context(), c, n, client.ObjectKey{Namespace: namespace, Name: name}, tt.own)
		if err != nil || (tie.Why == "") != (tt.want == "") || !strings.Contains(tie.Why, tt.want) || tie.Others != strings.HasPrefix(tt.want, "Node w-0 is that of") {
			t.Errorf("TieOf(Node of %q, %q, machine %s, own %t) = %+v, %v, want %q", tt.account, tt.provider, tt.machine, tt.own, tie, err, tt.want)
		}
	}
}
