package world

import (
	"context"
	"errors"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/scenarios/images"
)

// BenchmarkProvision takes hosts from kubectl apply to provisioned, all at once
// and as fast as there is work: real Redfish calls, real image bytes, the
// embedded API. One operation is all hosts.
func BenchmarkProvision(b *testing.B) {
	const hosts = 32
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
	for b.Loop() {
		for _, h := range w.Hosts() {
			secret, host := Objects(h)
			host.Spec.Image = &metal3.Image{URL: url, Checksum: url + ".sha256", ChecksumType: metal3.SHA256, DiskFormat: &raw}
			if err := errors.Join(c.Create(b.Context(), secret), c.Create(b.Context(), host)); err != nil {
				b.Fatal(err)
			}
		}
		await(b, c, &metal3.BareMetalHostList{}, func(l client.ObjectList) bool {
			n := 0
			for _, h := range l.(*metal3.BareMetalHostList).Items {
				if h.Status.Provisioning.State == metal3.StateProvisioned {
					n++
				}
			}
			return n == hosts
		})
		b.StopTimer()
		if err := c.DeleteAllOf(b.Context(), &metal3.BareMetalHost{}, client.InNamespace(Namespace)); err != nil {
			b.Fatal(err)
		}
		await(b, c, &metal3.BareMetalHostList{}, isEmpty)
		await(b, c, &corev1.SecretList{}, isEmpty) // the garbage collector takes them
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/hosts, "ms/host")
}

func isEmpty(l client.ObjectList) bool { return meta.LenList(l) == 0 }

// await polls rarely: a list of all hosts costs as much as a write.
func await(b *testing.B, c client.Client, l client.ObjectList, ok func(client.ObjectList) bool) {
	b.Helper()
	err := wait.PollUntilContextTimeout(b.Context(), 250*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.List(ctx, l, client.InNamespace(Namespace))
		return ok(l), err
	})
	if err != nil {
		b.Fatal(err)
	}
}
