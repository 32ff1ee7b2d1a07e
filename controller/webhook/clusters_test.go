package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
)

// The webhook asks about the Cluster as it would be, and passes the answer on.
func TestWebhookOfClusters(t *testing.T) {
	h := ClustersHandler(func(_ context.Context, after *clusterv1.Cluster) error {
		if release := after.Spec.ProviderSpec.Value.Release; release != "mosk-2" {
			return errors.New("no way to " + release)
		}
		return nil
	})
	for _, tt := range []struct{ object, want string }{
		{`{"spec": {"providerSpec": {"value": {"release": "mosk-2"}}}}`, ""},
		{`{"spec": {"providerSpec": {"value": {"release": "mosk-3"}}}}`, "no way to mosk-3"},
		{`{"spec": 1}`, "cannot unmarshal number"},
	} {
		body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": "1", "operation": admissionv1.Update, "object": json.RawMessage(tt.object),
		}})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, Clusters.Path, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		var answer admissionv1.AdmissionReview
		if err := json.NewDecoder(w.Body).Decode(&answer); err != nil || answer.Response == nil {
			t.Fatalf("%s: the webhook answered %+v, %v", tt.object, answer, err)
		}
		got := ""
		if answer.Response.Result != nil {
			got = answer.Response.Result.Message
		}
		if answer.Response.Allowed != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: allowed %t, %q, want %q", tt.object, answer.Response.Allowed, got, tt.want)
		}
	}
}
