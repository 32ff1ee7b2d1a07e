package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func host(ns, name string) *metal3.BareMetalHost {
	return &metal3.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec:       metal3.BareMetalHostSpec{Online: true, BMC: metal3.BMCDetails{Address: "redfish://127.64.0.1/redfish/v1/Systems/1"}},
	}
}

func TestReadyAfterStart(t *testing.T) {
	api := sharedAPI(t)
	cs, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := cs.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context()); err != nil || string(b) != "ok" {
		t.Errorf("/readyz = %q, %v, want ok", b, err)
	}
	v, err := cs.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`k8s.io/kubernetes (v\S+)`).FindSubmatch(mod)[1]
	if v.GitVersion != string(want)+"+metalab" {
		t.Errorf("server version = %s, want %s+metalab", v.GitVersion, want)
	}
	fi, err := os.Stat(api.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("mode of the kubeconfig = %s, want -rw-------", fi.Mode())
	}
}

// Objects of all nine kinds can be created as soon as Start returns, by a client whose
// mapper reads discovery.
func TestEveryKindIsServedAfterStart(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	meta := metav1.ObjectMeta{Name: "served", Namespace: freshNamespace(t, c)}
	for _, o := range []client.Object{
		&metal3.BareMetalHost{ObjectMeta: meta},
		&metal3.HostFirmwareSettings{ObjectMeta: meta, Spec: metal3.HostFirmwareSettingsSpec{Settings: metal3.DesiredSettingsMap{}}},
		&metal3.FirmwareSchema{ObjectMeta: meta, Spec: metal3.FirmwareSchemaSpec{Schema: map[string]metal3.SettingSchema{}}},
		&metal3.HostFirmwareComponents{ObjectMeta: meta, Spec: metal3.HostFirmwareComponentsSpec{Updates: []metal3.FirmwareUpdate{}}},
		&metal3.HostUpdatePolicy{ObjectMeta: meta},
		&metal3.HardwareData{ObjectMeta: meta},
		&metal3.DataImage{ObjectMeta: meta, Spec: metal3.DataImageSpec{URL: "http://192.0.2.1/a.iso"}},
		&metal3.PreprovisioningImage{ObjectMeta: meta},
		&metal3.BMCEventSubscription{ObjectMeta: meta, Spec: metal3.BMCEventSubscriptionSpec{HostName: "served", Destination: "https://192.0.2.1/"}},
	} {
		create(t, c, o)
	}
}

