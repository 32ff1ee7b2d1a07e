package lab

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/agent/sys"
	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestAccountsOfAgents provisions two Machines, and uses the tokens that their servers get
// with the API's own authorization: an agent reads its LCMMachine and the Secrets that its
// items name, no other object, and writes its status alone. Then an agent's account is made
// again, and another server's agent uses its token.
func TestAccountsOfAgents(t *testing.T) {
	w, admin := startWithoutControllers(t, config.HOC)
	grant(t, admin, withComponent(t, "hoc"))
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	end := runController(t, w, as, manager.Config{Controllers: []string{"provider", "lcm"}})
	defer end()
	p := providerLab{hocLab{t, admin}}
	p.create()
	p.createSecond()
	for _, name := range []string{"password", "other"} {
		if err := admin.Create(t.Context(), &corev1.Secret{ObjectMeta: p.meta(name), StringData: map[string]string{"a": name}}); err != nil {
			t.Fatal(err)
		}
	}
	tokens := map[string]string{}
	for _, name := range []string{"w-0", "w-1"} {
		tokens[name] = p.provision(name)
	}
	before := new(lcmv1.LCMMachine)
	if err := admin.Get(t.Context(), p.key("w-0"), before); err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	after.Spec.StateItemsOverwrites = map[string]map[string]string{"swap": {item.ParamSecretRef: Namespace + "/password"}}
	if err := admin.Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	clients := map[string]client.Client{}
	for name, token := range tokens {
		api := rest.AnonymousClientConfig(w.kube.api)
		api.BearerToken = token
		clients[name] = newClient(t, api)
	}
	patience.Await(t, "the agent may read the Secret of its item", func() bool {
		return clients["w-0"].Get(t.Context(), p.key("password"), new(corev1.Secret)) == nil
	})
	p.rights(clients)
	p.agents(w.kube.api, tokens["w-0"])
}

// rights uses the rights of both agents.
func (p providerLab) rights(clients map[string]client.Client) {
	p.t.Helper()
	ctx, lcmMachine := p.t.Context(), func(name string) *lcmv1.LCMMachine { return &lcmv1.LCMMachine{ObjectMeta: p.meta(name)} }
	secret := func(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: p.meta(name)} }
	get := func(agent string, o client.Object) error {
		return clients[agent].Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	empty := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"lcmOperationStuck":false}}`))
	for _, tt := range []struct {
		what    string
		do      func() error
		allowed bool
	}{
		{"its LCMMachine", func() error { return get("w-0", lcmMachine("w-0")) }, true},
		{"its status", func() error { return clients["w-0"].Status().Patch(ctx, lcmMachine("w-0"), empty) }, true},
		{"its next token", func() error { return get("w-0", secret("w-0-lcm-agent-token")) }, true},
		{"its item's Secret", func() error { return get("w-0", secret("password")) }, true},
		{"another Secret", func() error { return get("w-0", secret("other")) }, false},
		{"its user data", func() error { return get("w-0", secret("w-0-user-data")) }, false},
		{"its spec", func() error { return clients["w-0"].Patch(ctx, lcmMachine("w-0"), empty) }, false},
		{"its LCMMachine's deletion", func() error { return clients["w-0"].Delete(ctx, lcmMachine("w-0")) }, false},
		{"all LCMMachines", func() error {
			return clients["w-0"].List(ctx, new(lcmv1.LCMMachineList), client.InNamespace(Namespace))
		}, false},
		{"all Secrets", func() error { return clients["w-0"].List(ctx, new(corev1.SecretList), client.InNamespace(Namespace)) }, false},
		{"the Machine", func() error { return get("w-0", &clusterv1.Machine{ObjectMeta: p.meta("w-0")}) }, false},
		{"the other's LCMMachine", func() error { return get("w-1", lcmMachine("w-0")) }, false},
		{"the other's status", func() error { return clients["w-1"].Status().Patch(ctx, lcmMachine("w-0"), empty) }, false},
		{"the other's token", func() error { return get("w-1", secret("w-0-lcm-agent-token")) }, false},
		{"the other's Secret", func() error { return get("w-1", secret("password")) }, false},
	} {
		if err := tt.do(); tt.allowed != (err == nil) || !tt.allowed && !apierrors.IsForbidden(err) {
			p.t.Errorf("an agent and %s: %v, want allowed %t", tt.what, err, tt.allowed)
		}
	}
}

// agents runs the agents of two servers with one token.
func (p providerLab) agents(api *rest.Config, token string) {
	t := p.t
	t.Helper()
	first, second := startAgent(t, api, token, "0c:00:00:00:00:01"), (*testAgent)(nil)
	m := new(lcmv1.LCMMachine)
	await := func(what string, ok func() bool) {
		t.Helper()
		patience.Await(t, what, func() bool { return p.Get(t.Context(), p.key("w-0"), m) == nil && ok() }, m)
	}
	nics := func() (out []string) {
		if m.Status.HostInfo != nil && m.Status.HostInfo.Hardware != nil {
			for _, n := range m.Status.HostInfo.Hardware.Network.NICs {
				out = append(out, n.MACAddress)
			}
		}
		return out
	}
	await("the first agent reports", func() bool { return slices.Equal(nics(), []string{"0c:00:00:00:00:01"}) })
	second = startAgent(t, api, token, "0c:00:00:00:00:02")
	patience.Await(t, "the second agent says whose the LCMMachine is", func() bool {
		return strings.Contains(second.log.String(), "LCMMachine "+Namespace+"/w-0 is that of another server")
	})
	if await("the first agent's report is there", func() bool { return true }); !slices.Equal(nics(), []string{"0c:00:00:00:00:01"}) {
		t.Errorf("NICs %q, want the first agent's", nics())
	}

	// The account is made again: its first token ends with it.
	if err := p.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: p.meta("w-0-lcm-agent")}); err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{ObjectMeta: p.meta("w-0")}
	if err := p.Patch(t.Context(), machine, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"rotated":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	var s corev1.Secret
	patience.Await(t, "the provider renews the token", func() bool {
		return p.Get(t.Context(), p.key("w-0-lcm-agent-token"), &s) == nil && string(s.Data["token"]) != token
	})
	patience.Await(t, "the agent says what to do", func() bool {
		return strings.Contains(first.log.String(), "write the token of Secret "+Namespace+"/w-0-lcm-agent-token to /etc/lab-agent/token")
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"hostInfo":null}}`)) // which the agent writes again
	if err := p.Status().Patch(t.Context(), m, patch); err != nil {
		t.Fatal(err)
	}
	if err := first.host.Put(sys.File{Name: "/etc/lab-agent/token", Mode: 0o600, Content: s.Data["token"]}); err != nil {
		t.Fatal(err)
	}
	await("the agent goes on with the new token", func() bool { return slices.Equal(nics(), []string{"0c:00:00:00:00:01"}) })
}

