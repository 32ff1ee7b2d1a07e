package firmware

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/controller/netboot"
)

const namespace = "lab"

// bench is a host with its BMC and both reconcilers, stepped through time.
type bench struct {
	t     *testing.T
	kube  client.WithWatch
	bmc   *bmctest.Fake
	clock *testclock.FakeClock
	seed  *rand.Rand

	hosts *host.Reconciler
	r     *Reconciler
	name  string

	writes int         // all writes
	crash  func() bool // called after a write; true kills the controller
	dead   bool
	ctx    context.Context
	kill   context.CancelFunc
	errs   []metal3.ErrorType
	states []metal3.ProvisioningState
}

// server returns a BMC with settings and components.
func server() *bmctest.Fake {
	f := &bmctest.Fake{Credentials: bmc.Credentials{Username: "admin", Password: "good"}}
	f.SetIdentity(bmc.System{ID: "1", Manufacturer: "Contoso", Model: "3500", BIOSVersion: "1.0"})
	f.Firmware(func(w *bmctest.Firmware) {
		w.Registry = registry
		w.Settings = maps.Clone(current)
		w.Components = []bmc.Component{{Name: "bios", Version: "1.0"}, {Name: "bmc", Version: "2.0"}, {Name: "nic:1", Version: "3.0"}}
		w.Images = map[string]string{"http://192.0.2.9/bios": "1.1", "http://192.0.2.9/nic": "3.1", "http://192.0.2.9/same": "2.0"}
	})
	return f
}

// registry and current return the registry and the settings of the server.
var (
	registry = bmc.NewAttributeRegistry("Contoso.v1_0_0", []bmc.Attribute{
		{Name: "Virtual", Type: bmc.EnumerationAttribute, Values: []string{"Enabled", "Disabled"}, ResetRequired: true},
		{Name: "Cores", Type: bmc.IntegerAttribute, Lower: new(int64(1)), Upper: new(int64(64)), ResetRequired: true},
		{Name: "Quiet", Type: bmc.BooleanAttribute, ResetRequired: true},
		{Name: "Banner", Type: bmc.StringAttribute, MinLength: new(int64(2)), MaxLength: new(int64(8)), ResetRequired: true},
		{Name: "Serial", Type: bmc.StringAttribute, MaxLength: new(int64(16)), ReadOnly: true, Unique: true},
		{Name: "AssetTag", Type: bmc.StringAttribute, MaxLength: new(int64(16)), Unique: true},
		{Name: "Model", Type: bmc.StringAttribute, ReadOnly: true},
		{Name: "SetupSecret", Type: bmc.PasswordAttribute},
		{Name: "AdminPassword", Type: bmc.PasswordAttribute},
		{Name: "Odd", Type: "Fraction"},
		{Name: "Plain"},
	})
	current = bmc.Settings{
		"Virtual": "Enabled", "Cores": int64(8), "Quiet": true, "Banner": "hello", "Serial": "S1", "AssetTag": "", "Model": "3500",
		"SetupSecret": nil, "AdminPassword": nil, "Odd": "1/2", "Plain": int64(3),
	}
)

func newBench(t *testing.T, edit func(*metal3.BareMetalHost), objects ...client.Object) *bench {
	t.Helper()
	h := newHost("node-0", "192.0.2.2")
	if edit != nil {
		edit(h)
	}
	b := &bench{
		t: t, name: h.Name, bmc: server(), seed: rand.New(rand.NewPCG(1, 0)),
		clock: testclock.NewFakeClock(time.Unix(1_800_000_000, 0)),
	}
	b.make(append(objects, h)...)
	b.replace()
	return b
}

