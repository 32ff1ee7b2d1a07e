package firmware

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// The conditions of both kinds of objects, and their reasons (B-203, B-211).
const (
	changeDetected = string(metal3.FirmwareSettingsChangeDetected)
	valid          = string(metal3.FirmwareSettingsValid)

	reasonSuccess       = "Success"
	reasonConfiguration = "ConfigurationError"
	reasonOK            = "OK"
	reasonComponent     = "InvalidComponent"
)

// isObserved reports whether the conditions are about a generation (B-54).
func isObserved(conditions []metav1.Condition, generation int64) bool {
	for _, kind := range []string{changeDetected, valid} {
		if c := meta.FindStatusCondition(conditions, kind); c == nil || c.ObservedGeneration != generation {
			return false
		}
	}
	return true
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

// isChangePending reports whether an object asks for a valid change.
func isChangePending(conditions []metav1.Condition) bool {
	return isTrue(conditions, changeDetected) && isTrue(conditions, valid)
}

// setCondition sets a condition.
func setCondition(conditions *[]metav1.Condition, kind string, holds bool, generation int64, reason, message string) {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, ObservedGeneration: generation, Reason: reason, Message: message,
	})
}

// ensureSettings returns the HostFirmwareSettings of a host. It creates one for
// every registered host, and adopts one that a user has created (B-04, B-43,
// B-200).
func (r *Reconciler) ensureSettings(ctx context.Context, h *metal3.BareMetalHost) (*metal3.HostFirmwareSettings, error) {
	var hfs metal3.HostFirmwareSettings
	err := r.read.Get(ctx, client.ObjectKeyFromObject(h), &hfs)
	if err == nil {
		return &hfs, r.control(ctx, h, &hfs)
	}
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	hfs = metal3.HostFirmwareSettings{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name},
		Spec:       metal3.HostFirmwareSettingsSpec{Settings: metal3.DesiredSettingsMap{}},
	}
	if err := controllerutil.SetControllerReference(h, &hfs, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("firmware: settings of %s: %w", h.Name, err)
	}
	if err := r.Client.Create(ctx, &hfs); err != nil {
		return nil, err
	}
	r.read.Wrote(&hfs)
	return &hfs, nil
}

// refreshSettings reads the settings of a host, and reports in the status whether
// the specification differs from them and is valid.
func (r *Reconciler) refreshSettings(ctx context.Context, h *metal3.BareMetalHost, hfs *metal3.HostFirmwareSettings, c bmc.Client) error {
	s, err := setup(c)
	var b bmc.BIOS
	if err == nil {
		b, err = s.BIOS(ctx)
	}
	if err != nil && !unsupported(err) {
		return err
	}
	status := hfs.Status.DeepCopy()
	var govern *schema
	if err == nil && len(b.Settings) > 0 {
		govern = r.schemas.forBIOS(b)
		if err := r.addSchemaOwner(ctx, h, hfs, govern, c); err != nil {
			return err
		}
		status.FirmwareSchema = &metal3.SchemaReference{Namespace: hfs.Namespace, Name: govern.name}
	}
	status.Settings = make(metal3.SettingsMap, len(b.Settings))
	for name, v := range b.Settings {
		if !isPassword(name) {
			status.Settings[name] = bmc.FormatValue(v)
		}
	}
	bad := setConditions(hfs, status, b, govern)
	if equality.Semantic.DeepEqual(&hfs.Status, status) {
		return nil
	}
	fresh := !isObserved(hfs.Status.Conditions, hfs.Generation) || isTrue(hfs.Status.Conditions, valid) == (len(bad) > 0)
	wanted := isChangePending(status.Conditions)
	was := hfs.Status.FirmwareSchema
	now := r.now()
	status.LastUpdated = &now
	hfs.Status = *status
	if err := r.updateStatus(ctx, hfs); err != nil {
		return err
	}
	if fresh && len(status.Settings) > 0 {
		for _, err := range bad {
			r.publish(ctx, hfs, "HostFirmwareSettings", "hostfirmwaresettings", "Invalid BIOS setting: "+err.Error())
		}
	}
	if was != nil && govern != nil && was.Name != govern.name {
		if err := r.leaveSchema(ctx, hfs, was); err != nil {
			return err
		}
	}
	if wanted || fresh {
		r.Changed(string(h.UID))
	}
	return nil
}

// setConditions sets the conditions of an updated status. It returns the errors of
// the specification (B-203).
func setConditions(hfs *metal3.HostFirmwareSettings, status *metal3.HostFirmwareSettingsStatus, b bmc.BIOS, s *schema) []error {
	differs := len(changedSettings(hfs.Spec.Settings, b)) > 0
	for name := range hfs.Spec.Settings {
		differs = differs || isPassword(name)
	}
	var bad []error
	if differs {
		bad = validate(hfs.Spec.Settings, b, s)
	}
	setCondition(&status.Conditions, changeDetected, differs, hfs.Generation, reasonSuccess, "")
	if len(bad) > 0 {
		setCondition(&status.Conditions, valid, false, hfs.Generation, reasonConfiguration, "Invalid BIOS setting")
	} else {
		setCondition(&status.Conditions, valid, true, hfs.Generation, reasonSuccess, "")
	}
	return bad
}

// publish publishes an event about an invalid specification (B-204, B-281).
func (r *Reconciler) publish(ctx context.Context, o client.Object, kind, from, message string) {
	const reason = "ValidationFailed"
	now := r.now()
	ev := corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: reason + "-", Namespace: o.GetNamespace()},
		InvolvedObject: corev1.ObjectReference{
			Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), APIVersion: metal3.GroupVersion.String(),
		},
		Reason: reason, Message: message, Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source:              corev1.EventSource{Component: "metal3-" + from + "-controller"},
		ReportingController: "metal3.io/" + from + "-controller",
	}
	r.events.Publish(ctx, ev)
}
