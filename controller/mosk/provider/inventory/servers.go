package inventory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/unmanaged"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// servers reconciles BareMetalHostInventories.
type servers struct{ Config }

// Reconcile implements reconcile.Reconciler for a BareMetalHostInventory.
func (r *servers) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error {
		var i kaasv1.BareMetalHostInventory
		if err := r.Client.Get(ctx, req.NamespacedName, &i); err != nil {
			return queue.Deleted(err)
		}
		if err := r.reconcile(ctx, &i); err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		return nil
	})
}

func (r *servers) reconcile(ctx context.Context, i *kaasv1.BareMetalHostInventory) error {
	if message := unmanaged.Message(i, Finalizer); message != "" {
		before := i.DeepCopy()
		i.Status.ErrorMessage = message
		return r.patchStatus(ctx, before, i)
	}
	h := new(metal3.BareMetalHost)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(i), h); apierrors.IsNotFound(err) {
		h = nil
	} else if err != nil {
		return fmt.Errorf("BareMetalHost: %w", err)
	}
	if !i.DeletionTimestamp.IsZero() {
		return r.remove(ctx, i, h)
	}
	problem, err := r.write(ctx, i, h)
	if err != nil {
		return err
	}
	return r.record(ctx, i, h, problem)
}

// write writes the inventory's spec to the BareMetalHost. It returns what the user has
// to correct before that is possible.
func (r *servers) write(ctx context.Context, i *kaasv1.BareMetalHostInventory, h *metal3.BareMetalHost) (problem string, err error) {
	if h != nil && !metav1.IsControlledBy(h, i) {
		return fmt.Sprintf("BareMetalHost %q exists, and is not the inventory's: remove it", h.Name), nil
	}
	secret, problem, err := r.account(ctx, i)
	if err != nil || problem != "" || secret == "" {
		return problem, err
	}
	if before := i.DeepCopy(); controllerutil.AddFinalizer(i, Finalizer) {
		if err := r.patch(ctx, before, i); err != nil {
			return "", err
		}
	}
	if h == nil {
		h = &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{
			Namespace: i.Namespace, Name: i.Name, Labels: maps.Clone(i.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(i, kaasv1.GroupVersion.WithKind("BareMetalHostInventory"))},
		}, Spec: wanted(i, secret, nil)}
		annotate(h, i)
		err = r.Client.Create(ctx, h)
	} else if h.DeletionTimestamp.IsZero() { // else it is created again when it is gone
		claim, cerr := r.claim(ctx, h)
		if cerr != nil {
			return "", cerr
		}
		after := h.DeepCopy()
		after.Labels, after.Spec = maps.Clone(i.Labels), wanted(i, secret, claim)
		after.Spec.Architecture = h.Spec.Architecture // the hosts' controller writes it once (B-252)
		annotate(after, i)
		err = r.patch(ctx, h, after)
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return fmt.Sprintf("the API refuses the BareMetalHost: %v", err), nil
	}
	if err != nil {
		return "", fmt.Errorf("BareMetalHost %s: %w", i.Name, err)
	}
	before := i.DeepCopy()
	for name := range requests {
		if i.Annotations[name] != metal3.InspectAnnotationValueDisabled { //nolint:staticcheck // the specification has it
			delete(i.Annotations, name)
		}
	}
	return "", r.patch(ctx, before, i)
}

// account returns the name of the Secret with the BMC's account; "" while it is not written.
func (r *servers) account(ctx context.Context, i *kaasv1.BareMetalHostInventory) (secret, problem string, err error) {
	name := i.Spec.BMC.CredentialsName
	var c kaasv1.BareMetalHostCredential
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: name}, &c)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Sprintf("spec.bmc.bmhCredentialsName: there is no BareMetalHostCredential %q in the namespace", name), nil
	case err != nil:
		return "", "", err
	case !managed(&c):
		return "", fmt.Sprintf("BareMetalHostCredential %q: give it the label %s=%s", name, clusterv1.ProviderLabel, clusterv1.ProviderBareMetal), nil
	case c.Status.ErrorMessage != "" && c.DeletionTimestamp.IsZero():
		return "", fmt.Sprintf("BareMetalHostCredential %q: %s", name, c.Status.ErrorMessage), nil
	case !c.Status.Ready:
		return "", "", nil
	}
	return secretName(&c), "", nil
}

// claim returns the host's spec when a Machine that exists has claimed it, else nil.
func (r *servers) claim(ctx context.Context, h *metal3.BareMetalHost) (*metal3.BareMetalHostSpec, error) {
	c := h.Spec.ConsumerRef
	if c == nil || c.Kind != "Machine" || c.Namespace != h.Namespace || !strings.HasPrefix(c.APIVersion, clusterv1.GroupVersion.Group+"/") {
		return nil, nil
	}
	var m clusterv1.Machine
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, &m)
	if name, ok := hostOf(&m); err == nil && ok && name == h.Name || err == nil && m.Spec.ProviderID != nil && *m.Spec.ProviderID == "metal3://"+string(h.UID) {
		return &h.Spec, nil
	}
	return nil, client.IgnoreNotFound(err)
}

// hostOf returns the name of the host that a Machine names.
func hostOf(m *clusterv1.Machine) (string, bool) {
	return strings.CutPrefix(m.Annotations[clusterv1.BareMetalHostAnnotation], m.Namespace+"/")
}