func TestDetachErrorReachesStatus(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	h := host(freshNamespace(t, c), "detached")
	create(t, c, h)

	patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {
		"operationalStatus": "error", "errorType": "detach error", "errorMessage": "the BMC does not answer", "errorCount": 1,
		"hardwareProfile": "", "poweredOn": false, "provisioning": {"state": "deprovisioning", "ID": "", "image": {"url": ""}}}}`))
	if err := c.Status().Patch(t.Context(), h, patch); err != nil {
		t.Fatalf("Patch(status) error = %v, want none", err)
	}
	got := new(metal3.BareMetalHost)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(h), got); err != nil {
		t.Fatal(err)
	}
	if got.Status.ErrorType != metal3.DetachError {
		t.Errorf("errorType = %q, want %q", got.Status.ErrorType, metal3.DetachError)
	}

	before := got.DeepCopy()
	got.Status.ErrorType = "bad mood"
	if err := c.Status().Patch(t.Context(), got, client.MergeFrom(before)); !apierrors.IsInvalid(err) {
		t.Errorf("Patch(status, bad mood) error = %v, want Invalid", err)
	}
}

func TestDependentOfADeletedOwnerIsDeleted(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	ns := freshNamespace(t, c)
	owner := host(ns, "owner")
	create(t, c, owner)
	dependent := configMap(ns, "dependent")
	dependent.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, metal3.GroupVersion.WithKind("BareMetalHost"))}
	create(t, c, dependent)
	if err := c.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	eventually(t, "deletion of a config map whose owner was deleted", notFound(c, dependent))
}

func TestNamespaceDeletionFinishes(t *testing.T) {
	t.Parallel()
	c := clientFor(t, sharedAPI(t).RESTConfig())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: freshNamespace(t, c)}}
	eventually(t, "default service account of a new namespace", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "default"}, new(corev1.ServiceAccount))
		return err == nil, client.IgnoreNotFound(err)
	})
	create(t, c, host(ns.Name, "inhabitant"), configMap(ns.Name, "inhabitant"))
	if err := c.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, "deletion of a namespace with content", notFound(c, ns))
}

// notFound reports whether o does not exist.
func notFound(c client.Client, o client.Object) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
}

// A token authenticates as soon as its account exists, though the server's cache is late.
func TestTokensOfNewAccountsAuthenticate(t *testing.T) {
	api := sharedAPI(t)
	admin, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ns := freshNamespace(t, clientFor(t, api.RESTConfig()))
	for i := range 100 {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("agent-%d", i)}}
		if _, err := admin.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		token, err := admin.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account.Name, new(authenticationv1.TokenRequest), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := rest.AnonymousClientConfig(api.RESTConfig())
		c.BearerToken = token.Status.Token
		agent, err := kubernetes.NewForConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agent.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), new(authenticationv1.SelfSubjectReview), metav1.CreateOptions{}); err != nil {
			t.Fatalf("token %d: %v", i, err)
		}
	}
}

// A token of a service account authenticates as it, and has only the rights that RBAC
// gives.
func TestServiceAccountTokenHasTheAccountsRights(t *testing.T) {
	api := sharedAPI(t)
	admin, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ns := freshNamespace(t, clientFor(t, api.RESTConfig()))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
	if _, err := admin.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := admin.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "agent", new(authenticationv1.TokenRequest), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := rest.AnonymousClientConfig(api.RESTConfig())
	c.BearerToken = token.Status.Token
	agent, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	me, err := agent.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), new(authenticationv1.SelfSubjectReview), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := me.Status.UserInfo.Username, "system:serviceaccount:"+ns+":agent"; got != want {
		t.Errorf("user of the token = %s, want %s", got, want)
	}
	if _, err := agent.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("List(secrets) of an account without rights: error = %v, want Forbidden", err)
	}
	anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(api.RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anonymous.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("List(secrets) without authentication: error = %v, want Forbidden", err)
	}
}

// A second Install writes nothing, and leaves the labels of somebody else.
func TestSecondInstallChangesNothing(t *testing.T) {
	api := sharedAPI(t)
	crds := func() map[string]string {
		list := new(metav1.PartialObjectMetadataList)
		list.SetGroupVersionKind(crdKind)
		if err := clientFor(t, api.RESTConfig()).List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, o := range list.Items {
			if strings.HasSuffix(o.Name, ".metal3.io") { // other tests install definitions, too
				out[o.Name] = o.ResourceVersion + " " + o.Labels["site"]
			}
		}
		return out
	}
	c := clientFor(t, api.RESTConfig())
	theirs := new(metav1.PartialObjectMetadata)
	theirs.SetGroupVersionKind(crdKind)
	theirs.Name = "hardwaredata.metal3.io"
	if err := c.Patch(t.Context(), theirs, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"site":"r1"}}}`))); err != nil {
		t.Fatal(err)
	}
	before := crds()
	if err := Install(t.Context(), api.RESTConfig()); err != nil {
		t.Fatalf("Install() error = %v, want none", err)
	}
	after := crds()
	if len(after) != 9 {
		t.Errorf("%d definitions, want 9", len(after))
	}
	for name := range before {
		if after[name] != before[name] {
			t.Errorf("%s: version and label after Install = %s, want %s", name, after[name], before[name])
		}
	}
}

func TestInstallErrorNamesTheDefinition(t *testing.T) {
	c := sharedAPI(t).RESTConfig()
	err := Install(t.Context(), rest.AnonymousClientConfig(c))
	if !apierrors.IsForbidden(errors.Unwrap(err)) || !strings.HasPrefix(err.Error(), "install baremetalhosts.metal3.io: ") {
		t.Errorf("Install without authentication: error = %v, want Forbidden", err)
	}
}

var crdKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
