package machines

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// statement H39: closed gates stop a Machine before its image, and before its deployment.
func TestManualGatesStopAMachine(t *testing.T) {
	m := machine("m")
	m.Spec.ProviderSpec.Value.Day1Provisioning, m.Spec.ProviderSpec.Value.Day1Deployment = "", baremetalv1.GateManual // the default is manual
	l := start(t, objects(host("a"), m)...)
	status := func(want string) {
		t.Helper()
		l.run()
		if p := l.machine("m").Status.ProviderStatus; p.Status != want || p.Ready != (want == "Ready") {
			t.Fatalf("status %q, ready %t, want %q", p.Status, p.Ready, want)
		}
	}
	status("AwaitsProvisioning")
	h := l.host("a")
	if h.Spec.Image != nil || h.Spec.UserData != nil || h.Spec.ConsumerRef == nil {
		t.Errorf("the host of a Machine that awaits provisioning: %+v", h.Spec)
	}
	if got := l.lcm("m"); !cmp.Equal(got.Spec, lcmv1.LCMMachineSpec{}) || len(got.Labels) > 0 {
		t.Errorf("the LCMMachine is not empty: labels %v, spec %+v", got.Labels, got.Spec)
	}
	edit(l, m, func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.Day1Provisioning = baremetalv1.GateAuto })
	status("AwaitsDeployment")
	if got := l.lcm("m").Spec; got.ClusterName != "" || got.StateItems != nil {
		t.Errorf("the LCMMachine of a Machine that awaits deployment: %+v", got)
	}
	edit(l, m, func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.Day1Deployment = baremetalv1.GateAuto })
	status("Ready")
	edit(l, m, func(m *clusterv1.Machine) {
		m.Spec.ProviderSpec.Value.Day1Provisioning, m.Spec.ProviderSpec.Value.Day1Deployment = baremetalv1.GateManual, baremetalv1.GateManual
	})
	status("Ready")
}