// newHost returns a host after inspection.
func newHost(name, address string) *metal3.BareMetalHost {
	good := metal3.CredentialsStatus{Reference: &corev1.SecretReference{Name: "secret", Namespace: namespace}}
	return &metal3.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("u-" + name), Finalizers: []string{metal3.BareMetalHostFinalizer}},
		Spec: metal3.BareMetalHostSpec{Online: true, BMC: metal3.BMCDetails{
			Address: "redfish-virtualmedia://" + address + "/redfish/v1/Systems/1", CredentialsName: "secret",
		}},
		Status: metal3.BareMetalHostStatus{
			GoodCredentials: good, TriedCredentials: good, OperationalStatus: metal3.OperationalStatusOK,
			Provisioning:    metal3.ProvisionStatus{State: metal3.StatePreparing, ID: "p-1"},
			HardwareProfile: "unknown", LastUpdated: &metav1.Time{Time: time.Unix(1_800_000_000, 0)},
		},
	}
}

func (b *bench) make(objects ...client.Object) {
	b.t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), metal3.AddToScheme(scheme)); err != nil {
		b.t.Fatal(err)
	}
	objects = append(objects, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "secret"},
		Data:       map[string][]byte{"username": []byte("admin"), "password": []byte("good")},
	})
	b.kube = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&metal3.BareMetalHost{}, &metal3.HostFirmwareSettings{}, &metal3.HostFirmwareComponents{}).Build(),
		interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if o.GetUID() == "" && o.GetName() != "" {
					o.SetUID(types.UID("u-" + o.GetName() + "-" + o.GetObjectKind().GroupVersionKind().Kind))
				}
				return b.wrote(c.Create(ctx, o, opts...))
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				return b.wrote(c.Update(ctx, o, opts...))
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return b.wrote(c.Patch(ctx, o, p, opts...))
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				return b.wrote(c.SubResource(sub).Update(ctx, o, opts...))
			},
		})
}

// wrote counts a write, after which the controller may be killed: its next call
// fails.
func (b *bench) wrote(err error) error {
	b.writes++
	if err == nil && b.crash != nil && !b.dead && b.crash() {
		b.dead = true
		b.kill()
		return context.Canceled
	}
	return err
}

// replace starts controllers without any memory.
func (b *bench) replace() {
	b.t.Helper()
	if b.kill != nil {
		b.kill()
	}
	b.ctx, b.kill = context.WithCancel(context.Background())
	b.dead = false
	key := make(inband.Key, inband.KeySize)
	agents, err := inband.New(inband.Config{Key: key, URL: "https://192.0.2.3", Clock: b.clock})
	if err != nil {
		b.t.Fatal(err)
	}
	media, err := netboot.New(netboot.Config{Key: key, URL: "http://192.0.2.3", Media: agents.Media})
	if err != nil {
		b.t.Fatal(err)
	}
	b.r, err = New(Config{
		Client: b.kube, Reader: b.kube, Clock: b.clock, Wall: b.clock,
		BMC: func(ctx context.Context, h *metal3.BareMetalHost) (bmc.Client, error) { return b.hosts.Connect(ctx, h) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.hosts, err = host.New(host.Config{
		Client: b.kube, Reader: b.kube, Inband: agents, Boot: media, Clock: b.clock, Wall: b.clock, Chance: b.seed.Float64,
		BMCs:  &bmc.Pool{Drivers: map[string]bmc.Open{"redfish": b.bmc.Open}},
		Parts: []host.Part{b.r.Settings(), b.r.Components()},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// look makes one pass of the firmware reconciler.
func (b *bench) look() {
	b.t.Helper()
	if _, err := b.r.Reconcile(b.ctx, b.request()); err != nil && !b.dead {
		b.t.Fatal(err)
	}
	b.gather()
	b.recover()
}

// gather writes the owners of schemas, as the second controller does.
func (b *bench) gather() {
	b.t.Helper()
	for !b.dead {
		select {
		case e := <-b.r.joiners.wake:
			if err := b.r.addOwners(b.ctx, client.ObjectKeyFromObject(e.Object)); err != nil && !b.dead {
				b.t.Fatal(err)
			}
		default:
			return
		}
	}
}

func (b *bench) request() ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: b.name}}
}

func (b *bench) recover() {
	if b.dead {
		b.replace()
	}
}

// pass makes a pass of both and advances the clock.
func (b *bench) pass() {
	b.t.Helper()
	b.look()
	res, err := b.hosts.Reconcile(b.ctx, b.request())
	if err != nil && !b.dead && !errors.Is(err, bmc.ErrUnreachable) {
		b.t.Fatal(err)
	}
	b.recover()
	h := b.host()
	if e := h.Status.ErrorType; e != "" && (len(b.errs) == 0 || b.errs[len(b.errs)-1] != e) {
		b.errs = append(b.errs, e)
	}
	if s := h.Status.Provisioning.State; len(b.states) == 0 || b.states[len(b.states)-1] != s {
		b.states = append(b.states, s)
	}
	b.clock.Step(max(min(res.RequeueAfter, 5*time.Minute), time.Second))
	b.bmc.Work()
}

// until makes passes until a condition holds.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	for range 400 {
		if ok() {
			return
		}
		b.pass()
	}
	h := b.host()
	b.t.Fatalf("not %s: states %v, %s %q, BMC %+v; settings %v, components %v", what, b.states, h.Status.ErrorType, h.Status.ErrorMessage,
		b.bmc.Calls()[max(0, len(b.bmc.Calls())-8):], b.settings().Annotations, b.components().Status)
}

func (b *bench) get(o client.Object) bool {
	err := b.kube.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: b.name}, o)
	return err == nil
}

