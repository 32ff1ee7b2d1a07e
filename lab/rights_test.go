package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// account is the service account that the manifests create for the controller.
const (
	accountNamespace = "metalab-system"
	account          = "system:serviceaccount:" + accountNamespace + ":lab-controller"
)

// TestControllersWorkWithTheRightsOfTheManifests runs the controllers as the service
// account that they have in a cluster, with RBAC, from the registration of a host
// to its deletion.
func TestControllersWorkWithTheRightsOfTheManifests(t *testing.T) {
	w, admin := startWithoutControllers(t)
	grant(t, admin, "../controller/config")
	var refused refusals
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	as.Wrap(refused.watch)
	mustBeRefused(t, as)
	refused.list = nil
	t.Cleanup(func() { // also when something waits for what was refused
		refused.mu.Lock()
		defer refused.mu.Unlock()
		if refused.list != nil {
			t.Errorf("the service account was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
		}
	})

	health, metrics := freeAddress(t), freeAddress(t)
	end := runController(t, w, as, manager.Config{
		Agents: endpoint(t, "https"), Media: endpoint(t, "http"), Health: health, Metrics: metrics, ProtectLoopback: true,
	})
	status := live(t, w, admin)
	readStatus(t, w, admin, health, metrics)
	if status.HardwareDetails == nil {
		t.Error("the provisioned host has no hardware details: nothing was inspected")
	}
	standBy(t, w, as, end)
}

// readStatus reads the metrics and the health probes, which are protected, with and without
// the rights for that.
func readStatus(t *testing.T, l *Lab, admin client.Client, health, metrics string) {
	t.Helper()
	id, err := manager.Identity(t.Context(), admin, client.ObjectKey{Namespace: accountNamespace, Name: "lab-controller-identity"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(id.CA))
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer c.CloseIdleConnections()
	get := func(url, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	prometheus, other := newToken(t, l, admin, "prometheus"), newToken(t, l, admin, "other")
	bind := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lab-controller-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: "prometheus"}},
	}
	b, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bind)
	if err != nil {
		t.Fatal(err)
	}
	b["apiVersion"], b["kind"] = rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"
	if err := admin.Create(t.Context(), &unstructured.Unstructured{Object: b}); err != nil {
		t.Fatal(err)
	}
	patience.Await(t, "the account may read metrics", func() bool { code, _ := get("https://"+metrics+"/metrics", prometheus); return code == http.StatusOK })
	for _, tt := range []struct {
		url, token string
		want       int
	}{
		{"https://" + metrics + "/metrics", "", 401}, {"https://" + metrics + "/metrics", "guessed", 401}, {"https://" + metrics + "/metrics", other, 403},
		{"https://" + health + "/readyz", "", 401}, {"https://" + health + "/healthz", "guessed", 401}, {"https://" + health + "/healthz/serves", "", 401},
		{"https://" + health + "/readyz", other, 200}, {"https://" + health + "/healthz", prometheus, 200}, // as the API's own: system:public-info-viewer
	} {
		if code, text := get(tt.url, tt.token); code != tt.want || code != 200 && strings.Contains(text, "controller_runtime") {
			t.Errorf("GET %s with token %.9q = %d, want %d", tt.url, tt.token, code, tt.want)
		}
	}
	_, text := get("https://"+metrics+"/metrics", prometheus)
	for _, want := range []string{`metal3_provisioning_state_change_total{new_state="provisioned",prev_state="provisioning"} 1`, "controller_runtime_reconcile_total"} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics does not have %s", want)
		}
	}
	for _, address := range []string{metrics, health} {
		if resp, err := http.Get("http://" + address + "/metrics"); err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest { // net/http's answer to HTTP on a port for HTTPS
				t.Errorf("http://%s = %s, want HTTPS alone", address, resp.Status)
			}
		}
	}
}

// newToken creates a service account and returns a token of it.
func newToken(t *testing.T, l *Lab, admin client.Client, name string) string {
	t.Helper()
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": accountNamespace, "name": name},
	}}
	if err := admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	return tokenOf(t, l, name)
}