// A Machine goes to Ready through the statuses of its LCMMachine, and a deletion takes
// everything away in order.
func TestMachineToReadyAndBack(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	var ladder []string
	note := func() {
		if s := l.machine("m").Status.ProviderStatus.Status; len(ladder) == 0 || ladder[len(ladder)-1] != s {
			ladder = append(ladder, s)
		}
	}
	for range 8 {
		l.settle()
		note()
		l.hosts()
		l.settle()
		note()
		l.agents()
	}
	l.settle()
	note()
	if want := []string{"Provision", "Uninitialized", "Deploy", "Ready"}; !cmp.Equal(want, ladder) {
		t.Errorf("statuses %q, want %q", ladder, want)
	}
	h := l.host("a").Spec
	want := metal3.BareMetalHostSpec{
		ConsumerRef: &corev1.ObjectReference{APIVersion: "cluster.k8s.io/v1alpha1", Kind: "Machine", Namespace: ns, Name: "m"},
		Image:       &metal3.Image{URL: "http://192.0.2.2/jammy.raw", Checksum: "0a", ChecksumType: metal3.AutoChecksum},
		UserData:    &corev1.SecretReference{Namespace: ns, Name: "m-user-data"}, Online: true,
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	m := l.machine("m")
	if *m.Spec.ProviderID != "metal3://uid-of-a" || m.Annotations["metal3.io/BareMetalHost"] != "lab/a" {
		t.Errorf("provider's ID %q, annotations %v", *m.Spec.ProviderID, m.Annotations)
	}
	status := &baremetalv1.MachineProviderStatus{
		Status: "Ready", Ready: true, PrivateIP: "10.0.0.5",
		Hardware:              &baremetalv1.MachineHardware{CPU: 8, RAM: 16, Storage: []baremetalv1.MachineDisk{{Name: "/dev/sda", Size: 100}}},
		ProviderInstanceState: &baremetalv1.InstanceState{ID: "lab/a", State: "provisioned", Ready: true},
		Conditions:            []baremetalv1.Condition{{Type: "ProviderInstance", Ready: true}, {Type: "LCM", Ready: true}, {Type: "Maintenance", Ready: true}, {Type: "GracefulReboot", Ready: true}, {Type: "Reboot", Ready: true}},
	}
	status.APIVersion, status.Kind = "baremetal.k8s.io/v1alpha1", "BareMetalMachineProviderStatus"
	if diff := cmp.Diff(status, m.Status.ProviderStatus); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	l.writes = nil
	l.must(l.Delete(t.Context(), machine("m")))
	l.settle()
	if p := l.machine("m").Status.ProviderStatus; p.Ready || !p.Delete || p.Status != StatusDeleting || l.instance("m").Message != "BareMetalHost lab/a is being deprovisioned: it is provisioned" {
		t.Errorf("status of a Machine whose host still has its image: %+v", p)
	}
	if got := l.lcm("m"); !got.DeletionTimestamp.IsZero() {
		t.Error("the LCMMachine goes before the host is deprovisioned")
	}
	l.run()
	var order []string
	for _, w := range l.writes {
		if !strings.HasPrefix(w, "patch status") {
			order = append(order, w)
		}
	}
	if diff := cmp.Diff([]string{
		"patch *v1alpha1.BareMetalHost a", // deprovisioned
		"delete *v1alpha1.LCMMachine m",
		"delete *v1.ServiceAccount m-lcm-agent", "delete *v1.RoleBinding m-lcm-agent", "delete *v1.Role m-lcm-agent",
		"delete *v1.Secret m-lcm-agent-token", "delete *v1.Secret m-user-data",
		"patch *v1alpha1.Machine m",       // without the provider's ID
		"patch *v1alpha1.BareMetalHost a", // free
		"patch *v1alpha1.Machine m",       // without the finalizer
	}, order); diff != "" {
		t.Errorf("order of the deletion (-want +got):\n%s", diff)
	}
	if h := l.host("a"); !cmp.Equal(h.Spec, metal3.BareMetalHostSpec{}) || h.Status.Provisioning.State != metal3.StateAvailable || len(l.machines()) != 0 {
		t.Errorf("after the deletion: host %+v, %d Machines", h.Spec, len(l.machines()))
	}
}

// A graceful deletion waits until the node has left its cluster, a forced one not even for
// the host.
func TestDeletionPolicies(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	edit(l, l.machine("m"), func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.DeletionPolicy = baremetalv1.DeletionGraceful })
	l.must(l.Delete(t.Context(), machine("m")))
	l.run()
	if got := l.lcm("m"); !got.Spec.PrepareDeletion || l.host("a").Spec.Image == nil || l.instance("m").Message != "the LCMMachine prepares the deletion: not started" {
		t.Errorf("graceful: prepareDeletion %t, host %+v, condition %+v", got.Spec.PrepareDeletion, l.host("a").Spec, l.instance("m"))
	}
	x := l.lcm("m")
	x.Status.PrepareDeletionPhase = "completed"
	l.must(l.Status().Update(t.Context(), x))
	l.run()
	if len(l.machines()) != 0 {
		t.Error("graceful: the Machine exists")
	}

	l = start(t, objects(host("a"), machine("m"))...)
	l.run()
	edit(l, l.machine("m"), func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.DeletionPolicy = baremetalv1.DeletionForced })
	l.must(l.Delete(t.Context(), machine("m")))
	l.settle() // without the hosts' controller
	if h := l.host("a"); len(l.machines()) != 0 || h.Spec.Image != nil || h.Spec.ConsumerRef != nil || unclaimable(h) == "" {
		t.Errorf("forced: %d Machines, host %+v", len(l.machines()), h.Spec)
	}
}

