package machines

import (
	"context"
	"hash/fnv"
	"io"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/userdata"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
)

// performer performs an action. It returns when to look at the Machine again, 0 when
// only a change of an object matters.
type performer func(context.Context, *Reconciler, *facts) (time.Duration, error)

// done makes a performer of a function that needs no time.
func done(f func(context.Context, *Reconciler, *facts) error) performer {
	return func(ctx context.Context, r *Reconciler, facts *facts) (time.Duration, error) {
		return 0, f(ctx, r, facts)
	}
}

// performers perform the actions.
var performers = map[action]performer{
	actWait:   done(func(context.Context, *Reconciler, *facts) error { return nil }),
	actHold:   done(onMachine(func(m *clusterv1.Machine, _ *facts) { controllerutil.AddFinalizer(m, Finalizer) })),
	actCreate: done(create),
	actName: done(onMachine(func(m *clusterv1.Machine, f *facts) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1.BareMetalHostAnnotation, choose(f))
	})),
	actForget:          done(onMachine(func(m *clusterv1.Machine, _ *facts) { delete(m.Annotations, clusterv1.BareMetalHostAnnotation) })),
	actClaim:           done(onHost(func(h *metal3.BareMetalHost, f *facts) { h.Spec.ConsumerRef = consumer(f.machine) })),
	actIdentify:        done(onMachine(func(m *clusterv1.Machine, f *facts) { m.Spec.ProviderID = ptr.To("metal3://" + string(f.host.UID)) })),
	actSelectRoot:      done(onHost(writeHints)),
	actProvision:       done(provision),
	actWriteLCM:        done(onLCM(func(l *lcmv1.LCMMachine, f *facts) { l.Spec = parameters(f) })),
	actDeploy:          done(onLCM(deploy)),
	actMark:            mark,
	actMaintain:        maintain,
	actPrepareDeletion: done(onLCM(func(l *lcmv1.LCMMachine, _ *facts) { l.Spec.PrepareDeletion = true })),
	actAbortDeletion:   done(onLCM(func(l *lcmv1.LCMMachine, _ *facts) { l.Spec.PrepareDeletion = false })),
	actDelete: done(func(ctx context.Context, r *Reconciler, f *facts) error {
		return client.IgnoreNotFound(r.Client.Delete(ctx, f.machine))
	}),
	actDeprovision: done(onHost(func(h *metal3.BareMetalHost, _ *facts) {
		h.Spec.Image, h.Spec.UserData, h.Spec.NetworkData, h.Spec.Online = nil, nil, nil, false
	})),
	actRemoveLCM: done(func(ctx context.Context, r *Reconciler, f *facts) error {
		return client.IgnoreNotFound(r.Client.Delete(ctx, f.lcm))
	}),
	actRemoveAccount: done(removeAccount),
	actRelease:       done(onHost(releaseHost)),
	actFinish:        done(finish),
}

// The functions below write a change with the resourceVersion that was read, so that
// nothing is decided on an old object.

func onMachine(change func(*clusterv1.Machine, *facts)) func(context.Context, *Reconciler, *facts) error {
	return func(ctx context.Context, r *Reconciler, f *facts) error {
		after := f.machine.DeepCopy()
		change(after, f)
		return r.patch(ctx, f.machine, after)
	}
}

func onHost(change func(*metal3.BareMetalHost, *facts)) func(context.Context, *Reconciler, *facts) error {
	return func(ctx context.Context, r *Reconciler, f *facts) error {
		after := f.host.DeepCopy()
		change(after, f)
		return r.patch(ctx, f.host, after)
	}
}

func onLCM(change func(*lcmv1.LCMMachine, *facts)) func(context.Context, *Reconciler, *facts) error {
	return func(ctx context.Context, r *Reconciler, f *facts) error {
		after := f.lcm.DeepCopy()
		change(after, f)
		return r.patch(ctx, f.lcm, after)
	}
}

func (r *Reconciler) patch(ctx context.Context, before, after client.Object) error {
	return r.Client.Patch(ctx, after, patch.IfUnchanged(before))
}

