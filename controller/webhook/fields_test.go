package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
)

// The webhook passes the handler's message on as a warning, and allows every object.
func TestWebhookWarnsOfFields(t *testing.T) {
	h := FieldsHandler(func(kind string, object any) string {
		spec, _ := object.(map[string]any)["spec"].(map[string]any)
		if kind == "Proxy" && spec["caCertificate"] != nil {
			return "nothing acts on spec.caCertificate"
		}
		return ""
	})
	for _, tt := range []struct {
		kind, object string
		want         []string
	}{
		{"Proxy", `{"spec":{"caCertificate":"x"}}`, []string{"nothing acts on spec.caCertificate"}},
		{"Proxy", `{"spec":{}}`, nil},
		{"Subnet", `{"spec":{"caCertificate":"x"}}`, nil},
	} {
		body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","kind":{"kind":%q},"object":%s}}`, tt.kind, tt.object)
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, Fields.Path, bytes.NewReader([]byte(body)))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		var answer admissionv1.AdmissionReview
		if err := json.NewDecoder(w.Body).Decode(&answer); err != nil || answer.Response == nil || !answer.Response.Allowed {
			t.Fatalf("%s %s: %+v, %v", tt.kind, tt.object, answer.Response, err)
		}
		if diff := cmp.Diff(tt.want, answer.Response.Warnings); diff != "" {
			t.Errorf("%s %s: warnings (-want +got):\n%s", tt.kind, tt.object, diff)
		}
	}
}