// A Machine whose spec demands its deletion is prepared and then deleted; until then the
// demand can be withdrawn. Without the policy graceful it is deleted at once.
func TestDemandedDeletion(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	demand := func(on bool) {
		edit(l, l.machine("m"), func(m *clusterv1.Machine) {
			m.Spec.ProviderSpec.Value.Delete, m.Spec.ProviderSpec.Value.DeletionPolicy = on, baremetalv1.DeletionGraceful
		})
		l.run()
	}
	phase := func(to, message string) {
		x := l.lcm("m")
		x.Status.PrepareDeletionPhase, x.Status.KubernetesCordonDrainError = to, message
		l.must(l.Status().Update(t.Context(), x))
		l.run()
	}
	condition := func() (out []baremetalv1.Condition) {
		for _, c := range l.machine("m").Status.ProviderStatus.Conditions {
			if c.Type == baremetalv1.ConditionPrepareDeletion {
				out = append(out, c)
			}
		}
		return out
	}
	demand(true)
	phase("failed", "a lock has failed")
	p := l.machine("m").Status.ProviderStatus
	want := []baremetalv1.Condition{{Type: baremetalv1.ConditionPrepareDeletion, Message: "failed: a lock has failed"}}
	if diff := cmp.Diff(want, condition()); diff != "" || p.Ready || p.PrepareDeletionPhase != "failed" || !l.lcm("m").Spec.PrepareDeletion || l.host("a").Spec.Image == nil {
		t.Errorf("a preparation that fails: status %+v, condition (-want +got):\n%s", p, diff)
	}
	demand(false)
	phase("aborting", "")
	if p := l.machine("m").Status.ProviderStatus; l.lcm("m").Spec.PrepareDeletion || p.Ready || p.PrepareDeletionPhase != "aborting" {
		t.Errorf("a demand that is withdrawn: prepareDeletion %t, status %+v", l.lcm("m").Spec.PrepareDeletion, p)
	}
	phase("", "")
	if p := l.machine("m").Status.ProviderStatus; len(condition()) > 0 || !p.Ready {
		t.Errorf("after the demand was withdrawn: status %+v", p)
	}
	demand(true)
	if len(l.machines()) != 1 {
		t.Fatal("the Machine is deleted before it is prepared")
	}
	phase("completed", "")
	if h := l.host("a"); len(l.machines()) != 0 || h.Spec.ConsumerRef != nil {
		t.Errorf("after the preparation: %d Machines, host %+v", len(l.machines()), h.Spec)
	}
	for _, policy := range []baremetalv1.DeletionPolicy{baremetalv1.DeletionUnsafe, baremetalv1.DeletionForced} {
		l := start(t, objects(host("a"), machine("m"))...)
		l.run()
		edit(l, l.machine("m"), func(m *clusterv1.Machine) {
			m.Spec.ProviderSpec.Value.Delete, m.Spec.ProviderSpec.Value.DeletionPolicy = true, policy
		})
		l.run()
		if len(l.machines()) != 0 {
			t.Errorf("%s: the Machine exists", policy)
		}
	}
}

// statement H43: LCMMachines have the keys of their cluster, and follow changes. The user
// data of a server that is provisioned stay.
func TestKeysOfAMachineFollowItsCluster(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"), &kaasv1.PublicKey{ObjectMeta: meta("ben"), Spec: kaasv1.PublicKeySpec{PublicKey: "ssh-rsa B ben"}})...)
	l.run()
	text := get(l, "m-user-data", new(corev1.Secret)).Data["userData"]
	keys := func(want ...string) {
		t.Helper()
		l.run()
		if got := l.lcm("m").Spec.SSHAuthorizedKeys; !slices.Equal(got, want) {
			t.Errorf("keys %q, want %q", got, want)
		}
	}
	keys("ssh-ed25519 A ann")
	c := &clusterv1.Cluster{ObjectMeta: meta("c1")}
	edit(l, c, func(c *clusterv1.Cluster) {
		c.Spec.ProviderSpec.Value.PublicKeys = append(c.Spec.ProviderSpec.Value.PublicKeys, baremetalv1.KeyName{Name: "ben"})
	})
	keys("ssh-ed25519 A ann", "ssh-rsa B ben")
	edit(l, &kaasv1.PublicKey{ObjectMeta: meta("ben")}, func(k *kaasv1.PublicKey) { k.Spec.PublicKey = "ssh-rsa C ben" })
	keys("ssh-ed25519 A ann", "ssh-rsa C ben")
	edit(l, c, func(c *clusterv1.Cluster) { c.Spec.ProviderSpec.Value.PublicKeys = nil })
	keys()
	if got := get(l, "m-user-data", new(corev1.Secret)).Data["userData"]; string(got) != string(text) {
		t.Error("the user data of a provisioned server have changed")
	}
}

// statement H33: what the server's agent reports is in the Machine's status, and nothing
// reboots.
func TestRebootRequestIsShown(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	x := l.lcm("m")
	x.Status.HostInfo = &lcmv1.HostInfo{RebootRequired: true, RebootReason: "a new kernel"}
	l.must(l.Status().Update(t.Context(), x))
	l.run()
	if diff := cmp.Diff(&baremetalv1.RebootRequest{Required: true, Reason: "a new kernel"}, l.machine("m").Status.ProviderStatus.Reboot); diff != "" || l.lcm("m").Spec.RebootRequired {
		t.Errorf("reboot (-want +got):\n%s", diff)
	}
	x = l.lcm("m")
	x.Status.HostInfo.RebootRequired = false
	l.must(l.Status().Update(t.Context(), x))
	l.run()
	if got := l.machine("m").Status.ProviderStatus.Reboot; got != nil {
		t.Errorf("reboot %+v, want none", got)
	}
}

