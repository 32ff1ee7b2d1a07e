package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// The webhook asks about the lists before and after, and passes the answer on.
func TestWebhookOfModules(t *testing.T) {
	list := func(n int) []byte {
		o := kaasv1.HostOSConfigurationModules{Spec: kaasv1.HostOSConfigurationModulesSpec{Modules: make([]kaasv1.Module, n)}}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	h := ModulesHandler(func(_ context.Context, before, after *kaasv1.HostOSConfigurationModules) error {
		if after == nil {
			return errors.New("deleted")
		}
		if len(after.Spec.Modules) < len(before.Spec.Modules) {
			return fmt.Errorf("from %d to %d", len(before.Spec.Modules), len(after.Spec.Modules))
		}
		return nil
	})
	for _, tt := range []struct {
		op       admissionv1.Operation
		old, new []byte
		want     string
	}{
		{admissionv1.Create, []byte("null"), list(2), ""},
		{admissionv1.Update, list(2), list(2), ""},
		{admissionv1.Update, list(2), list(1), "from 2 to 1"},
		{admissionv1.Delete, list(2), []byte("null"), "deleted"},
		{admissionv1.Update, list(2), []byte(`[]`), "cannot unmarshal array"},
	} {
		body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": "1", "operation": tt.op, "oldObject": json.RawMessage(tt.old), "object": json.RawMessage(tt.new),
		}})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, Modules.Path, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		var answer admissionv1.AdmissionReview
		if err := json.NewDecoder(w.Body).Decode(&answer); err != nil || answer.Response == nil {
			t.Fatalf("%s: the webhook answered %+v, %v", tt.op, answer, err)
		}
		got := ""
		if answer.Response.Result != nil {
			got = answer.Response.Result.Message
		}
		if answer.Response.Allowed != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s of %.20s: allowed %t, %q, want %q", tt.op, tt.new, answer.Response.Allowed, got, tt.want)
		}
	}
}
