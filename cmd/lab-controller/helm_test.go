package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The Helm controller of one cluster needs no address that servers reach, and an election by the
// Lease of its Cluster.
func TestHelmControllerOfACluster(t *testing.T) {
	name := file(t, kubeconfig)
	o, err := parse(t, "--controllers=helm", "--helm-bundle=lab/c1", "--kubeconfig="+name, "--helm-target="+name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.config(t.Context(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if want := (client.ObjectKey{Namespace: "lab", Name: "c1"}); c.Helm == nil || c.Helm.Bundle != want || c.Helm.Target == nil {
		t.Errorf("the controller of %+v, want of %s", c.Helm, want)
	}
	if e := c.Election; e == nil || e.Namespace != "lab" || e.Name != "c1-helm-controller" || e.LeaseDuration != o.leaseDuration {
		t.Errorf("election %+v", e)
	}
	for _, tt := range []struct{ args, want string }{
		{"--helm-bundle=c1 --controllers=helm", `--helm-bundle "c1": use NAMESPACE/NAME`},
		{"--helm-bundle=lab/c1", "--helm-bundle needs --controllers=helm"},
		{"--helm-bundle=lab/c1 --controllers=helm,lcm", "--helm-bundle needs --controllers=helm, and has helm,lcm"},
		{"--helm-bundle=lab/c1 --controllers=helm --leader-elect=false", "remove --leader-elect=false"},
		{"--helm-bundle=lab/c1 --controllers=helm --metrics-address=:8085", "--metrics-address :8085: with --helm-bundle use an address of loopback"},
		{"--helm-bundle=lab/c1 --controllers=helm --health-address=[::]:8085", "--health-address [::]:8085: with --helm-bundle use an address of loopback"},
		{"--helm-bundle=lab/c1 --controllers=helm --provisioning-address=192.0.2.5", "--helm-bundle: remove --provisioning-address"},
		{"--helm-bundle=lab/c1 --controllers=helm --watch-namespaces=lab", "--helm-bundle: remove --watch-namespaces"},
		{"--controllers=helm", "--provisioning-address is missing"},
		{"--helm-target=x --provisioning-address=192.0.2.5", "--helm-target needs --helm-bundle"},
	} {
		if _, err := parse(t, strings.Fields(tt.args)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("lab-controller %s: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// probe succeeds when the process of the pod answers 200.
func TestProbe(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	address := strings.TrimPrefix(s.URL, "http://")
	for args, want := range map[string]string{
		"healthz": "", "readyz": "500 Internal Server Error", "": "probe takes healthz or readyz", "livez": "probe takes healthz or readyz",
	} {
		_, err := parse(t, append([]string{"probe", "--health-address=" + address}, strings.Fields(args)...)...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("probe %s: %v, want %q", args, err, want)
		}
	}
	s.Close()
	if _, err := parse(t, "probe", "--health-address="+address, "healthz"); err == nil {
		t.Error("probe succeeds where nobody listens")
	}
}