// An error of a provisioned host is in the Machine's status; image and LCMMachine stay.
func TestErrorOfAHostIsInTheMachinesStatus(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	set := func(text string) {
		h := l.host("a")
		h.Status.ErrorMessage = text
		l.must(l.Status().Update(t.Context(), h))
		l.run()
	}
	set("the BMC does not answer")
	if p := l.machine("m").Status.ProviderStatus; p.Ready || p.Status != "Ready" || l.instance("m").Message != "BareMetalHost lab/a: the BMC does not answer" {
		t.Errorf("status %+v", p)
	}
	l.writes = nil
	set("")
	if p := l.machine("m").Status.ProviderStatus; !p.Ready || !slices.Equal(l.writes, []string{"patch status of *v1alpha1.Machine m"}) {
		t.Errorf("status %+v, writes %q", p, l.writes)
	}
}

// Mistakes stop a Machine before it claims a host, and name field and fix.
func TestMistakesStopAMachine(t *testing.T) {
	value := func(change func(*baremetalv1.MachineProviderSpec)) func(*lab) {
		return func(l *lab) { edit(l, machine("m"), func(m *clusterv1.Machine) { change(&m.Spec.ProviderSpec.Value) }) }
	}
	clusterValue := func(change func(*baremetalv1.ClusterProviderSpec)) func(*lab) {
		return func(l *lab) {
			edit(l, &clusterv1.Cluster{ObjectMeta: meta("c1")}, func(c *clusterv1.Cluster) { change(&c.Spec.ProviderSpec.Value) })
		}
	}
	clusterStatus := func(current *baremetalv1.ReleaseRef) func(*lab) {
		return func(l *lab) {
			c := get(l, "c1", new(clusterv1.Cluster))
			c.Status.ProviderStatus.ReleaseRefs.Current = current
			l.must(l.Status().Update(t.Context(), c))
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*lab)
		want   string
	}{
		{"no label", func(l *lab) {
			edit(l, machine("m"), func(m *clusterv1.Machine) { delete(m.Labels, clusterv1.ClusterNameLabel) })
		},
			"metadata.labels: give the label cluster.sigs.k8s.io/cluster-name, the name of the Cluster"},
		{"no Cluster", func(l *lab) { l.must(l.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: meta("c1")})) }, `there is no Cluster "c1" in the namespace`},
		{"Cluster without a release", clusterStatus(nil), `Cluster "c1" has no release yet: its conditions say why`},
		{"release that does not exist", clusterStatus(&baremetalv1.ReleaseRef{Name: "x"}), `there is no ClusterRelease "x"`},
		{"key that does not exist", clusterValue(func(s *baremetalv1.ClusterProviderSpec) {
			s.PublicKeys = append(s.PublicKeys, baremetalv1.KeyName{Name: "x"})
		}),
			`Cluster "c1": spec.providerSpec.value.publicKeys[1]: there is no PublicKey "x" in the namespace`},
		{"distribution that the release lacks", value(func(s *baremetalv1.MachineProviderSpec) { s.Distribution = "x" }),
			`spec.providerSpec.value.distribution: "x" is not one of ClusterRelease "mosk-1": give one of debian/bookworm, ubuntu/jammy`},
		{"selector that matches no host", value(func(s *baremetalv1.MachineProviderSpec) { s.HostSelector.MatchLabels["rack"] = "z" }), "spec.providerSpec.value.hostSelector selects no BareMetalHost of the namespace"},
		{"selector of no label", value(func(s *baremetalv1.MachineProviderSpec) { s.HostSelector.MatchLabels = map[string]string{"a b": "c"} }), "spec.providerSpec.value.hostSelector: "},
	} {
		l := start(t, objects(host("a"), machine("m"))...)
		tt.change(l)
		l.run()
		if c := l.instance("m"); c.Ready || !strings.HasPrefix(c.Message, tt.want) {
			t.Errorf("%s: condition %+v, want %s", tt.name, c, tt.want)
		}
		if h := l.host("a").Spec; h.ConsumerRef != nil || h.Image != nil {
			t.Errorf("%s: the host was claimed: %+v", tt.name, h)
		}
	}
}