// wanted returns the spec of a BareMetalHost. claim is the host's present spec while a Machine
// has claimed the host, else nil; the Machine's fields are copied from it.
func wanted(i *kaasv1.BareMetalHostInventory, secret string, claim *metal3.BareMetalHostSpec) metal3.BareMetalHostSpec {
	s := i.Spec
	out := metal3.BareMetalHostSpec{
		BMC:            metal3.BMCDetails{Address: s.BMC.Address, CredentialsName: secret, DisableCertificateVerification: s.BMC.DisableCertificateVerification},
		BootMACAddress: s.BootMACAddress, BootMode: metal3.BootMode(cmp.Or(s.BootMode, kaasv1.InventoryUEFI)), Online: ptr.Deref(s.Online, true),
		HardwareProfile: s.HardwareProfile, AutomatedCleaningMode: metal3.CleaningModeMetadata,
	}
	if c := s.ConsumerRef; c != nil {
		out.ConsumerRef = &corev1.ObjectReference{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
	}
	if claim != nil {
		out.ConsumerRef, out.Image = claim.ConsumerRef, claim.Image
		out.UserData, out.NetworkData, out.MetaData = claim.UserData, claim.NetworkData, claim.MetaData
		out.RAID, out.RootDeviceHints, out.AutomatedCleaningMode = claim.RAID, claim.RootDeviceHints, claim.AutomatedCleaningMode
	}
	return out
}

// settings are the annotations that a BareMetalHost has if its inventory has them.
var settings = []string{metal3.PausedAnnotation, metal3.DetachedAnnotation, metal3.InspectAnnotationPrefix + "/hardwaredetails-storage-sort-term"}

// requests are the annotations that demand something once. They move to the BareMetalHost,
// whose controller removes them.
var requests = map[string]bool{metal3.InspectAnnotationPrefix: true, metal3.RebootAnnotationPrefix: true}

// annotate gives a BareMetalHost the annotations of its inventory.
func annotate(h *metal3.BareMetalHost, i *kaasv1.BareMetalHostInventory) {
	for _, name := range settings {
		if v, ok := i.Annotations[name]; ok {
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, name, v)
		} else {
			delete(h.Annotations, name)
		}
	}
	for name := range requests {
		if v, ok := i.Annotations[name]; ok {
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, name, v)
		}
	}
}

// record shows the host in the inventory's status.
func (r *servers) record(ctx context.Context, i *kaasv1.BareMetalHostInventory, h *metal3.BareMetalHost, problem string) error {
	before := i.DeepCopy()
	status, err := statusOf(i, h)
	if err != nil {
		return err
	}
	if problem != "" {
		status.ErrorType, status.ErrorMessage = kaasv1.InventoryError, problem
	}
	i.Status = status
	return r.patchStatus(ctx, before, i)
}

// accountErrors are the errors of a host that its BMC's account may cause.
var accountErrors = map[metal3.ErrorType]bool{metal3.RegistrationError: true, metal3.ProvisionedRegistrationError: true}

func statusOf(i *kaasv1.BareMetalHostInventory, h *metal3.BareMetalHost) (kaasv1.BareMetalHostInventoryStatus, error) {
	if h == nil || !metav1.IsControlledBy(h, i) {
		return kaasv1.BareMetalHostInventoryStatus{}, nil
	}
	s := &h.Status
	out := kaasv1.BareMetalHostInventoryStatus{
		ProvisioningState: string(s.Provisioning.State), OperationalStatus: string(s.OperationalStatus), PoweredOn: s.PoweredOn,
		ErrorMessage: s.ErrorMessage, ErrorType: string(s.ErrorType),
	}
	if accountErrors[s.ErrorType] {
		out.ErrorMessage = fmt.Sprintf("BareMetalHostCredential %q: %s", i.Spec.BMC.CredentialsName, s.ErrorMessage)
	}
	if c := h.Spec.ConsumerRef; c != nil {
		out.ConsumerRef = &kaasv1.ConsumerReference{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
	}
	if s.HardwareDetails != nil {
		b, err := json.Marshal(s.HardwareDetails)
		if err != nil {
			return out, fmt.Errorf("hardwareDetails: %w", err)
		}
		out.HardwareDetails = &runtime.RawExtension{Raw: b}
	}
	return out, nil
}

// remove deletes the BareMetalHost, unless a Machine has claimed it, and the inventory after
// it.
func (r *servers) remove(ctx context.Context, i *kaasv1.BareMetalHostInventory, h *metal3.BareMetalHost) error {
	if h == nil || !metav1.IsControlledBy(h, i) {
		before := i.DeepCopy()
		controllerutil.RemoveFinalizer(i, Finalizer)
		return r.patch(ctx, before, i)
	}
	if !h.DeletionTimestamp.IsZero() {
		return r.record(ctx, i, h, "")
	}
	claim, err := r.claim(ctx, h)
	if err != nil {
		return err
	}
	if claim != nil {
		return r.record(ctx, i, h, fmt.Sprintf("Machine %q has claimed BareMetalHost %q: delete the Machine first", claim.ConsumerRef.Name, h.Name))
	}
	return r.Client.Delete(ctx, h, client.Preconditions{UID: &h.UID, ResourceVersion: &h.ResourceVersion})
}
