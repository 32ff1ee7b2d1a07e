package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Fields is the webhook that warns of fields that nothing acts on. Its handler is
// FieldsHandler. It refuses no object.
var Fields = Hook{File: "fields.yaml", Path: "/warn-fields"}

// FieldsHandler returns the HTTP handler of Fields. message returns what to warn of in an object of
// a kind, as JSON has it; "" for nothing.
func FieldsHandler(message func(kind string, object any) string) http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		var object any
		if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("webhook: %w", err))
		}
		if text := message(req.Kind.Kind, object); text != "" {
			return admission.Allowed("").WithWarnings(text)
		}
		return admission.Allowed("")
	})}
}