// The image is the Machine's, that of its distribution, or the default; a host that is
// provisioned is never written again.
func TestImageOfAMachine(t *testing.T) {
	m, d := machine("m"), machine("d")
	m.Spec.ProviderSpec.Value.Image = &baremetalv1.Image{URL: "http://192.0.2.2/custom.raw", Checksum: "http://192.0.2.2/sums"}
	d.Spec.ProviderSpec.Value.Distribution = "debian/bookworm"
	l := start(t, objects(host("a"), host("b"), m, d)...)
	l.run()
	if got := l.hostOf("m").Spec.Image; got.URL != m.Spec.ProviderSpec.Value.Image.URL || got.Checksum != m.Spec.ProviderSpec.Value.Image.Checksum {
		t.Errorf("image %+v", got)
	}
	if got := l.hostOf("d").Spec.Image; *got != (metal3.Image{URL: "http://192.0.2.2/bookworm.raw"}) {
		t.Errorf("image %+v", got)
	}
	edit(l, d, func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.Distribution = "ubuntu/jammy" })
	l.run()
	if got := l.hostOf("d"); got.Spec.Image.URL != "http://192.0.2.2/bookworm.raw" || l.lcm("d").Spec.Distribution != "ubuntu/jammy" {
		t.Errorf("image %+v, distribution %q", got.Spec.Image, l.lcm("d").Spec.Distribution)
	}
}

// The agent has a token, which is renewed, and rights to its LCMMachine and the Secrets of
// its items alone.
func TestAccountOfTheAgent(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	s := get(l, "m-lcm-agent-token", new(corev1.Secret))
	if string(s.Data["token"]) != "fake-token" || l.lcm("m").Status.TokenSecret != s.Name || l.lcm("m").Spec.ServiceAccount != "m-lcm-agent" {
		t.Errorf("token %q, LCMMachine %+v", s.Data["token"], l.lcm("m"))
	}
	text := string(get(l, "m-user-data", new(corev1.Secret)).Data["userData"])
	if !strings.HasPrefix(text, "#cloud-config\n") || !strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("fake-token\n"))) {
		t.Errorf("user data:\n%s", text)
	}
	x := l.lcm("m")
	x.Spec.StateItemsOverwrites = map[string]map[string]string{"i": {item.ParamSecretRef: ns + "/passwords"}, "j": {item.ParamSecretRef: "other/x"}}
	x.Spec.StateItems = []lcmv1.LCMStateItem{{Runner: lcmv1.RunnerAnsible, Name: "k", Version: "v1", Phase: lcmv1.PhaseDeploy, Params: map[string]string{item.ParamSecretRef: ns + "/keys"}}}
	l.must(l.Update(t.Context(), x))
	x.Spec.ProxySecretName = "proxy"
	if diff := cmp.Diff([]string{"keys", "m-lcm-agent-token", "passwords", "proxy"}, secrets(&facts{machine: machine("m"), lcm: x})); diff != "" {
		t.Errorf("Secrets of overwrites and items (-want +got):\n%s", diff)
	}
	l.run()
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"lcm.mirantis.com"}, Resources: []string{"lcmmachines"}, ResourceNames: []string{"m"}, Verbs: []string{"get", "watch"}},
		{APIGroups: []string{"lcm.mirantis.com"}, Resources: []string{"lcmmachines/status"}, ResourceNames: []string{"m"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"keys", "m-lcm-agent-token", "passwords"}, Verbs: []string{"get"}},
	}
	if diff := cmp.Diff(want, get(l, "m-lcm-agent", new(rbacv1.Role)).Rules); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
	renewals := func() (n int) {
		l.writes = nil
		l.run()
		for _, w := range l.writes {
			if strings.HasPrefix(w, "create token of") {
				n++
			}
		}
		return n
	}
	expiresIn := func(d time.Duration) {
		edit(l, get(l, s.Name, new(corev1.Secret)), func(s *corev1.Secret) {
			s.Annotations[expiryAnnotation] = l.wall.Now().Add(d).Format(time.RFC3339)
		})
	}
	expiresIn(3 * time.Hour)
	if n := renewals(); n != 0 {
		t.Errorf("%d tokens of a server whose token has 3 hours left, want none", n)
	}
	l.wall.SetTime(l.wall.Now().Add(2 * time.Hour))
	if n := renewals(); n != 1 {
		t.Errorf("%d tokens of a server whose token has an hour left, want 1", n)
	}
	c := get(l, "c1", new(lcmv1.LCMCluster))
	edit(l, c, func(c *lcmv1.LCMCluster) {
		c.Spec.TokenTTL, c.Spec.MinTokenRemainingTTL = &metav1.Duration{Duration: 12 * time.Hour}, &metav1.Duration{Duration: 4 * time.Hour}
	})
	expiresIn(3 * time.Hour)
	if n := renewals(); n != 1 {
		t.Errorf("%d tokens of a server whose token has less than minTokenRemainingTTL left, want 1", n)
	}
	expiresIn(7 * time.Hour)
	edit(l, get(l, c.Name, new(lcmv1.LCMCluster)), func(c *lcmv1.LCMCluster) { c.Spec.MinTokenRemainingTTL.Duration = 24 * time.Hour })
	if n := renewals(); n != 0 {
		t.Errorf("%d tokens of a server whose token has more than half of its life left, want none", n)
	}
	// An account that was deleted has taken its token with it.
	l.must(l.Delete(t.Context(), get(l, "m-lcm-agent", new(corev1.ServiceAccount))))
	l.run()
	edit(l, get(l, "m-lcm-agent", new(corev1.ServiceAccount)), func(a *corev1.ServiceAccount) { a.UID = "another" })
	if n := renewals(); n != 1 {
		t.Errorf("%d tokens of an account that was made again, want 1", n)
	}
	if n := renewals(); n != 0 {
		t.Errorf("%d tokens more, want none", n)
	}
	l.must(l.Delete(t.Context(), machine("m")))
	l.run()
	for _, o := range []client.Object{new(corev1.ServiceAccount), new(rbacv1.Role), new(rbacv1.RoleBinding)} {
		if err := l.Get(t.Context(), key("m-lcm-agent"), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T after the deletion: %v", o, err)
		}
	}
}