// choose returns the host that a Machine names: the one that it has claimed, else one that
// is free. Machines that choose at the same time choose from the same list, and each
// orders it by a hash of its own: few of them choose the same host.
func choose(f *facts) string {
	best := f.claimed
	var highest uint64
	for _, h := range f.free {
		if f.claimed != nil {
			break
		}
		sum := fnv.New64a()
		_, _ = io.WriteString(sum, string(f.machine.UID)+"/"+f.machine.Name+"/"+h.Name) // fnv returns no error
		if v := sum.Sum64(); best == nil || v > highest {
			best, highest = h, v
		}
	}
	return best.Namespace + "/" + best.Name
}

// create creates the LCMMachine without a spec: the LCM controller and the provider fill it
// in later.
func create(ctx context.Context, r *Reconciler, f *facts) error {
	l := &lcmv1.LCMMachine{}
	l.Namespace, l.Name = f.machine.Namespace, f.machine.Name
	return r.Client.Create(ctx, l)
}

// deploy gives the LCMMachine the labels by which controller/mosk/lcm finds its items.
func deploy(l *lcmv1.LCMMachine, f *facts) {
	for name, value := range roleLabels(f.machine) {
		metav1.SetMetaDataLabel(&l.ObjectMeta, name, value)
	}
}

// provision writes image and user data to the host. The Secret is there first.
func provision(ctx context.Context, r *Reconciler, f *facts) error {
	token, _, err := r.account(ctx, f)
	if err != nil {
		return err
	}
	node, err := r.node(ctx, f)
	if err != nil {
		return err
	}
	text, err := userdata.Render(userdata.Machine{
		Namespace: f.machine.Namespace, Name: f.machine.Name, Server: r.Server, CA: r.CA, Token: token, Agent: f.release.Spec.Agent, Keys: f.keys, Proxy: f.proxy,
		Profile: f.profile.spec, User: f.userData, Node: node, Netplan: f.netplan,
	})
	if err != nil {
		return err
	}
	s := &corev1.Secret{ObjectMeta: r.meta(f, userDataName(f.machine)), Data: map[string][]byte{"userData": text}}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, agentAnnotation, agentKey(f))
	err = r.put(ctx, f, s, new(corev1.Secret), func(current client.Object) {
		c := current.(*corev1.Secret)
		c.Data = s.Data
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, agentAnnotation, agentKey(f))
	})
	if err != nil {
		return err
	}
	return onHost(func(h *metal3.BareMetalHost, f *facts) {
		h.Spec.Image = &metal3.Image{URL: f.image.URL, Checksum: f.image.Checksum}
		if f.image.Checksum != "" {
			h.Spec.Image.ChecksumType = metal3.AutoChecksum
		}
		h.Spec.UserData = &corev1.SecretReference{Namespace: s.Namespace, Name: s.Name}
		if f.network != "" {
			h.Spec.NetworkData = &corev1.SecretReference{Namespace: f.machine.Namespace, Name: f.network}
		}
		h.Spec.Online = true
	})(ctx, r, f)
}

// maintain renews the agent's token and rights.
func maintain(ctx context.Context, r *Reconciler, f *facts) (time.Duration, error) {
	_, after, err := r.account(ctx, f)
	if err != nil || f.lcm.Status.TokenSecret == tokenName(f.machine) {
		return after, err
	}
	before := f.lcm.DeepCopy()
	changed := f.lcm.DeepCopy()
	changed.Status.TokenSecret = tokenName(f.machine)
	return after, r.Client.Status().Patch(ctx, changed, client.MergeFrom(before))
}

// finish lets the API delete the Machine. The cache may be older than the claim.
func finish(ctx context.Context, r *Reconciler, f *facts) error {
	if name, ok := strings.CutPrefix(f.named, f.machine.Namespace+"/"); ok {
		var h metal3.BareMetalHost
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: f.machine.Namespace, Name: name}, &h)
		if err == nil && claimedBy(&h, f.machine) || client.IgnoreNotFound(err) != nil {
			return err // the watch reports the claim
		}
	}
	return onMachine(func(m *clusterv1.Machine, _ *facts) { controllerutil.RemoveFinalizer(m, Finalizer) })(ctx, r, f)
}
