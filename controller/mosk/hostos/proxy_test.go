package hostos

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// statement H3: modules are loaded through the Proxy of the management cluster, and its
// refusal is the module's error. No status has the password.
func TestModulesAreLoadedThroughTheProxyOfTheManagementCluster(t *testing.T) {
	good, sum := archive(t, "level", "1.0.0", "")
	var asked []string
	refuse := false
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String()+" "+r.Header.Get("Proxy-Authorization"))
		if refuse {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(good)
	}))
	defer proxy.Close()
	named := func(name, proxy string, k *baremetalv1.KaaS) *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
		c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{Proxy: proxy, KaaS: k}
		return c
	}
	p := &kaasv1.Proxy{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "p"}}
	p.Spec.HTTPProxy = kaasv1.ProxyURL(strings.Replace(proxy.URL, "http://", "http://u:secretword@", 1))
	l := start(t, p, named("child", "none", nil), named("mgmt", "p", &baremetalv1.KaaS{Release: "kaas-1"}),
		list("m", kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: "http://modules.example/level.tgz"}))
	refuse = true
	o, _ := l.load(t, "m")
	if got := o.Status.Modules[0]; got.Error != `failed to perform request to fetch the module archive: Get "http://modules.example/level.tgz": Forbidden` {
		t.Errorf("status %+v", got)
	}
	refuse = false
	if o, _ = l.load(t, "m"); o.Status.Modules[0].State != kaasv1.ModuleAvailable {
		t.Errorf("status %+v", o.Status.Modules[0])
	}
	want := "http://modules.example/level.tgz Basic " + base64.StdEncoding.EncodeToString([]byte("u:secretword"))
	if len(asked) != 2 || asked[0] != want || asked[1] != want {
		t.Errorf("requests of the proxy %q, want %q twice", asked, want)
	}
	// A Proxy that is missing, and one that is away, are errors.
	broken := start(t, p, named("mgmt", "p", &baremetalv1.KaaS{Release: "kaas-1"}), list("m", kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: "http://modules.example/level.tgz"}))
	proxy.Close()
	if o, _ = broken.load(t, "m"); o.Status.Modules[0].State != kaasv1.ModuleError || strings.Contains(o.Status.Modules[0].Error, "secretword") {
		t.Errorf("status %+v", o.Status.Modules[0])
	}
	if err := broken.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if o, _ = broken.load(t, "m"); !strings.Contains(o.Status.Modules[0].Error, `Proxy lab/p of the management cluster: `) {
		t.Errorf("status %+v", o.Status.Modules[0])
	}
}
