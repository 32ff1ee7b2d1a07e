package lab

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/smalldisk"
)

// A full disk ends neither the BMCs nor the Kubernetes API: both answer, refuse requests
// that change something, and go on when there is space again.
func TestLabOnAFullDisk(t *testing.T) {
	prerequisites.Need(t, "small file system")
	smalldisk.Run(t, 256<<20, func(dir string) {
		w, err := Start(t.Context(), Config{Dir: dir, Settings: Settings{Hosts: 1, Speed: "60x", Kube: true}, Listen: AnyPort})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := w.Stop(); err != nil {
				t.Error(err)
			}
		}()
		api, err := w.Kubernetes()
		if err != nil {
			t.Fatal(err)
		}
		create := func(name string) error {
			return api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		}
		if err := create("before"); err != nil {
			t.Fatal(err)
		}
		host := w.Hosts()[0]
		hc := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.Rack().CAs(), MinVersion: tls.VersionTLS12}}}
		defer hc.CloseIdleConnections()
		call := func(method, body string) (int, string) {
			req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(host.Redfish, "/")+"/Systems/1", bytes.NewBufferString(body))
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth(host.Username, host.Password)
			req.Header.Set("Content-Type", "application/json")
			resp, err := hc.Do(req)
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

		empty := smalldisk.Fill(t, dir, 0)
		patience.Await(t, "the lab notices", func() bool { return w.Rack().Storage() != nil })
		if code, body := call("PATCH", `{"AssetTag":"later"}`); code != http.StatusInsufficientStorage {
			t.Errorf("PATCH = %d, want 507: %s", code, body)
		}
		if code, body := call("GET", ""); code != http.StatusOK {
			t.Errorf("GET = %d: %s", code, body)
		}
		if err := create("later"); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("Create() = %v, want that no space is left", err)
		}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "before"}, new(corev1.ConfigMap)); err != nil {
			t.Errorf("Get() = %v", err)
		}
		if st, err := w.Control().Status(t.Context()); err != nil || !strings.Contains(st.Storage, "no space left") || !strings.Contains(st.Storage, "needed") {
			t.Errorf("Status() has %q, %v", st.Storage, err)
		}

		empty()
		var failed error
		patience.Await(t, "there is space", func() bool { failed = w.Rack().Storage(); return failed == nil }, &failed)
		if code, body := call("PATCH", `{"AssetTag":"later"}`); code >= 300 {
			t.Errorf("PATCH with space = %d: %s", code, body)
		}
		if err := create("later"); err != nil {
			t.Errorf("Create() with space = %v", err)
		}
	})
}

// A lab for which there is too little space is refused before it writes anything.
func TestStartWithoutSpaceIsRefused(t *testing.T) {
	prerequisites.Need(t, "small file system")
	smalldisk.Run(t, 20<<20, func(dir string) {
		w, err := Start(t.Context(), Config{Dir: dir, Settings: Settings{Hosts: 1, Speed: "60x", Kube: true}, Listen: AnyPort})
		if err == nil {
			t.Fatalf("Start() works, and Stop() = %v", w.Stop())
		}
		for _, want := range []string{"no space left on the file system of " + dir, "are needed", "--state"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Start() = %v, want %q in it", err, want)
			}
		}
	})
}
