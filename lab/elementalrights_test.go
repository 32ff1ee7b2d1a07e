package lab

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/elemental"
	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestElementalWorksWithTheRightsOfTheManifests runs the controllers and the API for agents as the
// service account that they have in a cluster, from a registration to the reset of its host
// (statements E-01, E-05, E-13, E-17, E-20, E-25, E-29 and E-30). The product's agent acts on
// the server, and the test acts as Cluster API's core.
func TestElementalWorksWithTheRightsOfTheManifests(t *testing.T) {
	w, admin := startWithoutControllers(t, config.Elemental)
	grant(t, admin, withComponent(t, "elemental"))
	var refused refusals
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	as.Wrap(refused.watch)
	key := client.ObjectKey{Namespace: accountNamespace, Name: "lab-controller-identity"}
	id, err := manager.Identity(t.Context(), newClient(t, as), key, time.Now(), net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	end := runController(t, w, as, manager.Config{Controllers: []string{"elemental"}, Elemental: &manager.Elemental{Endpoint: endpoint(t, "https"), CA: id.CA}})
	defer end()
	l := elementalLife{t: t, admin: admin}
	l.register()
	l.bootstrap()
	l.reset()
	end()
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if refused.list != nil {
		t.Errorf("the service account was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}

// elementalLife is the life of one server with the dummy plugin.
type elementalLife struct {
	t      *testing.T
	admin  client.WithWatch
	system *memorySystem
	host   string
}

func (l *elementalLife) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Namespace, Name: name}
}

func (l *elementalLife) create(o client.Object) {
	l.t.Helper()
	if err := l.admin.Create(l.t.Context(), o); err != nil {
		l.t.Fatal(err)
	}
}

func (l *elementalLife) get(o client.Object) bool {
	return l.admin.Get(l.t.Context(), client.ObjectKeyFromObject(o), o) == nil
}

func (l *elementalLife) agent() elemental.Config {
	return elemental.Config{System: l.system, Plugins: elemental.Makers{elemental.DummyPlugin: func(s elemental.System) elemental.Plugin { return &elemental.Dummy{System: s} }}}
}

func (l *elementalLife) register() {
	l.t.Helper()
	g := &elementalv1.ElementalRegistration{ObjectMeta: l.meta("fire")}
	g.Spec.Config.Elemental.Agent.OSPlugin = elemental.DummyPlugin
	g.Spec.Config.Elemental.Agent.Reconciliation = 10 * time.Millisecond
	l.create(g)
	patience.Await(l.t, "the registration is ready", func() bool { return l.get(g) && condition.IsTrue(g, capi.ReadyCondition) }, g)
	registration := g.Spec.Config.Elemental.Registration
	f := elemental.File{
		Registration: elemental.Registration{URI: registration.URI, CACert: registration.CACert, Token: registration.Token},
		Agent:        elemental.Options{OSPlugin: elemental.DummyPlugin, WorkDir: elemental.DefaultWorkDir, Reconciliation: elemental.Duration(10 * time.Millisecond)},
	}
	text, err := f.Marshal()
	if err != nil {
		l.t.Fatal(err)
	}
	l.system = &memorySystem{files: map[string][]byte{elemental.DefaultConfigFile: text}}
	if err := elemental.Register(l.t.Context(), l.agent(), true); err != nil {
		l.t.Fatal(err)
	}
	var hosts elementalv1.ElementalHostList
	if err := l.admin.List(l.t.Context(), &hosts); err != nil || len(hosts.Items) != 1 {
		l.t.Fatalf("there are %d ElementalHosts, %v, want 1", len(hosts.Items), err)
	}
	l.host = hosts.Items[0].Name
	l.system.files["/etc/hostname"] = []byte(l.host + "\n") // the server has booted its disk
}

// bootstrap makes the server the first machine of a cluster.
func (l *elementalLife) bootstrap() {
	l.t.Helper()
	l.create(&corev1.Secret{ObjectMeta: l.meta("m-0"), Data: map[string][]byte{"value": []byte("#cloud-config\n"), "format": []byte("cloud-config")}})
	objects := ElementalCluster("life", "m-0")
	for _, o := range objects {
		l.create(o)
	}
	cluster, machine, infra := objects[1].(*capi.Cluster), objects[2].(*capi.Machine), objects[3].(*elementalv1.ElementalMachine)
	cluster.Status.InfrastructureReady = true
	cluster.Status.Conditions = capi.Conditions{{Type: capi.ControlPlaneInitializedCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if err := l.admin.Status().Update(l.t.Context(), cluster); err != nil {
		l.t.Fatal(err)
	}
	before := machine.DeepCopy()
	name := "m-0"
	machine.Spec.Bootstrap.DataSecretName = &name
	if err := l.admin.Patch(l.t.Context(), machine, client.MergeFrom(before)); err != nil {
		l.t.Fatal(err)
	}
	owned := infra.DeepCopy()
	infra.OwnerReferences = []metav1.OwnerReference{{APIVersion: capi.GroupVersion.String(), Kind: "Machine", Name: machine.Name, UID: machine.UID}}
	if err := l.admin.Patch(l.t.Context(), infra, client.MergeFrom(owned)); err != nil {
		l.t.Fatal(err)
	}
	l.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.host}})
	h := &elementalv1.ElementalHost{ObjectMeta: l.meta(l.host)}
	patience.Await(l.t, "the host has bootstrap data", func() bool { return l.get(h) && h.Spec.BootstrapSecret != nil }, h)
	if err := elemental.Run(l.t.Context(), l.agent()); err != nil { // until the reboot
		l.t.Fatal(err)
	}
	l.system.files[elemental.SentinelFile] = []byte("success\n")
	l.runUntil("the machine is ready", func() bool {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.host}}
		return l.get(infra) && infra.Status.Ready && l.get(n) && n.Spec.ProviderID != ""
	})
}

// runUntil runs the agent, which ends when it reboots or triggers a reset.
func (l *elementalLife) runUntil(what string, ok func() bool) {
	l.t.Helper()
	ctx, stop := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- elemental.Run(ctx, l.agent()) }()
	patience.Await(l.t, what, ok)
	stop()
	if err := <-ended; err != nil && ctx.Err() == nil {
		l.t.Errorf("run: %v", err)
	}
}

// reset deletes the machine, whose server resets itself.
func (l *elementalLife) reset() {
	l.t.Helper()
	infra := &elementalv1.ElementalMachine{ObjectMeta: l.meta("m-0")}
	if err := l.admin.Delete(l.t.Context(), infra); err != nil {
		l.t.Fatal(err)
	}
	patience.Await(l.t, "the machine is gone", func() bool {
		return apierrors.IsNotFound(l.admin.Get(l.t.Context(), client.ObjectKeyFromObject(infra), infra))
	}, infra)
	if err := elemental.Run(l.t.Context(), l.agent()); err != nil {
		l.t.Fatal(err)
	}
	needsReset := elemental.DefaultWorkDir + "/" + elemental.NeedsResetFile
	if _, ok := l.system.files[needsReset]; !ok {
		l.t.Fatal("the agent has not written needs.reset")
	}
	delete(l.system.files, needsReset)
	if err := elemental.Reset(l.t.Context(), l.agent()); err != nil {
		l.t.Fatal(err)
	}
	h := &elementalv1.ElementalHost{ObjectMeta: l.meta(l.host)}
	patience.Await(l.t, "the host is gone", func() bool {
		return apierrors.IsNotFound(l.admin.Get(l.t.Context(), client.ObjectKeyFromObject(h), h))
	}, h)
}
