// Package webhook owns what is refused of a BareMetalHost that no policy of
// controller/config can refuse: annotations whose JSON cannot be read. It serves
// the webhook and tells the cluster where. The texts are Metal3's (B-270).
//
// It refuses to know what the annotations bring about; see controller/host.
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

	"github.com/metalab-dev/metalab/controller/config"
)

// Path is where the webhook is served.
const Path = "/validate-metal3-io-v1alpha1-baremetalhost"

// fieldManager signs what Register writes.
const fieldManager = "metalab-controller"

// Handler serves the webhook at whatever path it is given.
func Handler() http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(review)}
}

// Register tells the cluster that the webhook is at base, the URL of a server
// whose certificate the PEM in ca vouches for. It may be repeated.
func Register(ctx context.Context, c client.Client, base, ca string) error {
	hook, err := config.Webhook(base+Path, ca)
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

// review answers a request for admission.
func review(_ context.Context, req admission.Request) admission.Response {
	if len(req.Object.Raw) == 0 { // a deletion is always allowed
		return admission.Allowed("")
	}
	// The annotations alone: a version of the type that this process does not
	// know must not keep anybody from storing it.
	var h struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(req.Object.Raw, &h); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("webhook: %w", err))
	}
	if err := utilerrors.NewAggregate(faults(h.Metadata.Annotations)); err != nil {
		return admission.Denied(err.Error())
	}
	return admission.Allowed("")
}

// faults are what is wrong with annotations, in the order of their names.
func faults(annotations map[string]string) []error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := annotations[key]
		check := checks[key]
		if strings.HasPrefix(key, metal3.RebootAnnotationPrefix+"/") {
			check = checks[metal3.RebootAnnotationPrefix]
		}
		if check == nil || value == "" {
			continue
		}
		if err := check(value); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// checks are what the value of an annotation must be, unless it is empty.
var checks = map[string]func(string) error{
	metal3.RebootAnnotationPrefix:    checkReboot,
	metal3.StatusAnnotation:          checkStatus,
	metal3.HardwareDetailsAnnotation: checkHardware,
}

func checkReboot(value string) error {
	var args metal3.RebootAnnotationArguments
	if err := json.Unmarshal([]byte(value), &args); err != nil {
		return fmt.Errorf("failed to unmarshal the data from the %s annotation: %w", metal3.RebootAnnotationPrefix, err)
	}
	switch args.Mode {
	case metal3.RebootModeHard, metal3.RebootModeSoft, "":
		return nil
	}
	return errors.New(`invalid mode in the ` + metal3.RebootAnnotationPrefix + ` annotation, allowed are "hard", "soft" or ""`)
}

// What the status may say beside what upstream's lists have: they leave out what
// its own controllers write.
var (
	statuses   = append(slices.Clone(metal3.OperationalStatusAllowed), string(metal3.OperationalStatusServicing))
	errorTypes = append(slices.Clone(metal3.ErrorTypeAllowed), string(metal3.DetachError), string(metal3.ServicingError))
)

func checkStatus(value string) error {
	var status metal3.BareMetalHostStatus
	if err := decodeStrictly(value, &status); err != nil {
		return fmt.Errorf("error decoding status annotation: %w", err)
	}
	if s := string(status.OperationalStatus); !slices.Contains(statuses, s) {
		return fmt.Errorf("invalid operationalStatus '%s' in the %s annotation", s, metal3.StatusAnnotation)
	}
	if s := string(status.ErrorType); !slices.Contains(errorTypes, s) {
		return fmt.Errorf("invalid errorType '%s' in the %s annotation", s, metal3.StatusAnnotation)
	}
	return nil
}

func checkHardware(value string) error {
	if err := decodeStrictly(value, new(metal3.HardwareDetails)); err != nil {
		return fmt.Errorf("error decoding the %s annotation: %w", metal3.HardwareDetailsAnnotation, err)
	}
	return nil
}

// decodeStrictly refuses fields that the type does not have.
func decodeStrictly(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