func (b *bench) host() (h metal3.BareMetalHost)                { b.get(&h); return h }
func (b *bench) settings() (s metal3.HostFirmwareSettings)     { b.get(&s); return s }
func (b *bench) components() (s metal3.HostFirmwareComponents) { b.get(&s); return s }
func (b *bench) in(s metal3.ProvisioningState) func() bool {
	return func() bool { return b.host().Status.Provisioning.State == s }
}
func (b *bench) condition(kind string, conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

// settled reports whether the host is available and nothing is in progress.
func (b *bench) settled() bool {
	hfs, hfc := b.settings(), b.components()
	return b.in(metal3.StateAvailable)() && hfs.Annotations[attemptAnnotation] == "" && hfc.Annotations[attemptAnnotation] == "" &&
		isObserved(hfs.Status.Conditions, hfs.Generation) && isObserved(hfc.Status.Conditions, hfc.Generation) &&
		!isChangePending(hfs.Status.Conditions) && !isChangePending(hfc.Status.Conditions)
}

// want asks for settings like an API server: with a new generation.
func (b *bench) want(s metal3.DesiredSettingsMap) {
	b.t.Helper()
	hfs := b.settings()
	hfs.Spec.Settings = s
	hfs.Generation++
	b.store(&hfs)
}

func (b *bench) wantUpdates(u ...metal3.FirmwareUpdate) {
	b.t.Helper()
	hfc := b.components()
	hfc.Spec.Updates = u
	hfc.Generation++
	b.store(&hfc)
}

func (b *bench) store(o client.Object) {
	b.t.Helper()
	crash := b.crash
	b.crash = nil
	if err := b.kube.Update(context.Background(), o); err != nil {
		b.t.Fatal(err)
	}
	b.crash = crash
}

// now returns the server's value of a setting.
func (b *bench) now(name string) (v any) {
	b.bmc.Firmware(func(w *bmctest.Firmware) { v = w.Settings[name] })
	return v
}

func (b *bench) messages() (out []string) {
	var l corev1.EventList
	if err := b.kube.List(context.Background(), &l); err != nil {
		b.t.Fatal(err)
	}
	for _, e := range l.Items {
		out = append(out, e.Reason+" "+e.Message)
	}
	return out
}

func str(s string) intstr.IntOrString { return intstr.FromString(s) }
func num(n int) intstr.IntOrString    { return intstr.FromInt32(int32(n)) }