// A Secret of a user that has the name of the Machine's stays, and stops the Machine.
func TestSecretOfAUserStays(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"), &corev1.Secret{ObjectMeta: meta("m-user-data"), Data: map[string][]byte{"a": []byte("b")}})...)
	var err error
	for range 10 {
		err = pass(t.Context(), l.provider(nil), "m")
	}
	if err == nil || !strings.Contains(err.Error(), "m-user-data exists, and is not the Machine's: remove it") || l.host("a").Spec.Image != nil {
		t.Errorf("error %v, image %v", err, l.host("a").Spec.Image)
	}
	l.must(l.Delete(t.Context(), machine("m")))
	l.run()
	if got := get(l, "m-user-data", new(corev1.Secret)).Data["a"]; string(got) != "b" {
		t.Errorf("the Secret has %q", got)
	}
}

// A Machine of another provider, and one without a provider, stay as they are: their status alone
// says which label they need, until they have it.
func TestMachineOfAnotherProviderStays(t *testing.T) {
	for _, provider := range []string{"", "openstack"} {
		m := machine("m")
		m.Labels[clusterv1.ProviderLabel] = provider
		l := start(t, objects(host("a"), m)...)
		l.settle()
		status := l.machine("m").Status.ProviderStatus
		if want := []string{"patch status of *v1alpha1.Machine m"}; !cmp.Equal(want, l.writes) || status == nil || len(status.Conditions) != 1 ||
			status.Conditions[0].Type != "Provider" || !status.Conditions[0].Ready || !strings.Contains(status.Conditions[0].Message, "kaas.mirantis.com/provider") {
			t.Errorf("%q: writes %q, status %+v", provider, l.writes, status)
		}
		m = l.machine("m")
		m.Labels[clusterv1.ProviderLabel] = "baremetal"
		l.must(l.Update(t.Context(), m))
		l.settle()
		if slices.ContainsFunc(l.machine("m").Status.ProviderStatus.Conditions, func(c baremetalv1.Condition) bool { return c.Type == "Provider" }) {
			t.Errorf("%q: conditions %+v with the label", provider, l.machine("m").Status.ProviderStatus.Conditions)
		}
	}
}
