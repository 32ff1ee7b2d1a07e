package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// mortality kills the controller of a bench before or after any call to the API or
// the BMC. A dead controller makes no more calls.
type mortality struct {
	b     *bench
	calls int              // so far, counted before and after each call
	die   func(n int) bool // whether to die at this count
	dead  int              // number of dead controllers
}

var errDead = errors.New("the controller is dead")

func (m *mortality) step(ctx context.Context) error {
	if ctx.Err() != nil {
		return errDead
	}
	m.calls++
	if m.die(m.calls) {
		m.dead++
		m.b.kill()
		return errDead
	}
	return nil
}

// around makes one call, or dies before or after it. A controller that dies after
// the call does not see its result.
func (m *mortality) around(ctx context.Context, call func() error) error {
	if err := m.step(ctx); err != nil {
		return err
	}
	err := call()
	if died := m.step(ctx); died != nil {
		return died
	}
	return err
}

// take intercepts all calls of the bench's controllers.
func (m *mortality) take(b *bench) {
	m.b = b
	b.api = interceptor.NewClient(b.kube, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return m.around(ctx, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return m.around(ctx, func() error { return c.List(ctx, l, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return m.around(ctx, func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return m.around(ctx, func() error { return c.Delete(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return m.around(ctx, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return m.around(ctx, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return m.around(ctx, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
	b.open = func(ctx context.Context, c bmc.Config) (out bmc.Client, err error) {
		err = m.around(ctx, func() error { out, err = b.bmc.Open(ctx, c); return err })
		return &mortalBMC{out, m}, err
	}
	b.replace()
}

type mortalBMC struct {
	bmc.Client
	m *mortality
}

func (c *mortalBMC) System(ctx context.Context) (out bmc.System, err error) {
	err = c.m.around(ctx, func() error { out, err = c.Client.System(ctx); return err })
	return out, err
}

func (c *mortalBMC) Media(ctx context.Context) (out bmc.Media, err error) {
	err = c.m.around(ctx, func() error { out, err = c.Client.Media(ctx); return err })
	return out, err
}

func (c *mortalBMC) SetPower(ctx context.Context, a bmc.PowerAction) error {
	return c.m.around(ctx, func() error { return c.Client.SetPower(ctx, a) })
}

func (c *mortalBMC) SetBoot(ctx context.Context, b bmc.Boot) error {
	return c.m.around(ctx, func() error { return c.Client.SetBoot(ctx, b) })
}

func (c *mortalBMC) InsertMedia(ctx context.Context, urls ...string) error {
	return c.m.around(ctx, func() error { return c.Client.InsertMedia(ctx, urls...) })
}

func (c *mortalBMC) EjectMedia(ctx context.Context) error {
	return c.m.around(ctx, func() error { return c.Client.EjectMedia(ctx) })
}

// verdict holds the results of a life that must not depend on the number of deaths.
type verdict struct {
	Disk     []string // after each stage: the content of the disk and the number of writes
	Statuses []metal3.BareMetalHostStatus
	Ran      []job.Kind
	BMC      []string // actions, in order
	Objects  []string // objects left at the end, with their finalizers
}

// live runs the whole life of a host: provisioned, deprovisioned, provisioned with
// another image, and deleted.
func (b *bench) live(between func()) (v verdict) {
	written := map[string]int{}
	disk := ""
	b.agentDoes = func(j job.Job) {
		switch j.Kind {
		case job.Clean:
			disk = ""
		case job.Write:
			disk = j.Write.URL
			written[disk]++
		}
	}
	stage := func(what string, change func(*metal3.BareMetalHost), ok func(*metal3.BareMetalHost) bool) {
		b.t.Helper()
		if change != nil {
			b.change(change)
		}
		b.until(what, func(h *metal3.BareMetalHost) bool { between(); return ok(h) })
		v.Disk = append(v.Disk, fmt.Sprintf("%s: %q %v", what, disk, written))
		if h := b.host(); h != nil {
			v.Statuses = append(v.Statuses, timeless(h.Status))
		}
	}
	quiet := func(s metal3.ProvisioningState) func(*metal3.BareMetalHost) bool {
		return func(h *metal3.BareMetalHost) bool { return in(s)(h) && h.Status.PoweredOn && b.power() == bmc.On }
	}
	stage("provisioned", nil, quiet(metal3.StateProvisioned))
	stage("available", func(h *metal3.BareMetalHost) { h.Spec.Image = nil }, quiet(metal3.StateAvailable))
	stage("provisioned again", func(h *metal3.BareMetalHost) {
		withImage(h)
		h.Spec.Image.URL += "-2"
	}, quiet(metal3.StateProvisioned))
	if err := b.kube.Delete(context.Background(), b.host()); err != nil {
		b.t.Fatal(err)
	}
	stage("gone", nil, func(h *metal3.BareMetalHost) bool { return h == nil })
	v.Ran = b.ran
	for _, c := range b.bmc.Calls() {
		switch c.Verb {
		case bmctest.SetPower:
			v.BMC = append(v.BMC, "power "+string(c.Power))
		case bmctest.SetBoot:
			v.BMC = append(v.BMC, "boot "+string(c.Boot.Device))
		case bmctest.InsertMedia:
			v.BMC = append(v.BMC, "insert")
		case bmctest.EjectMedia:
			v.BMC = append(v.BMC, "eject")
		}
	}
	if s := b.get("secret"); s != nil {
		v.Objects = append(v.Objects, fmt.Sprintf("secret: %v", s.Finalizers))
	}
	var hardware metal3.HardwareDataList
	if err := b.kube.List(context.Background(), &hardware); err != nil {
		b.t.Fatal(err)
	}
	for _, hd := range hardware.Items { // the fake API has no garbage collector
		v.Objects = append(v.Objects, fmt.Sprintf("%s of %s: %v", hd.Name, hd.OwnerReferences[0].Name, hd.Finalizers))
	}
	return v
}

// timeless returns a status without timestamps and other values that differ
// between two lives.
func timeless(s metal3.BareMetalHostStatus) metal3.BareMetalHostStatus {
	out := *s.DeepCopy()
	out.LastUpdated = nil
	if out.Provisioning.ID != "" {
		out.Provisioning.ID = "some"
	}
	for i := range out.Conditions {
		out.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	h := &out.OperationHistory
	for _, op := range []*metal3.OperationMetric{&h.Register, &h.Inspect, &h.Provision, &h.Deprovision} {
		for _, at := range []*metav1.Time{&op.Start, &op.End} {
			if !at.IsZero() {
				*at = metav1.Unix(1, 0)
			}
		}
	}
	return out
}

// Wherever and however often the controller is killed, between two calls or during
// one: nothing is lost and nothing is done twice.
func TestKilledControllersLoseNothingAndDoNothingTwice(t *testing.T) {
	calm := newBench(t, 0, withImage)
	still := &mortality{die: func(int) bool { return false }}
	still.take(calm)
	want := calm.live(func() {})
	if got := strings.Join(want.Disk, "\n"); !strings.Contains(got, `provisioned: "`+imageURL+`" map[`+imageURL+`:1]`) || !strings.Contains(got, `gone: ""`) {
		t.Fatalf("a life without a death: %s", got)
	}
	var deaths atomic.Int64
	t.Cleanup(func() {
		if deaths.Load() < 1000 {
			t.Errorf("%d deaths in 200 lives: this tests nothing", deaths.Load())
		}
	})
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(seed, 1))
			m := &mortality{}
			switch seed % 4 {
			case 0: // once, anywhere
				call := 1 + chance.IntN(still.calls)
				m.die = func(n int) bool { return n == call }
			case 1: // now and then
				m.die = func(int) bool { return chance.IntN(100) == 0 }
			default: // rarely alive for long
				m.die = func(int) bool { return chance.IntN(30) == 0 }
			}
			b := newBench(t, seed, withImage)
			b.bmc.Slow = seed%3 == 0
			m.take(b)
			got := b.live(func() {
				if chance.IntN(2) == 0 {
					b.bmc.Settle()
				}
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d, %d controllers died; without a death (-), with them (+):\n%s", seed, m.dead, diff)
			}
			deaths.Add(int64(m.dead))
		})
	}
}
