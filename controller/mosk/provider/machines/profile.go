package machines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/hostprofile"
	"github.com/metalab-dev/metalab/controller/mosk/provider/userdata"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// The names in this group are in no public text.
const (
	// conditionProfile is the type of the condition of a Machine that names a
	// BareMetalHostProfile.
	conditionProfile = "BareMetalHostProfile"
	// rootDeviceAnnotation is on a host whose rootDeviceHints are those of the profile that
	// it names. Hints of the host's user have none, and stay.
	rootDeviceAnnotation = "metalab.dev/root-device-of-profile"
)

// hostProfile is the result of the comparison of a host with the profile of its Machine.
type hostProfile struct {
	ref  client.ObjectKey                        // key of the profile; the zero value when the Machine names none
	spec *hostprofilev1.BareMetalHostProfileSpec // nil when it does not exist or does not match
	// problem is what the user has to correct, or "".
	problem string
	note    string // on a profile that matches: the root device, and fields that are not applied
	// hints are the root device hints that the host gets, if changeHints is true.
	hints       *metal3.RootDeviceHints
	changeHints bool
}

// String returns how conditions name the profile.
func (p hostProfile) String() string { return "BareMetalHostProfile " + p.ref.String() }

// profileKey returns the profile that a Machine names; the zero value means none.
func profileKey(m *clusterv1.Machine) client.ObjectKey {
	ref := m.Spec.ProviderSpec.Value.BareMetalHostProfile
	if ref == nil {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: cmp.Or(ref.Namespace, m.Namespace), Name: ref.Name}
}

// machinesOfProfile enqueues the Machines that name a profile.
func (r *Reconciler) machinesOfProfile(ctx context.Context, profile client.Object) []reconcile.Request {
	return watch.Requests(ctx, r.Client, &clusterv1.MachineList{}, func(m *clusterv1.Machine) bool { return profileKey(m) == client.ObjectKeyFromObject(profile) })
}

// observeProfile reads the profile that a Machine names, and compares it with the host that
// the Machine has claimed. A profile has no effect on a host with an image, and is not read
// then.
func (r *Reconciler) observeProfile(ctx context.Context, f *facts) error {
	p := &f.profile
	p.ref = profileKey(f.machine)
	if f.host != nil && f.host.Spec.Image != nil {
		return nil
	}
	if p.ref != (client.ObjectKey{}) {
		var o hostprofilev1.BareMetalHostProfile
		switch err := r.Client.Get(ctx, p.ref, &o); {
		case apierrors.IsNotFound(err) || p.ref.Name == "":
			p.problem = fmt.Sprintf("spec.providerSpec.value.bareMetalHostProfile: there is no BareMetalHostProfile %q in the namespace %q: create it, or name another", p.ref.Name, p.ref.Namespace)
			return nil
		case err != nil:
			return fmt.Errorf("machines: %s: %w", p, err)
		}
		p.spec = &o.Spec
	}
	if f.host == nil {
		return nil
	}
	h := f.host
	_, ours := h.Annotations[rootDeviceAnnotation]
	if p.spec != nil {
		p.compare(h, ours)
	}
	p.changeHints = p.problem == "" && (ours || h.Spec.RootDeviceHints == nil) && !equality.Semantic.DeepEqual(p.hints, h.Spec.RootDeviceHints)
	return nil
}

// compare compares the disks of a host with the profile's devices. ours reports whether the
// host's root device hints are those of a profile.
func (p *hostProfile) compare(h *metal3.BareMetalHost, ours bool) {
	devices := p.spec.Devices
	var disks []metal3.Storage
	switch details := h.Status.HardwareDetails; {
	case details != nil:
		disks = details.Storage
	case len(devices) > 0:
		p.problem = fmt.Sprintf("%s: the disks of BareMetalHost %s are unknown: let it be inspected (remove the annotation %s)", p, h.Name, metal3.InspectAnnotationPrefix)
		return
	}
	matched, err := hostprofile.Match(devices, disks)
	if err != nil {
		p.problem = fmt.Sprintf("%s does not match BareMetalHost %s: %v", p, h.Name, err)
		return
	}
	p.note = fmt.Sprintf("%s matches BareMetalHost %s", p, h.Name)
	raid := h.Spec.RAID != nil && len(h.Spec.RAID.HardwareRAIDVolumes)+len(h.Spec.RAID.SoftwareRAIDVolumes) > 0
	switch {
	case len(devices) == 0:
	case raid:
		p.note += "; its root device is the first volume of spec.raid"
	case h.Spec.RootDeviceHints != nil && !ours:
		p.note += "; spec.rootDeviceHints, which it had, select its root device"
	default:
		p.hints = hostprofile.RootDeviceHints(devices, matched)
		p.note += "; its root device is " + hostprofile.Name(matched[0])
	}
	if fields := hostprofile.Unapplied(p.spec); len(fields) > 0 {
		p.note += "; not applied, the image has the layout of its disk: spec." + strings.Join(fields, ", spec.")
	}
}

