package lab

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// BenchmarkMachineConfigRollout rolls a change out to nodes of which 10 % may be unavailable. Each
// node has the product's daemon, with the rights of its account, TLS connections of its own and a
// system that boots; there are no servers below. The metrics are of all: daemons, API, controllers
// and the registry. The first change is of files, which daemons write; the second one makes the
// pool layered, and builds an image that every node pulls and boots (LayeredFileWrites Skip).
func BenchmarkMachineConfigRollout(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) { benchmarkRollout(b, nodes) })
	}
}

func benchmarkRollout(b *testing.B, nodes int) {
	defer kube.TrimCollector()() // as labctl does
	var writes writeCount
	count := func(next http.RoundTripper) http.RoundTripper {
		return doer(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				writes.add(r)
			}
			return next.RoundTrip(r)
		})
	}
	w, err := Start(b.Context(), Config{
		Dir: b.TempDir(), Settings: Settings{Hosts: 1, Speed: "max", Kube: true, NoController: true, With: []string{config.MachineConfig}}, Listen: AnyPort,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Stop(); err != nil {
			b.Error(err)
		}
	})
	admin, err := w.Kubernetes()
	if err != nil {
		b.Fatal(err)
	}
	startNodes(b, w, admin, nodes, count)
	w.kube.api = rest.CopyConfig(w.kube.api)
	w.kube.api.Wrap(count)
	l := &layering{t: b, WithWatch: admin, daemons: &daemons{}}
	_, l.host = w.Registry()
	l.watch()
	l.setMaxUnavailable(intstr.FromString("10%"))
	if err := w.StartControllers(b.Context()); err != nil {
		b.Fatal(err)
	}
	l.awaitUpdated("")
	for _, kind := range []string{"files", "image"} {
		b.Run(kind, func(b *testing.B) {
			var took, burnt time.Duration
			var requests int64
			round := 0
			for b.Loop() {
				began, cpu, before := time.Now(), processTime(), writes.all.Load()
				name := fmt.Sprintf("50-%s-%d", kind, round)
				l.create(l.machineConfig(name, "/etc/"+name, "x"))
				if kind == "image" && round == 0 {
					l.create(l.osConfig("FROM configs AS final\n"))
				}
				l.awaitUpdated(name)
				took += time.Since(began)
				burnt += processTime() - cpu
				requests += writes.all.Load() - before
				round++
			}
			writes.log(b, nodes)
			n := float64(b.N)
			b.ReportMetric(took.Seconds()/n, "s-change")
			b.ReportMetric(float64(burnt.Microseconds())/1000/n/float64(nodes), "cpu-ms/node")
			b.ReportMetric(float64(requests)/n/float64(nodes), "writes/node")
		})
	}
	l.daemons.mu.Lock()
	defer l.daemons.mu.Unlock()
	if l.daemons.most > nodes/10 {
		b.Errorf("%d nodes were updated at a time, want at most %d", l.daemons.most, nodes/10)
	}
}

// writeCount counts the requests that write, by what they write.
type writeCount struct {
	all atomic.Int64

	mu   sync.Mutex
	each map[string]int // by method and path without names
}

// objectNames are names and namespaces in the path of a request.
var objectNames = regexp.MustCompile(`(/namespaces)/[^/]+|((?:nodes|machineconfigs|machineconfigpools|machineconfignodes|leases|events|jobs|configmaps|secrets|serviceaccounts|machineosbuilds|machineosconfigs))/[^/]+`)

func (w *writeCount) add(r *http.Request) {
	w.all.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.each == nil {
		w.each = map[string]int{}
	}
	w.each[r.Method+" "+objectNames.ReplaceAllString(r.URL.Path, "$1$2")]++
}

// log logs the counts of what is written for at least a tenth of the nodes, and begins anew.
func (w *writeCount) log(b *testing.B, nodes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(w.each)) {
		if n := w.each[what]; n >= nodes/10 {
			b.Logf("%6d %s", n, what)
		}
	}
	w.each = nil
}

// awaitUpdated waits until all nodes have a configuration that a MachineConfig is a part of; ""
// means any.
func (l *layering) awaitUpdated(name string) {
	l.t.Helper()
	err := wait.PollUntilContextTimeout(l.t.Context(), 50*time.Millisecond, 30*time.Minute, true, func(ctx context.Context) (bool, error) {
		p := new(mcv1.MachineConfigPool)
		if err := l.Get(ctx, client.ObjectKey{Name: "worker"}, p); err != nil {
			return false, err
		}
		has := name == ""
		for _, s := range p.Status.Configuration.Source {
			has = has || s.Name == name
		}
		c := machineconfig.Condition(p, mcv1.MachineConfigPoolUpdated)
		return has && c != nil && c.Status == corev1.ConditionTrue && p.Status.MachineCount > 0, nil
	})
	if err != nil {
		l.t.Fatalf("the pool is not updated with %s: %v: %+v", name, err, l.pool().Status)
	}
}
