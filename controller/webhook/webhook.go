// Package webhook serves the validating admission webhooks and registers them with the
// cluster: what the CEL policies of controller/config cannot decide. That for BareMetalHosts
// refuses annotations whose JSON is invalid; the messages are Metal3's (B-270). It warns of fields
// of their JSON that this release does not know. That for
// HostOSConfigurationModules asks whether modules are used, and that for Clusters whether
// there is an upgrade to a release; one more warns of fields that nothing acts on.
//
// The package does not act on the annotations: controller/metal3/host does. It does not know what
// uses a module, or which releases follow: controller/mosk/hostos and controller/mosk/provider do.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/metalab-dev/metalab/controller/config"
)

// Hook is a webhook: the file of its configuration in controller/config, and its URL path.
type Hook struct{ File, Path string }

// Hosts is the webhook of BareMetalHosts, whose handler Handler returns.
var Hosts = Hook{File: "baremetalhost.yaml", Path: "/validate-metal3-io-v1alpha1-baremetalhost"}

// fieldManager is the field manager of the objects that Register applies.
const fieldManager = "metalab-controller"

// Handler returns the HTTP handler of Hosts. It answers on any path.
func Handler() http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(review)}
}

// Register applies a webhook's configuration to the cluster: the API server calls
// the webhook at its path under the URL base for the objects of these namespaces, or of all
// when none is named, and trusts the certificate authority whose PEM is ca. A repeated call
// replaces the address and the namespaces.
func Register(ctx context.Context, c client.Client, h Hook, base, ca string, namespaces ...string) error {
	hook, err := config.Webhook(h.File, base+h.Path, ca, namespaces...)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hook)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	object["apiVersion"], object["kind"] = admissionv1.SchemeGroupVersion.String(), "ValidatingWebhookConfiguration"
	b, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	err = c.Patch(ctx, hook, client.RawPatch(types.ApplyPatchType, b), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("webhook: register: %w", err)
	}
	return nil
}

// review answers an admission request.
func review(_ context.Context, req admission.Request) admission.Response {
	if len(req.Object.Raw) == 0 { // a deletion is always allowed
		return admission.Allowed("")
	}
	// Only the annotations are decoded, so that an object with fields that this
	// version does not know can still be stored.
	var h struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(req.Object.Raw, &h); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("webhook: %w", err))
	}
	warnings, errs := validate(h.Metadata.Annotations)
	if err := utilerrors.NewAggregate(errs); err != nil {
		return admission.Denied(err.Error())
	}
	return admission.Allowed("").WithWarnings(warnings...)
}

// validate returns one warning per annotation with unknown fields, and one error per
// invalid annotation, in the order of their keys.
func validate(annotations map[string]string) (warnings []string, errs []error) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := annotations[key]
		check := checks[key]
		if strings.HasPrefix(key, metal3.RebootAnnotationPrefix+"/") {
			check = checks[metal3.RebootAnnotationPrefix]
		}
		if check == nil || value == "" {
			continue
		}
		unknown, err := check(value)
		if err != nil {
			errs = append(errs, err)
		}
		if len(unknown) > 0 { // in one line: the API drops a warning of several without a word
			warnings = append(warnings, fmt.Sprintf("ignored in the annotation %s: %v", key, utilerrors.NewAggregate(unknown)))
		}
	}
	return warnings, errs
}

// checks validate the value of an annotation, by its key, unless the value is empty.
// They also return an error per field that this release does not know, which refuses
// nothing: the object may come from a cluster of a later release, and the controller
// ignores such fields.
var checks = map[string]func(string) (unknown []error, err error){
	metal3.RebootAnnotationPrefix:    checkReboot,
	metal3.StatusAnnotation:          checkStatus,
	metal3.HardwareDetailsAnnotation: checkHardware,
}

func checkReboot(value string) (unknown []error, err error) {
	var args metal3.RebootAnnotationArguments
	if err := json.Unmarshal([]byte(value), &args); err != nil {
		return nil, fmt.Errorf("failed to unmarshal the data from the %s annotation: %w", metal3.RebootAnnotationPrefix, err)
	}
	switch args.Mode {
	case metal3.RebootModeHard, metal3.RebootModeSoft, "":
		return nil, nil
	}
	return nil, errors.New(`invalid mode in the ` + metal3.RebootAnnotationPrefix + ` annotation, allowed are "hard", "soft" or ""`)
}

// The values that the status annotation may have: upstream's lists, plus the values
// that upstream's own controllers write but its lists omit.
var (
	statuses   = append(slices.Clone(metal3.OperationalStatusAllowed), string(metal3.OperationalStatusServicing))
	errorTypes = append(slices.Clone(metal3.ErrorTypeAllowed), string(metal3.DetachError), string(metal3.ServicingError))
)

func checkStatus(value string) (unknown []error, err error) {
	var status metal3.BareMetalHostStatus
	if unknown, err = kjson.UnmarshalStrict([]byte(value), &status); err != nil {
		return nil, fmt.Errorf("error decoding status annotation: %w", err)
	}
	if s := string(status.OperationalStatus); !slices.Contains(statuses, s) {
		return unknown, fmt.Errorf("invalid operationalStatus '%s' in the %s annotation", s, metal3.StatusAnnotation)
	}
	if s := string(status.ErrorType); !slices.Contains(errorTypes, s) {
		return unknown, fmt.Errorf("invalid errorType '%s' in the %s annotation", s, metal3.StatusAnnotation)
	}
	return unknown, nil
}

func checkHardware(value string) (unknown []error, err error) {
	if unknown, err = kjson.UnmarshalStrict([]byte(value), new(metal3.HardwareDetails)); err != nil {
		return nil, fmt.Errorf("error decoding the %s annotation: %w", metal3.HardwareDetailsAnnotation, err)
	}
	return unknown, nil
}
