package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
)

const (
	hostName = "node-0"
	imageURL = "http://192.0.2.1/image"
)

// bench is one host with a BMC and an agent, and a controller that can be replaced
// at any point.
type bench struct {
	t      *testing.T
	kube   client.WithWatch
	bmc    *bmctest.Fake
	clock  *testclock.FakeClock
	chance *rand.Rand
	r      *Reconciler

	// The controller's access to the API and the BMC; nil means the user's.
	api  client.Client
	open bmc.Open

	statusWrites int
	conflicts    int // number of updates that will meet a conflict
	kill         context.CancelFunc

	network *netboot.Network // nil if there is none
	parts   []Part

	// The agent's memory, which lasts for the boot, not for the controller.
	boot      string
	keys      int // keys that agents have made: each boot of the server makes one
	resets    int // resets of the server so far
	done      map[string]job.Report
	deaf      bool // the agent does not report
	ran       []job.Kind
	last      job.Job // last job that it ran
	answers   map[job.Kind]job.Report
	agentDoes func(job.Job) // effect of a finished job on the server

	beforeAgent func() // called in each pass before the agent
}

func newBench(t *testing.T, seed uint64, change func(*metal3.BareMetalHost)) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), metal3.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	h := &metal3.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Name: hostName, Namespace: "lab", UID: "u-1"},
		Spec: metal3.BareMetalHostSpec{Online: true, BMC: metal3.BMCDetails{
			Address: "redfish-virtualmedia://192.0.2.2/redfish/v1/Systems/1", CredentialsName: "secret",
		}},
	}
	if change != nil {
		change(h)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "secret", Namespace: "lab"},
		Data:       map[string][]byte{"username": []byte(" admin\n"), "password": []byte("good\n")},
	}
	b := &bench{
		t: t, bmc: &bmctest.Fake{Credentials: bmc.Credentials{Username: "admin", Password: "good"}},
		clock: testclock.NewFakeClock(time.Unix(1_800_000_000, 0)), chance: rand.New(rand.NewPCG(seed, 0)),
		answers: map[job.Kind]job.Report{
			job.Inventory: {State: job.Done, Inventory: &job.Hardware{Hostname: hostName, CPU: job.CPU{MHz: 2100.4}}},
			job.Clean:     {State: job.Done},
			job.Write:     {State: job.Done, Written: &job.Written{Device: "/dev/sda"}},
			job.Custom:    {State: job.Done},
		},
	}
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(h, secret).WithStatusSubresource(h, &metal3.DataImage{}, &metal3.PreprovisioningImage{})
	for _, x := range indexes {
		objects.WithIndex(h, x.field, x.index)
	}
	b.kube = interceptor.NewClient(objects.Build(), interceptor.Funcs{SubResourceUpdate: b.statusUpdate, Update: b.update})
	b.replace()
	return b
}

func (b *bench) update(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
	if b.conflicts > 0 {
		b.conflicts--
		return apierrors.NewConflict(schema.GroupResource{Resource: "baremetalhosts"}, o.GetName(), errors.New("somebody else was faster"))
	}
	return c.Update(ctx, o, opts...)
}

func (b *bench) statusUpdate(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
	b.statusWrites++
	return c.SubResource(sub).Update(ctx, o, opts...)
}