// tokenOf returns a token of a service account.
func tokenOf(t *testing.T, l *Lab, name string) string {
	t.Helper()
	clients, err := corev1client.NewForConfig(l.kube.api)
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.ServiceAccounts(accountNamespace).CreateToken(t.Context(), name, new(authenticationv1.TokenRequest), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// grant applies namespaces, service accounts and RBAC of the manifests in dir, as kubectl
// apply -k does.
func grant(t *testing.T, c client.Client, dir string) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize build: %v", err)
	}
	wanted := []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	for _, r := range built.Resources() {
		if !slices.Contains(wanted, r.GetKind()) {
			continue
		}
		m, err := r.Map()
		if err != nil {
			t.Fatal(err)
		}
		// A lab of a family may have the family's namespace, and the role of its charts, already.
		there := r.GetKind() == "Namespace" || r.GetName() == "lab-controller-charts"
		if err := c.Create(t.Context(), &unstructured.Unstructured{Object: m}); err != nil && !(there && apierrors.IsAlreadyExists(err)) {
			t.Fatalf("create %s %s: %v", r.GetKind(), r.GetName(), err)
		}
	}
}

// newClient returns a client with the kinds that the controllers use.
func newClient(t *testing.T, api *rest.Config) client.WithWatch {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(api, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mustBeRefused checks that RBAC is enforced.
func mustBeRefused(t *testing.T, api *rest.Config) {
	t.Helper()
	c := newClient(t, api)
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "of-a-user", Namespace: Namespace}}
	if err := c.Create(t.Context(), host); !apierrors.IsForbidden(err) {
		t.Fatalf("the service account makes a host: %v, want it forbidden", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "of-a-user", Namespace: Namespace}}
	if err := c.Delete(t.Context(), secret); !apierrors.IsForbidden(err) {
		t.Fatalf("the service account deletes a secret: %v, want it forbidden", err)
	}
}

