package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// fleet is a lab of the family hoc with machines without servers. Their agents are halted:
// nothing but the controllers writes after the fleet is made.
type fleet struct {
	t testing.TB
	w *Lab
	client.WithWatch
	writes   *writes
	machines int // m-0, m-1, …; every tenth one is not selected
}

const (
	configsOfFleet = 5    // entries in spec.configs of one HostOSConfiguration
	fleetPatience  = 2000 // polls
)

// writes counts the requests of controllers that write, by object and fields.
type writes struct {
	mu    sync.Mutex
	count map[string]int
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return doer(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/events") {
			return next.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, resource, _ := strings.Cut(r.URL.Path, "/namespaces/"+Namespace+"/")
		w.mu.Lock()
		w.count[resource+": "+strings.Join(fieldsOf(body), " ")]++
		w.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// doer is a function that is an http.RoundTripper.
type doer func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (d doer) RoundTrip(r *http.Request) (*http.Response, error) { return d(r) }

// fieldsOf returns the names of the fields of spec and status that a document has, sorted.
func fieldsOf(document []byte) (out []string) {
	var o map[string]map[string]any
	if json.Unmarshal(document, &o) != nil {
		return []string{"all"}
	}
	for _, part := range []string{"spec", "status"} {
		out = append(out, slices.Sorted(maps.Keys(o[part]))...)
	}
	return out
}

// take returns the writes since the last call.
func (w *writes) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.count
	w.count = map[string]int{}
	return out
}

// newFleet makes the lab: every item of every selected machine has succeeded.
func newFleet(t testing.TB, machines int) *fleet {
	t.Helper()
	w, err := Start(t.Context(), Config{
		Dir: t.TempDir(), Settings: Settings{Hosts: 1, Speed: "max", Kube: true, NoController: true, With: []string{config.HOC}}, Listen: AnyPort,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := w.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t, w, admin, &writes{count: map[string]int{}}, machines}
	f.must(f.Create(t.Context(), f.modules()))
	f.must(f.Create(t.Context(), &lcmv1.LCMCluster{ObjectMeta: f.meta("c1"), Spec: lcmv1.LCMClusterSpec{
		LCMType: lcmv1.LCMTypeK0s, MachinesTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: {}, lcmv1.MachineWorker: {}},
		ManagementClusterEndpoint: lcmv1.Endpoint{Host: "127.0.0.1", Port: 6443}, HelmControllerServiceAccountName: "helm",
	}}))
	f.each(f.create)
	w.kube.api = rest.CopyConfig(w.kube.api)
	w.kube.api.Wrap(f.writes.wrap)
	f.must(w.StartControllers(t.Context()))
	for i, name := range []string{"tuning", "other"} {
		f.must(f.Create(t.Context(), f.configuration(name, i)))
	}
	f.await("the items reach the machines", func(l *lcmv1.LCMMachine) bool { return len(l.Spec.StateItems) == 2*configsOfFleet*len(l.Labels) })
	f.each(f.execute)
	f.settle()
	return f
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Namespace, Name: name}
}

func (f *fleet) name(i int) string { return fmt.Sprintf("m-%d", i) }

// selected reports whether the configuration that changes selects a machine.
func selected(i int) bool { return i%10 != 9 }

// each calls do for every machine, eight at a time.
func (f *fleet) each(do func(ctx context.Context, i int) error) {
	f.t.Helper()
	g, ctx := errgroup.WithContext(f.t.Context())
	g.SetLimit(8)
	for i := range f.machines {
		g.Go(func() error { return do(ctx, i) })
	}
	f.must(g.Wait())
}

