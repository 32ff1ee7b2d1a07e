package lab

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// BenchmarkLife takes hosts from their creation to available and then, all at once,
// to provisioned, with real Redfish requests, image bytes on sparse disks and the
// embedded API. One operation is all hosts. ms-floor/host is the floor: as many
// status updates by a client that does nothing else.
func BenchmarkLife(b *testing.B) {
	for _, hosts := range []int{32, 100, 1000} {
		b.Run(strconv.Itoa(hosts), func(b *testing.B) { benchmarkLife(b, hosts) })
	}
}

func benchmarkLife(b *testing.B, hosts int) {
	defer kube.TrimCollector()() // as labctl does
	w, err := Start(b.Context(), Config{Dir: b.TempDir(), Settings: Settings{Hosts: hosts, Speed: "max", Kube: true}, Listen: AnyPort})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			b.Error(err)
		}
	}()
	c, err := w.Kubernetes()
	if err != nil {
		b.Fatal(err)
	}
	raw := "raw"
	url := w.ImagesURL() + images.DemoRaw
	image := &metal3.Image{URL: url, Checksum: url + ".sha256", ChecksumType: metal3.SHA256, DiskFormat: &raw}
	var registered, provisioned, burnt, floor time.Duration
	var heap uint64
	for b.Loop() {
		began, cpu := time.Now(), processTime()
		each(b, w.Hosts(), func(ctx context.Context, h control.Host) error {
			secret, host := Objects(h)
			host.Spec.Online = false
			return errors.Join(c.Create(ctx, secret), c.Create(ctx, host))
		})
		awaitState(b, w.controllers.set.Cache(), hosts, metal3.StateAvailable)
		registered += time.Since(began)
		began = time.Now()
		each(b, w.Hosts(), func(ctx context.Context, h control.Host) error {
			host := &metal3.BareMetalHost{}
			host.Name, host.Namespace = h.Name, Namespace
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"online": true, "image": image}})
			return errors.Join(err, c.Patch(ctx, host, client.RawPatch(types.MergePatchType, patch)))
		})
		awaitState(b, w.controllers.set.Cache(), hosts, metal3.StateProvisioned)
		provisioned += time.Since(began)
		burnt += processTime() - cpu

		b.StopTimer()
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		heap = max(heap, mem.HeapAlloc)
		floor += statusFloor(b, c)
		if err := c.DeleteAllOf(b.Context(), &metal3.BareMetalHost{}, client.InNamespace(Namespace)); err != nil {
			b.Fatal(err)
		}
		await(b, c, pollEvery(hosts), &metal3.BareMetalHostList{}, isEmpty)
		await(b, c, pollEvery(hosts), &corev1.SecretList{}, isEmpty) // the garbage collector takes them
		b.StartTimer()
	}
	n := float64(b.N)
	b.ReportMetric(registered.Seconds()/n, "s-available")
	b.ReportMetric(provisioned.Seconds()/n, "s-provisioned")
	b.ReportMetric(float64(burnt.Milliseconds())/n/float64(hosts), "cpu-ms/host")
	b.ReportMetric(float64(floor.Milliseconds())/n/float64(hosts), "ms-floor/host")
	b.ReportMetric(float64(heap)/1e6, "MB-heap")
}

// each calls do for every host, eight at a time, as kubectl and a script do.
func each(b *testing.B, all []control.Host, do func(context.Context, control.Host) error) {
	b.Helper()
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(8)
	for _, h := range all {
		g.Go(func() error { return do(ctx, h) })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

// statusFloor returns how long the twelve status writes of each host take alone.
func statusFloor(b *testing.B, c client.Client) time.Duration {
	b.Helper()
	var l metal3.BareMetalHostList
	if err := c.List(b.Context(), &l, client.InNamespace(Namespace)); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(8)
	for i := range l.Items {
		h := &l.Items[i]
		h.Annotations = map[string]string{metal3.PausedAnnotation: ""} // the controller does nothing meanwhile
		g.Go(func() error {
			if err := c.Update(ctx, h); err != nil {
				return err
			}
			for range 12 {
				now := metav1.Now()
				h.Status.LastUpdated, h.Status.ErrorCount = &now, h.Status.ErrorCount+1
				if err := c.Status().Update(ctx, h); err != nil {
					return err
				}
			}
			h.Annotations = nil
			return c.Update(ctx, h)
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// processTime returns the CPU time of this process, which other processes on the
// machine hardly affect.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func awaitState(b *testing.B, c client.Reader, hosts int, s metal3.ProvisioningState) {
	b.Helper()
	await(b, c, pollEvery(hosts), &metal3.BareMetalHostList{}, func(l client.ObjectList) bool {
		n := 0
		for _, h := range l.(*metal3.BareMetalHostList).Items {
			if h.Status.Provisioning.State == s {
				n++
			}
		}
		return n == hosts
	})
}

func isEmpty(l client.ObjectList) bool { return meta.LenList(l) == 0 }

// await polls rarely, since a list of all hosts costs as much as many writes. Waits
// for hosts read the controllers' cache.
func await(b *testing.B, c client.Reader, every time.Duration, l client.ObjectList, ok func(client.ObjectList) bool) {
	b.Helper()
	err := wait.PollUntilContextTimeout(b.Context(), every, 20*time.Minute, true, func(ctx context.Context) (bool, error) {
		// ok only reads the list: a copy of a thousand hosts is not needed.
		err := c.List(ctx, l, client.InNamespace(Namespace), client.UnsafeDisableDeepCopy)
		return ok(l), err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// pollEvery returns an interval at which polling costs a few per cent of the work.
func pollEvery(hosts int) time.Duration {
	return max(100*time.Millisecond, time.Duration(hosts)*3*time.Millisecond)
}
