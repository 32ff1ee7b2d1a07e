package firmware

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// B-90 B-94: HostFirmwareSettings and HostFirmwareComponents of a paused or detached host are
// not reconciled, and its BMC is not asked. The removal of the annotation begins a pass, which
// reconciles them at once.
func TestFirmwareOfAnUnmanagedHostIsNotReconciled(t *testing.T) {
	for _, annotation := range []string{metal3.PausedAnnotation, metal3.DetachedAnnotation} {
		for _, value := range []string{"", "metal3.io/capm3"} {
			b := newBench(t, nil)
			b.until("available", b.settled)
			h := b.host()
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, annotation, value)
			b.store(&h)
			b.want(metal3.DesiredSettingsMap{"Cores": num(4), "Unknown": num(1)})
			b.wantUpdates(metal3.FirmwareUpdate{Component: "bios", URL: "http://192.0.2.9/bios"})
			b.bmc.Forget()
			before := firmwareObjects(b)
			for range 5 {
				b.look()
				b.clock.Step(refresh)
			}
			if diff := cmp.Diff(before, firmwareObjects(b)); diff != "" || len(b.bmc.Calls()) > 0 {
				t.Errorf("%s: %d requests to the BMC, objects (-before +after):\n%s", annotation, len(b.bmc.Calls()), diff)
			}
			paused := b.host()
			managed := paused.DeepCopy()
			delete(managed.Annotations, annotation)
			b.store(managed)
			if !new(predicate.AnnotationChangedPredicate).Update(event.UpdateEvent{ObjectOld: &paused, ObjectNew: managed}) {
				t.Errorf("%s: its removal begins no pass", annotation)
			}
			b.look()
			if hfs, hfc := b.settings(), b.components(); !b.condition(changeDetected, hfs.Status.Conditions) || !b.condition(changeDetected, hfc.Status.Conditions) {
				t.Errorf("%s: after its removal: settings %+v, components %+v, want changes detected", annotation, hfs.Status.Conditions, hfc.Status.Conditions)
			}
		}
	}
}

// firmwareObjects returns the resource versions of a host's firmware objects.
func firmwareObjects(b *bench) string {
	hfs, hfc := b.settings(), b.components()
	return fmt.Sprint(hfs.ResourceVersion, " ", hfc.ResourceVersion)
}

// B-02: HostFirmwareSettings and HostFirmwareComponents have the name and namespace of their
// host. A HostUpdatePolicy applies to the host of its name and namespace alone.
func TestFirmwareObjectsAreNamedLikeTheirHost(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	var settings metal3.HostFirmwareSettingsList
	var components metal3.HostFirmwareComponentsList
	for _, l := range []client.ObjectList{&settings, &components} {
		if err := b.kube.List(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if len(settings.Items) != 1 || len(components.Items) != 1 {
		t.Fatalf("%d settings and %d components, want one each", len(settings.Items), len(components.Items))
	}
	h := b.host()
	for _, o := range []client.Object{&settings.Items[0], &components.Items[0]} {
		if client.ObjectKeyFromObject(o) != client.ObjectKeyFromObject(&h) {
			t.Errorf("%T is %s, want %s", o, client.ObjectKeyFromObject(o), client.ObjectKeyFromObject(&h))
		}
	}
	onReboot := metal3.HostUpdatePolicySpec{FirmwareSettings: "onReboot", FirmwareUpdates: "onReboot"}
	for name, tt := range map[string]struct {
		meta    metav1.ObjectMeta
		applies bool
	}{
		"of the host":          {metav1.ObjectMeta{Namespace: namespace, Name: h.Name}, true},
		"of another name":      {metav1.ObjectMeta{Namespace: namespace, Name: "node-1"}, false},
		"in another namespace": {metav1.ObjectMeta{Namespace: "other", Name: h.Name}, false},
	} {
		b := provisioned(t, nil)
		if err := b.kube.Create(t.Context(), &metal3.HostUpdatePolicy{ObjectMeta: tt.meta, Spec: onReboot}); err != nil {
			t.Fatal(err)
		}
		b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
		b.look()
		b.bmc.Press(bmc.Off)
		for range 40 {
			b.pass()
		}
		begun := 0
		for _, c := range b.bmc.Calls() {
			if c.Verb == bmctest.SetBIOS {
				begun++
			}
		}
		if got := b.now("Cores") == int64(4); got != tt.applies || begun > 0 != tt.applies {
			t.Errorf("a policy %s: Cores %v after %d requests, want a change: %v", name, b.now("Cores"), begun, tt.applies)
		}
	}
}