// unprepared returns whether the host's preparation has still to take its root device hints.
func unprepared(f *facts) bool {
	_, ours := f.host.Annotations[rootDeviceAnnotation]
	return ours && !equality.Semantic.DeepEqual(f.host.Spec.RootDeviceHints, f.host.Status.Provisioning.RootDeviceHints)
}

// writeHints gives a host the root device hints of the profile.
func writeHints(h *metal3.BareMetalHost, f *facts) {
	h.Spec.RootDeviceHints = f.profile.hints.DeepCopy()
	if f.profile.hints == nil {
		delete(h.Annotations, rootDeviceAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, rootDeviceAnnotation, f.profile.ref.String())
}

// releaseHost removes the consumerRef of a host, and the root device hints that a profile has
// set.
func releaseHost(h *metal3.BareMetalHost, _ *facts) {
	h.Spec.ConsumerRef = nil
	if _, ours := h.Annotations[rootDeviceAnnotation]; ours {
		h.Spec.RootDeviceHints = nil
		delete(h.Annotations, rootDeviceAnnotation)
	}
}

// profileCondition returns the condition of a Machine that names a profile. That of a host
// with an image stays as it was when the image was written.
func profileCondition(f *facts, _ decision, was []baremetalv1.Condition) *baremetalv1.Condition {
	p := f.profile
	if p.ref.Name == "" || !f.machine.DeletionTimestamp.IsZero() {
		return nil
	}
	out := &baremetalv1.Condition{Ready: p.problem == "", Message: cmp.Or(p.problem, p.note)}
	switch {
	case f.host != nil && f.host.Spec.Image != nil:
		i := slices.IndexFunc(was, func(c baremetalv1.Condition) bool { return c.Type == conditionProfile })
		if i >= 0 && strings.HasPrefix(was[i].Message, p.String()+" ") {
			return &was[i]
		}
		out.Ready, out.Message = true, fmt.Sprintf("%s takes effect when a host is provisioned again: BareMetalHost %s has its image", p, f.host.Name)
	case out.Message == "":
		out.Ready, out.Message = false, fmt.Sprintf("%s is compared with the disks of a BareMetalHost once one is claimed", p)
	}
	return out
}

// The keys of a Secret with user data, as those of BareMetalHost.spec.userData.
var userDataKeys = []string{"userData", "value"}

// observeUserData reads the user data of the Machine's user, which a host without an image
// gets beside the agent's.
func (r *Reconciler) observeUserData(ctx context.Context, f *facts) error {
	ref := f.machine.Spec.ProviderSpec.Value.UserData
	if ref == nil || f.host != nil && f.host.Spec.Image != nil {
		return nil
	}
	const field = "spec.providerSpec.value.userData"
	m := f.machine
	if ref.Namespace != "" && ref.Namespace != m.Namespace { // else a Machine would read the Secrets of others
		f.userDataProblem = fmt.Sprintf("%s.namespace: the Secret is in the namespace of the Machine, %q: remove the field", field, m.Namespace)
		return nil
	}
	var s corev1.Secret
	switch err := r.Reader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, &s); {
	case apierrors.IsNotFound(err) || ref.Name == "":
		f.userDataProblem = fmt.Sprintf("%s: there is no Secret %q in the namespace: create it", field, ref.Name)
		return nil
	case err != nil:
		return fmt.Errorf("machines: Secret %s: %w", ref.Name, err)
	}
	for _, key := range userDataKeys {
		if f.userData = s.Data[key]; len(f.userData) > 0 {
			if err := userdata.Check(m.Name, f.profile.spec, f.userData); err != nil {
				f.userDataProblem = fmt.Sprintf("%s: Secret %q: data.%s: %v", field, ref.Name, key, err)
			}
			return nil
		}
	}
	f.userDataProblem = fmt.Sprintf("%s: Secret %q: give user data in data.%s", field, ref.Name, userDataKeys[0])
	return nil
}
