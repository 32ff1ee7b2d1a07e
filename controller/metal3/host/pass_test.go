package host

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// trace lists the writes of a controller to the API and its calls of the BMC, in order.
type trace struct {
	b     *bench
	calls int // number of BMC calls that are in the list
	list  []string
}

// traced has the bench's controllers use a client that records their requests.
func traced(b *bench) *trace {
	tr := &trace{b: b}
	b.api, b.open = interceptor.NewClient(b.kube, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			tr.add("update " + o.GetName())
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			tr.add("patch " + o.GetName())
			return c.Patch(ctx, o, p, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if e, ok := o.(*corev1.Event); ok {
				tr.add("event " + e.Reason)
			} else {
				tr.add(fmt.Sprintf("create %T", o))
			}
			return c.Create(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			h := o.(*metal3.BareMetalHost)
			tr.add(fmt.Sprintf("%s of %s: %q, %d conditions", sub, o.GetName(), h.Status.Provisioning.State, len(h.Status.Conditions)))
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}), b.bmc.Open
	b.replace()
	return tr
}

func (tr *trace) add(what string) {
	tr.addCalls()
	tr.list = append(tr.list, what)
}

// addCalls adds that the BMC was called since.
func (tr *trace) addCalls() {
	if n := len(tr.b.bmc.Calls()); n > tr.calls {
		tr.calls, tr.list = n, append(tr.list, "BMC")
	}
}

// pass makes a pass and returns its requests.
func (tr *trace) pass() (ctrl.Result, []string) {
	tr.b.t.Helper()
	tr.list = nil
	res, err := tr.b.pass()
	if err != nil {
		tr.b.t.Fatal(err)
	}
	tr.addCalls()
	return res, tr.list
}

// B-10: the order within a pass. A paused host is left alone; a status is restored before
// anything else is done; the finalizer is there, with the architecture and without the
// annotations that have taken effect, before the Secrets are claimed, that of the BMC first;
// only then is the BMC called. The conditions are written with the status, and events come
// last.
func TestOrderOfAPass(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		h.Spec.PreprovisioningNetworkDataName = "network"
		h.Annotations = map[string]string{
			metal3.PausedAnnotation:          "",
			metal3.HardwareDetailsAnnotation: `{"hostname":"by-hand"}`,
			metal3.StatusAnnotation:          `{"provisioning":{"state":"registering","ID":"","image":{"url":""}},"hardware":{"cpu":{"arch":"aarch64"}},"operationalStatus":"OK","errorMessage":"","errorCount":0,"poweredOn":false,"triedCredentials":{},"goodCredentials":{}}`,
		}
	})
	network := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "network", Namespace: "lab"}, Data: map[string][]byte{"networkData": []byte("links: []")}}
	if err := b.kube.Create(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	tr := traced(b)
	if res, did := tr.pass(); len(did) > 0 || res != (ctrl.Result{}) {
		t.Errorf("paused: %q, and then %+v; want nothing, and no other pass", did, res)
	}
	b.change(func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.PausedAnnotation) })
	res, did := tr.pass()
	if diff := cmp.Diff([]string{`status of node-0: "registering", 0 conditions`}, did); diff != "" || res.RequeueAfter == 0 {
		t.Errorf("with a status to restore (-want +got), and then %+v:\n%s", res, diff)
	}
	_, did = tr.pass()
	want := []string{
		"update node-0", "event RemoveAnnotation", "patch secret", "patch network", "BMC",
		`status of node-0: "inspecting", 6 conditions`,
		"event BMCAccessValidated", "event Registered", "event InspectionStarted",
	}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("registering (-want +got):\n%s", diff)
	}
	h := b.host()
	if !slices.Equal(h.Finalizers, []string{metal3.BareMetalHostFinalizer}) || len(h.Annotations) > 0 || h.Spec.Architecture != "aarch64" {
		t.Errorf("the host has the finalizers %q, the annotations %v and the architecture %q", h.Finalizers, h.Annotations, h.Spec.Architecture)
	}
}