// testAgent is an agent with a server's files in a directory.
type testAgent struct {
	host *sys.Host
	log  *safeBuffer
}

// startAgent runs the agent of w-0 on a server with one NIC until the test ends.
func startAgent(t *testing.T, api *rest.Config, token, mac string) *testAgent {
	t.Helper()
	host, err := sys.OpenHost(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &testAgent{host: host, log: &safeBuffer{}}
	err = host.Put(
		sys.File{Name: "/etc/lab-agent/ca.crt", Mode: 0o644, Content: api.CAData},
		sys.File{Name: "/etc/lab-agent/token", Mode: 0o600, Content: []byte(token)},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- lcm.Run(ctx, lcm.Config{
			Account: lcm.Account{Account: kubeapi.Account{Server: api.Host, CAFile: "/etc/lab-agent/ca.crt", TokenFile: "/etc/lab-agent/token"}, Namespace: Namespace, Machine: "w-0"},
			System:  host, Version: "v1", Clock: shortClock{}, Log: slog.New(slog.NewTextHandler(a.log, nil)),
			Hardware: func(context.Context) (job.Hardware, error) {
				return job.Hardware{Hostname: "w-0", NICs: []job.NIC{{Name: "eth0", MAC: mac, IP: "192.0.2.7"}}}, nil
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return a
}

// shortClock is real time with timers of a hundredth.
type shortClock struct{ clock.RealClock }

func (shortClock) NewTimer(d time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(d / 100) }

// safeBuffer is a buffer that is written while it is read.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// createSecond creates another Machine of the Cluster, and a host for it.
func (p providerLab) createSecond() {
	p.t.Helper()
	m, h := &clusterv1.Machine{ObjectMeta: p.meta("w-1")}, &metal3.BareMetalHost{ObjectMeta: p.meta("node-1")}
	m.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal, clusterv1.ClusterNameLabel: "c1"}
	m.Spec.ProviderSpec.Value = baremetalv1.MachineProviderSpec{Day1Provisioning: baremetalv1.GateAuto, Day1Deployment: baremetalv1.GateAuto}
	for _, o := range []client.Object{m, h} {
		if err := p.Create(p.t.Context(), o); err != nil {
			p.t.Fatal(err)
		}
	}
	p.state(h, metal3.StateAvailable)
}

// provision waits until a Machine writes its image to a host, makes the host provisioned,
// and returns the token of the server.
func (p providerLab) provision(name string) string {
	p.t.Helper()
	m, h := new(clusterv1.Machine), new(metal3.BareMetalHost)
	patience.Await(p.t, "the Machine "+name+" writes its image", func() bool {
		if p.Get(p.t.Context(), p.key(name), m) != nil {
			return false
		}
		_, host, _ := strings.Cut(m.Annotations[clusterv1.BareMetalHostAnnotation], "/")
		return host != "" && p.Get(p.t.Context(), p.key(host), h) == nil && h.Spec.Image != nil
	}, m, h)
	p.state(h, metal3.StateProvisioned)
	var s corev1.Secret
	patience.Await(p.t, "the LCMMachine of "+name+" names its token", func() bool {
		l := &lcmv1.LCMMachine{ObjectMeta: metav1.ObjectMeta{}}
		return p.Get(p.t.Context(), p.key(name), l) == nil && l.Status.TokenSecret != "" && p.Get(p.t.Context(), p.key(l.Status.TokenSecret), &s) == nil
	})
	return string(s.Data["token"])
}
