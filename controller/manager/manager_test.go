package manager

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestControllersAreSelectedByName(t *testing.T) {
	names := func(list []controller) (out []string) {
		for _, c := range list {
			out = append(out, c.name)
		}
		return out
	}
	hosts, err := selectControllers(nil)
	if want := []string{"host", "dataimage", "subscription", "preprovisioningimage"}; err != nil || !slices.Equal(names(hosts), want) || !slices.Equal(NamesOf(), want) {
		t.Errorf("selectControllers(nil) = %v, %v, NamesOf() = %v, want %v", names(hosts), err, NamesOf(), want)
	}
	if got := NamesOf("hoc", "machineconfig", "elemental"); !slices.Equal(got, Names()) {
		t.Errorf("NamesOf(hoc, machineconfig, elemental) = %v, want all of %v", got, Names())
	}
	if got := NamesOf("elemental"); !slices.Equal(got, append(NamesOf(), "elemental")) {
		t.Errorf("NamesOf(elemental) = %v, want those of hosts and elemental", got)
	}
	last := Names()[len(Names())-1]
	if got, err := selectControllers([]string{last}); err != nil || !slices.Equal(names(got), []string{last}) {
		t.Errorf("selectControllers(%s) = %v, %v", last, names(got), err)
	}
	for _, bad := range [][]string{{last, "racks"}, {}, {""}} {
		err := Check(bad)
		if err == nil || !strings.Contains(err.Error(), "use some of "+strings.Join(Names(), ", ")) {
			t.Errorf("Check(%q) = %v, want it to list the names that exist", bad, err)
		}
	}
	if _, err := New(t.Context(), Config{API: &rest.Config{}, Controllers: []string{"racks"}}); err == nil || !strings.Contains(err.Error(), `"racks"`) {
		t.Errorf("New = %v, want an error about racks", err)
	}
}

var (
	at  = client.ObjectKey{Namespace: "metalab-system", Name: "identity"}
	now = time.Unix(1_800_000_000, 0)
	ip  = net.IPv4(192, 0, 2, 5)
)

func TestIdentityIsStoredInASecret(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	one, err := Identity(t.Context(), c, at, now, ip)
	if err != nil {
		t.Fatalf("Identity: %v", err)
	}
	var s corev1.Secret
	if err := c.Get(t.Context(), at, &s); err != nil {
		t.Fatal(err)
	}
	if s.Immutable == nil || !*s.Immutable {
		t.Error("the Secret is not immutable: a change would lock out all agents")
	}
	two, err := Identity(t.Context(), c, at, now.Add(time.Hour), ip)
	if err != nil || two.CA != one.CA || string(two.Key) != string(one.Key) {
		t.Errorf("Identity again: %v, want the same authority and key", err)
	}
	if diff := cmp.Diff(one.Certificate.Leaf.SerialNumber.String(), two.Certificate.Leaf.SerialNumber.String()); diff == "" {
		t.Error("two processes have the same server certificate")
	}
}

// Of two processes that start at the same time, the slower one uses the Secret that
// the faster one has created.
func TestIdentityOfTheFasterProcessIsUsed(t *testing.T) {
	var first string
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if first == "" {
				first = "being made"
				id, err := Identity(ctx, c, at, now, ip)
				if err != nil {
					return err
				}
				first = id.CA
			}
			return c.Create(ctx, o, opts...)
		},
	})
	id, err := Identity(t.Context(), c, at, now, ip)
	if err != nil || id.CA != first {
		t.Errorf("Identity = %v, want that of the other process", err)
	}
}

func TestErrorNamesTheBrokenIdentitySecret(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}).Build()
	if _, err := Identity(t.Context(), c, at, now, ip); err == nil || !strings.Contains(err.Error(), at.String()) {
		t.Errorf("Identity of an empty secret = %v, want %s in it", err, at)
	}
}

// B-07: as many objects at a time as there are processors, from two to eight.
func TestDefaultWorkersFollowTheProcessors(t *testing.T) {
	for processors, want := range map[int]int{1: 2, 2: 2, 5: 5, 8: 8, 64: 8} {
		if got := DefaultWorkers(processors); got != want {
			t.Errorf("DefaultWorkers(%d) = %d, want %d", processors, got, want)
		}
	}
}

// B-07: the requests to the API are limited as the configuration says.
func TestRequestsToTheAPIAreLimited(t *testing.T) {
	for _, tt := range []struct {
		limit RequestLimit
		qps   float32
		burst int
	}{
		{RequestLimit{PerSecond: 20, Burst: 30}, 20, 30},
		{RequestLimit{}, -1, 0},
	} {
		mgr, err := newManager(Config{API: &rest.Config{Host: "http://127.0.0.1:1"}, Requests: tt.limit})
		if err != nil {
			t.Fatal(err)
		}
		if c := mgr.GetConfig(); c.QPS != tt.qps || c.Burst != tt.burst {
			t.Errorf("%+v: the client has %v requests per second and %d at once, want %v and %d", tt.limit, c.QPS, c.Burst, tt.qps, tt.burst)
		}
	}
}

// Agents get the address and certificates of the API that the controllers use, or those
// that are configured.
func TestAgentsReachTheAPIOfTheControllersOrAnother(t *testing.T) {
	api := &rest.Config{Host: "https://10.96.0.1:443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("cluster")}}
	for _, tt := range []struct{ given, want MachineAPI }{
		{want: MachineAPI{URL: "https://10.96.0.1:443", CA: []byte("cluster")}},
		{given: MachineAPI{URL: "https://api.example:6443"}, want: MachineAPI{URL: "https://api.example:6443", CA: []byte("cluster")}},
		{given: MachineAPI{URL: "https://api.example:6443", CA: []byte("front")}, want: MachineAPI{URL: "https://api.example:6443", CA: []byte("front")}},
	} {
		got, err := (&Config{API: api, MachineAPI: tt.given}).machineAPI()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
