package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A demand to refuse unknown fields becomes one for warnings, for some resources.
func TestUnknownFieldsAreTolerated(t *testing.T) {
	got := ""
	h := tolerateUnknown(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.RawQuery }))
	for _, tt := range []struct{ path, query, want string }{
		{"/apis/ipam.mirantis.com/v1alpha1/namespaces/lab/l2templates", "fieldManager=kubectl&fieldValidation=Strict", "fieldManager=kubectl&fieldValidation=Warn"},
		{"/apis/ipam.mirantis.com/v1alpha1/namespaces/lab/l2templates/a", "fieldValidation=Strict", "fieldValidation=Warn"},
		{"/apis/kaas.mirantis.com/v1alpha1/clusterreleases", "fieldValidation=Strict", "fieldValidation=Warn"},
		{"/apis/ipam.mirantis.com/v1alpha1/namespaces/lab/l2templates", "fieldValidation=Ignore", "fieldValidation=Ignore"},
		{"/apis/ipam.mirantis.com/v1alpha1/namespaces/lab/l2templates", "", ""},
		{"/apis/cluster.k8s.io/v1alpha1/namespaces/lab/machines", "fieldValidation=Strict", "fieldValidation=Strict"},
		{"/apis/kaas.mirantis.com/v1alpha1/namespaces/lab/gracefulrebootrequests", "fieldValidation=Strict", "fieldValidation=Strict"},
		{"/apis/metal3.io/v1alpha1/namespaces/l2templates/baremetalhosts", "fieldValidation=Strict", "fieldValidation=Strict"},
		{"/api/v1/namespaces/lab/pods", "fieldValidation=Strict", "fieldValidation=Strict"},
		{"/apis", "fieldValidation=Strict", "fieldValidation=Strict"},
	} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, tt.path+"?"+tt.query, nil))
		if got != tt.want {
			t.Errorf("%s?%s: %q, want %q", tt.path, tt.query, got, tt.want)
		}
	}
}