// replace starts a controller without any memory.
func (b *bench) replace() {
	key := make(inband.Key, inband.KeySize)
	agents, err := inband.New(inband.Config{Key: key, URL: "https://192.0.2.3", Clock: b.clock})
	if err != nil {
		b.t.Fatal(err)
	}
	media, err := netboot.New(netboot.Config{Key: key, URL: "http://192.0.2.3", Media: agents.Media, Net: b.network})
	if err != nil {
		b.t.Fatal(err)
	}
	api, open := b.api, b.open
	if api == nil {
		api, open = b.kube, b.bmc.Open
	}
	b.r, err = New(Config{
		Client: api, Reader: api, Inband: agents, Boot: media, Clock: b.clock, Wall: b.clock,
		BMCs:   &bmc.Pool{Drivers: map[string]bmc.Open{"redfish": open, "ipmi": open}},
		Chance: b.chance.Float64,
		Parts:  b.parts,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) host() *metal3.BareMetalHost {
	var h metal3.BareMetalHost
	if err := b.kube.Get(context.Background(), client.ObjectKey{Namespace: "lab", Name: hostName}, &h); err != nil {
		return nil
	}
	return &h
}

func (b *bench) change(edit func(*metal3.BareMetalHost)) {
	b.t.Helper()
	h := b.host()
	edit(h)
	if err := b.kube.Update(context.Background(), h); err != nil {
		b.t.Fatal(err)
	}
}

// pass makes one pass and advances the clock to the next.
func (b *bench) pass() (ctrl.Result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.kill = cancel
	res, err := b.r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "lab", Name: hostName}})
	if ctx.Err() != nil {
		b.replace()
	}
	if b.beforeAgent != nil {
		b.beforeAgent()
	}
	b.agent()
	b.clock.Step(max(res.RequeueAfter, time.Second))
	return res, err
}

// until makes passes until ok returns true.
func (b *bench) until(what string, ok func(*metal3.BareMetalHost) bool) {
	b.t.Helper()
	for range 2000 {
		if ok(b.host()) {
			return
		}
		if _, err := b.pass(); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, errDead) {
			b.t.Fatalf("%s: Reconcile: %v", what, err)
		}
	}
	b.t.Fatalf("%s: not after 2000 passes: %+v", what, b.host().Status)
}

func in(s metal3.ProvisioningState) func(*metal3.BareMetalHost) bool {
	return func(h *metal3.BareMetalHost) bool { return h != nil && h.Status.Provisioning.State == s }
}

// agent runs one step of the agent on a server that has booted the current medium.
func (b *bench) agent() {
	h := b.host()
	sys, _ := b.bmc.Now()
	if h == nil || sys.Power != bmc.On {
		b.boot = ""
		return
	}
	boot, _ := currentBoot(h)
	if b.deaf {
		return
	}
	if b.network == nil && (boot.ID == "" || b.bmc.Booted() != b.r.Boot.ISO(boot)) {
		return
	}
	if b.network != nil {
		if n := b.verbs(bmctest.SetPower, func(c bmctest.Call) bool { return c.Power == bmc.PowerReset }); n != b.resets {
			b.resets, b.boot = n, "" // the running system is gone
		}
		if !b.bootsByNetwork() {
			return
		}
		if b.boot != "" { // it runs what it has booted, whatever medium is current
			boot.ID = b.boot
		}
	}
	if b.boot != boot.ID {
		b.boot, b.done = boot.ID, map[string]job.Report{}
		b.keys++
	}
	token := b.r.Inband.Media(boot).Token
	for {
		var j job.Job
		if code := b.post(job.LeasePath, token, job.Lease{}, &j); code != http.StatusOK {
			return
		}
		rep, known := b.done[j.ID]
		if !known {
			rep = b.answers[j.Kind]
			b.done[j.ID] = rep
			b.ran, b.last = append(b.ran, j.Kind), j
			if b.agentDoes != nil {
				b.agentDoes(j)
			}
		}
		if code := b.post(fmt.Sprintf(job.ReportPath, j.ID), token, rep, nil); code != http.StatusNoContent {
			b.t.Fatalf("report %s: %d", j.ID, code)
		}
		if rep.State == job.Running { // the job continues
			return
		}
	}
}

func (b *bench) post(path, token string, in, out any) int {
	return b.postAs(fmt.Sprint(b.keys), path, token, in, out)
}

// postAs posts as the agent with a key.
func (b *bench) postAs(key, path, token string, in, out any) int {
	raw, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(raw))
	req.Header.Set("Authorization", "Bearer "+token)
	req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{RawSubjectPublicKeyInfo: []byte(key)}}}
	w := httptest.NewRecorder()
	b.r.Inband.ServeHTTP(w, req)
	if out != nil && w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			b.t.Fatal(err)
		}
	}
	return w.Code
}

func withImage(h *metal3.BareMetalHost) {
	raw := "raw"
	h.Spec.Image = &metal3.Image{URL: imageURL, Checksum: "d41d8cd98f00b204e9800998ecf8427e", DiskFormat: &raw}
}
