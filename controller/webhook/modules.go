package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// Modules is the webhook of HostOSConfigurationModules, whose handler ModulesHandler
// returns. CEL sees no other object than the list: not those that use it, and no other list.
var Modules = Hook{File: "hostosconfigurationmodules.yaml", Path: "/validate-kaas-mirantis-com-v1alpha1-hostosconfigurationmodules"}

// ModulesHandler returns the HTTP handler of Modules. check returns why a list may not
// change this way; before has no modules when it is created, after is nil when it is deleted.
func ModulesHandler(check func(ctx context.Context, before, after *kaasv1.HostOSConfigurationModules) error) http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		before, after := new(kaasv1.HostOSConfigurationModules), (*kaasv1.HostOSConfigurationModules)(nil)
		var err error
		if req.Operation != admissionv1.Create {
			err = json.Unmarshal(req.OldObject.Raw, before)
		}
		if req.Operation != admissionv1.Delete && err == nil {
			after = new(kaasv1.HostOSConfigurationModules)
			err = json.Unmarshal(req.Object.Raw, after)
		}
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("webhook: %w", err))
		}
		if err := check(ctx, before, after); err != nil {
			return admission.Denied(err.Error())
		}
		return admission.Allowed("")
	})}
}