// modules serves archives of five modules and returns their list.
func (f *fleet) modules() *kaasv1.HostOSConfigurationModules {
	archives := map[string][]byte{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(archives[r.URL.Path]) }))
	f.t.Cleanup(s.Close)
	o := &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: "custom"}}
	for i := range configsOfFleet {
		name := fmt.Sprintf("module-%d", i)
		data, m, err := module.Build(fstest.MapFS{
			"metadata.yaml": {Data: []byte("name: " + name + "\nversion: 1.0.0\nplaybook: main.yaml\n")},
			"main.yaml":     {Data: []byte("- hosts: all\n")},
		})
		f.must(err)
		uri := path.Join("/", m.FileName())
		archives[uri] = data
		o.Spec.Modules = append(o.Spec.Modules, kaasv1.Module{Name: kaasv1.ModuleName(name), Version: "1.0.0", SHA256Sum: m.SHA256, URL: s.URL + uri})
	}
	return o
}

func (f *fleet) configuration(name string, value int) *kaasv1.HostOSConfiguration {
	o := &kaasv1.HostOSConfiguration{ObjectMeta: f.meta(name)}
	o.Spec.MachineSelector.MatchLabels = map[string]string{name: "true"}
	for i := range configsOfFleet {
		o.Spec.Configs = append(o.Spec.Configs, kaasv1.Config{
			Module: kaasv1.ModuleName(fmt.Sprintf("module-%d", i)), ModuleVersion: "1.0.0", Values: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"value":%d}`, value)},
		})
	}
	return o
}

// create creates a Machine that is Ready, and its LCMMachine.
func (f *fleet) create(ctx context.Context, i int) error {
	meta := f.meta(f.name(i))
	meta.Labels = map[string]string{"other": "true"} // a label for each configuration that selects the machine
	if selected(i) {
		meta.Labels["tuning"] = "true"
	}
	m := &clusterv1.Machine{ObjectMeta: meta}
	l := &lcmv1.LCMMachine{ObjectMeta: meta, Spec: lcmv1.LCMMachineSpec{ClusterName: "c1", Type: lcmv1.MachineWorker, LCMType: lcmv1.LCMTypeK0s, HaltAgent: true}}
	if err := errors.Join(f.Create(ctx, m), f.Create(ctx, l)); err != nil {
		return err
	}
	m.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{Status: "Ready", Ready: true}
	l.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "10.0.0.5"}}
	return errors.Join(f.Status().Update(ctx, m), f.Status().Update(ctx, l))
}

// execute reports the success of every item of a machine.
func (f *fleet) execute(ctx context.Context, i int) error {
	l := &lcmv1.LCMMachine{}
	if err := f.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: f.name(i)}, l); err != nil {
		return err
	}
	before := l.DeepCopy()
	l.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
	for _, it := range l.Spec.StateItems {
		if len(it.Params) > 0 {
			l.Status.StateItemStatuses[it.Name] = lcmv1.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1, FinishedAt: ptr.To(metav1.Now())}
		}
	}
	return f.Status().Patch(ctx, l, client.MergeFrom(before))
}

// await waits until ok accepts every machine. It reads the cache of the controllers.
func (f *fleet) await(what string, ok func(*lcmv1.LCMMachine) bool) {
	f.t.Helper()
	var last string
	for range fleetPatience {
		var list lcmv1.LCMMachineList
		f.must(f.w.controllers.set.Cache().List(f.t.Context(), &list, client.InNamespace(Namespace), client.UnsafeDisableDeepCopy))
		missing := slices.IndexFunc(list.Items, func(l lcmv1.LCMMachine) bool { return !ok(&l) })
		if missing < 0 && len(list.Items) == f.machines {
			return
		}
		last = fmt.Sprintf("%d machines", len(list.Items))
		if missing >= 0 {
			last = fmt.Sprintf("%+v", list.Items[missing])
		}
		select {
		case <-f.t.Context().Done():
			f.t.Fatalf("%s: %v", what, f.t.Context().Err())
		case <-time.After(pollEvery(f.machines)):
		}
	}
	f.t.Fatalf("not in time: %s: %s", what, last)
}

// settle lets the controllers act until none of them writes.
func (f *fleet) settle() {
	f.t.Helper()
	for f.writes.take(); ; {
		f.must(f.w.Pass(f.t.Context(), 0))
		if len(f.writes.take()) == 0 {
			return
		}
	}
}

// change changes the values of one config of tuning, and returns when every selected
// machine has them in its items.
func (f *fleet) change(value int) {
	f.t.Helper()
	patch := []byte(fmt.Sprintf(`[{"op":"replace","path":"/spec/configs/2/values","value":{"value":%d}}]`, value))
	f.must(f.Patch(f.t.Context(), &kaasv1.HostOSConfiguration{ObjectMeta: f.meta("tuning")}, client.RawPatch(types.JSONPatchType, patch)))
	want := fmt.Sprintf(`{"value":%d}`, value)
	f.await("the values reach the selected machines", func(l *lcmv1.LCMMachine) bool {
		if l.Labels["tuning"] == "" {
			return true
		}
		at := slices.IndexFunc(l.Spec.StateItems, func(it lcmv1.LCMStateItem) bool { return it.Name == "host-os-tuning-module-2-1.0.0-reconfigure" })
		return l.Spec.StateItems[at].Params[item.ParamValues] == want && l.Status.State == lcmv1.StateReconfigure
	})
}

// statement H27: the change of one of five configs of one HostOSConfiguration is written
// once to each object by each controller: the overwrites of a selected machine, its items
// and its state, and the status of the configuration by its validation and its states. The
// items of the LCMCluster, another configuration and machines that are not selected are not
// written.
func TestChangeOfAConfigurationIsWrittenOnce(t *testing.T) {
	f := newFleet(t, 50)
	want := map[string]int{
		"hostosconfigurations/tuning/status: observedGeneration specUpdatedAt updatedAt":      1,
		"hostosconfigurations/tuning/status: conditions machinesDone machinesStates progress": 1,
	}
	for i := range f.machines {
		if lcmMachine := "lcmmachines/" + f.name(i); selected(i) {
			want[lcmMachine+": stateItemsOverwrites"], want[lcmMachine+": stateItems"], want[lcmMachine+"/status: state"] = 1, 1, 1
		}
	}
	f.change(7)
	f.must(f.w.Pass(t.Context(), 0))
	got := f.writes.take()
	// Ready machines are counted each five seconds of the lab's time, which runs at full speed.
	delete(got, "lcmclusters/c1/status: readyNodes")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes of the controllers (-want +got):\n%s", diff)
	}
	f.settle()
	if got := f.writes.take(); len(got) > 0 {
		t.Errorf("writes without a change: %v", got)
	}
}

// BenchmarkHostOSConfiguration changes one of two HostOSConfigurations with five configs
// each, on 1,000 machines of which it selects 900. One operation is a change that has
// reached the items of all of them, and the agents' results; the metrics are of the change
// alone. The machines have no servers.
func BenchmarkHostOSConfiguration(b *testing.B) {
	defer kube.TrimCollector()() // as labctl does
	const machines = 1000
	f := newFleet(b, machines)
	var took, burnt time.Duration
	requests := 0
	value := 10
	for b.Loop() {
		f.writes.take()
		began, cpu := time.Now(), processTime()
		f.change(value)
		took += time.Since(began)
		burnt += processTime() - cpu
		value++

		b.StopTimer()
		f.must(f.w.Pass(b.Context(), 0))
		for _, n := range f.writes.take() {
			requests += n
		}
		f.each(f.execute)
		f.settle()
		b.StartTimer()
	}
	n := float64(b.N)
	b.ReportMetric(took.Seconds()/n, "s-change")
	b.ReportMetric(float64(burnt.Microseconds())/1000/n/(machines*9/10), "cpu-ms/machine")
	b.ReportMetric(float64(requests)/n/(machines*9/10), "writes/machine")
}