// runController runs the controllers as lab-controller does, on the lab's clock. end
// stops them and returns when they have ended.
func runController(t *testing.T, l *Lab, api *rest.Config, cfg manager.Config) (end func()) {
	t.Helper()
	c := newClient(t, api)
	key := client.ObjectKey{Namespace: accountNamespace, Name: "lab-controller-identity"}
	id, err := manager.Identity(t.Context(), c, key, time.Now(), net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatalf("Identity: %v", err)
	}
	again, err := manager.Identity(t.Context(), c, key, time.Now(), net.IPv4(127, 0, 0, 1))
	if err != nil || again.CA != id.CA {
		t.Errorf("Identity again: %v, want the one that is kept", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	cfg.API, cfg.Identity, cfg.RootCAs, cfg.Log = api, id, l.bmcCAs(), logr.Discard()
	cfg.Clock, cfg.Enter = labClock{l.clock}, l.clock.Enter
	cfg.Election = &manager.Election{Namespace: accountNamespace, Name: "lab-controller", LeaseDuration: 3 * time.Second}
	set, err := manager.New(ctx, cfg)
	if err != nil {
		t.Fatalf("manager.New: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- set.Run(ctx) }()
	return sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// standBy runs a second controller process beside the leader, then ends the leader.
// The second is ready from the start, and serves agents when it leads.
func standBy(t *testing.T, l *Lab, api *rest.Config, endFirst func()) {
	t.Helper()
	health, agents, media := freeAddress(t), freeAddress(t), freeAddress(t)
	end := runController(t, l, api, manager.Config{
		Health: health,
		Agents: manager.Endpoint{URL: "https://" + agents, Address: agents},
		Media:  manager.Endpoint{URL: "http://" + media, Address: media},
	})
	answers := func() bool {
		conn, err := net.Dial("tcp", agents)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	patience.Await(t, "the second process is ready", func() bool {
		resp, err := http.Get("http://" + health + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	if answers() {
		t.Error("the second process serves agents while the first leads")
	}
	endFirst()
	patience.Await(t, "the second process serves agents", answers)
	end()
}

func endpoint(t *testing.T, scheme string) manager.Endpoint {
	t.Helper()
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return manager.Endpoint{URL: scheme + "://" + l.Addr().String(), Listener: l}
}

// freeAddress returns an address whose port was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// live provisions the only host, deprovisions it, inspects it by annotation and
// deletes it. It returns the status of the provisioned host.
func live(t *testing.T, l *Lab, c client.WithWatch) metal3.BareMetalHostStatus {
	t.Helper()
	secret, host := Objects(l.Hosts()[0])
	raw, url := "raw", l.ImagesURL()+DemoImage
	host.Spec.Image = &metal3.Image{URL: url, Checksum: url + ".sha256", ChecksumType: metal3.SHA256, DiskFormat: &raw}
	userData := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "user-data", Namespace: Namespace},
		StringData: map[string]string{"userData": "#cloud-config\n"},
	}
	host.Spec.UserData = &corev1.SecretReference{Name: userData.Name, Namespace: Namespace}
	if err := errors.Join(c.Create(t.Context(), secret), c.Create(t.Context(), userData), c.Create(t.Context(), host)); err != nil {
		t.Fatal(err)
	}
	in := func(want metal3.ProvisioningState) func(*metal3.BareMetalHost) bool {
		return func(h *metal3.BareMetalHost) bool { return h != nil && h.Status.Provisioning.State == want }
	}
	h := until(t, c, host.Name, in(metal3.StateProvisioned))
	provisioned := h.Status
	attach(t, c, h, l.ImagesURL()+DemoImage)
	change(t, c, h, func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	h = until(t, c, host.Name, in(metal3.StateAvailable))
	change(t, c, h, func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{metal3.InspectAnnotationPrefix: ""}
	})
	until(t, c, host.Name, func(h *metal3.BareMetalHost) bool {
		_, waits := h.Annotations[metal3.InspectAnnotationPrefix] // until the inspection begins
		return !waits && h.Status.Provisioning.State == metal3.StateAvailable
	})
	if err := c.Delete(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	until(t, c, host.Name, func(h *metal3.BareMetalHost) bool { return h == nil })
	return provisioned
}

// attach creates and deletes a DataImage and a BMCEventSubscription of a host, which
// have controllers of their own.
func attach(t *testing.T, c client.Client, h *metal3.BareMetalHost, url string) {
	t.Helper()
	image := &metal3.DataImage{
		ObjectMeta: metav1.ObjectMeta{Name: h.Name, Namespace: h.Namespace}, Spec: metal3.DataImageSpec{URL: url},
	}
	events := &metal3.BMCEventSubscription{
		ObjectMeta: metav1.ObjectMeta{Name: "events", Namespace: h.Namespace},
		Spec:       metal3.BMCEventSubscriptionSpec{HostName: h.Name, Destination: "https://127.0.0.1:1/events"},
	}
	for _, tt := range []struct {
		o    client.Object
		done func() bool
	}{
		{image, func() bool { return len(image.Finalizers) > 0 && len(image.OwnerReferences) > 0 }},
		{events, func() bool { return events.Status.SubscriptionID != "" }},
	} {
		if err := c.Create(t.Context(), tt.o); err != nil {
			t.Fatal(err)
		}
		patience.Await(t, fmt.Sprintf("%T is seen to", tt.o), func() bool {
			return c.Get(t.Context(), client.ObjectKeyFromObject(tt.o), tt.o) == nil && tt.done()
		}, tt.o)
		if err := c.Delete(t.Context(), tt.o); err != nil {
			t.Fatal(err)
		}
		patience.Await(t, fmt.Sprintf("%T is gone", tt.o), func() bool {
			return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(tt.o), tt.o))
		}, tt.o)
	}
}

func change(t *testing.T, c client.Client, h *metal3.BareMetalHost, how func(*metal3.BareMetalHost)) {
	t.Helper()
	before := h.DeepCopy()
	how(h)
	if err := c.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// until waits until ok accepts the host; nil when there is none.
func until(t *testing.T, c client.Client, name string, ok func(*metal3.BareMetalHost) bool) *metal3.BareMetalHost {
	t.Helper()
	var h *metal3.BareMetalHost
	err := patience.Until(t.Context(), patience.Limit(), func(ctx context.Context) (bool, string, error) {
		h = new(metal3.BareMetalHost)
		err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, h)
		if apierrors.IsNotFound(err) {
			return ok(nil), "no host", nil
		}
		return err == nil && ok(h), fmt.Sprintf("status %+v", h.Status), err
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return h
}

// refusals are the requests that the API has answered with 403.
type refusals struct {
	mu   sync.Mutex
	list []string
}

func (r *refusals) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusForbidden {
			r.mu.Lock()
			r.list = append(r.list, fmt.Sprintf("%s %s", req.Method, req.URL.Path))
			r.mu.Unlock()
		}
		return resp, err
	})
}
