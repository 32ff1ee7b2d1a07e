package lab

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/maintenance"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestControllersOfHostOSConfigurationWorkWithTheRightsOfTheManifests runs the controllers
// of the family hoc as the service account that they have in a cluster, from a module to the
// deletion of the configuration that uses it, with a change of a Secret (H20).
func TestControllersOfHostOSConfigurationWorkWithTheRightsOfTheManifests(t *testing.T) {
	w, admin := startWithoutControllers(t, config.HOC)
	grant(t, admin, withComponent(t, "hoc"))
	var refused refusals
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	as.Wrap(refused.watch)
	end := runController(t, w, as, manager.Config{Controllers: []string{"hostos", "provider", "lcm"}})
	defer end()
	l := hocLab{t, admin}
	secret := l.create()
	machine := new(lcmv1.LCMMachine)
	has := func(what string, ok func() bool) {
		t.Helper()
		patience.Await(t, what, func() bool { return admin.Get(t.Context(), l.key("w-0"), machine) == nil && ok() }, machine)
	}
	has("items reach the machine", func() bool {
		return len(machine.Spec.StateItems) == 2 && machine.Status.State == lcmv1.StateReconfigure
	})
	if v := machine.Spec.StateItems[1].Params[item.ParamSecretVersion]; v != secret.ResourceVersion {
		t.Errorf("secretVersion %q, want %q", v, secret.ResourceVersion)
	}
	execute := func() {
		t.Helper()
		before := machine.DeepCopy()
		machine.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
		for _, it := range machine.Spec.StateItems {
			machine.Status.StateItemStatuses[it.Name] = lcmv1.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1, FinishedAt: ptr.To(metav1.Now())}
		}
		if err := admin.Status().Patch(t.Context(), machine, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	execute()
	states := func() kaasv1.ConfigMachineState {
		o := new(kaasv1.HostOSConfiguration)
		if err := admin.Get(t.Context(), l.key("test"), o); err != nil {
			t.Fatal(err)
		}
		return o.Status.MachinesStates[Namespace+"/w-0"]
	}
	done := func() bool {
		s := states().ConfigStateItemsStatuses["file-template-1.0.0"]["host-os-test-file-template-1.0.0-reconfigure"]
		return s.State == kaasv1.ItemSuccess && s.Hash != ""
	}
	patience.Await(t, "the configuration has succeeded", done)
	has("the machine is Ready", func() bool { return machine.Status.State == lcmv1.StateReady })
	first := secret.ResourceVersion
	secret.Labels = map[string]string{"a": "b"}
	if err := admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	patience.Await(t, "another label of the Secret is seen", func() bool {
		o := new(kaasv1.HostOSConfiguration)
		return admin.Get(t.Context(), l.key("test"), o) == nil && o.Status.Configs[0].SecretObjectVersion == secret.ResourceVersion
	})
	if v := machine.Spec.StateItems[1].Params[item.ParamSecretVersion]; v != first || states().SecretValuesChanged {
		t.Errorf("secretVersion after another label %q, want %q and no change of values", v, first)
	}
	secret.Data["password"] = []byte("another password")
	if err := admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	has("the change of the Secret reaches the machine", func() bool {
		return machine.Spec.StateItems[1].Params[item.ParamSecretVersion] == secret.ResourceVersion && machine.Status.State == lcmv1.StateReconfigure
	})
	patience.Await(t, "the change is reported", func() bool { return states().SecretValuesChanged })
	execute()
	patience.Await(t, "the change is done", func() bool { return !states().SecretValuesChanged && done() })
	l.maintain(t, as)
	if err := admin.Delete(t.Context(), &kaasv1.HostOSConfiguration{ObjectMeta: l.meta("test")}); err != nil {
		t.Fatal(err)
	}
	has("the items leave the machine", func() bool { return len(machine.Spec.StateItems)+len(machine.Spec.StateItemsOverwrites) == 0 })
	execute()
	patience.Await(t, "the configuration is deleted", func() bool {
		return apierrors.IsNotFound(admin.Get(t.Context(), l.key("test"), new(kaasv1.HostOSConfiguration)))
	})
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if refused.list != nil {
		t.Errorf("the service account was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}

// maintain has a node with a pod drained, and gives it back, as a controller with the rights
// of the manifests does.
func (l hocLab) maintain(t *testing.T, as *rest.Config) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: l.meta("app"), Spec: corev1.PodSpec{NodeName: "w-0", Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}}}
	for _, o := range []client.Object{nodeOfMachine("w-0"), pod} {
		if err := l.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient(t, as)
	s := maintenance.Service{Client: c, Workload: func(context.Context, string, string) (workload.API, error) { return workload.API{Client: c}, nil }}
	r := maintenance.Request{Machine: l.key("w-0"), Reason: lcmv1.ReasonDelete}
	walk := func(what string, step func(context.Context, maintenance.Request) (maintenance.Progress, error)) {
		t.Helper()
		patience.Await(t, what, func() bool {
			p, err := step(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return p.Done
		})
	}
	// A pod that is bound to no agent is gone only when somebody ends it.
	patience.Await(t, "the pod is evicted", func() bool {
		_, err := s.Enter(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return l.Get(t.Context(), l.key("app"), pod) == nil && pod.DeletionTimestamp != nil
	})
	if err := l.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	walk("the node is drained", s.Enter)
	walk("the node is uncordoned", s.Leave)
	cluster := l.key(machineCluster(t, l))
	if p, err := s.LeaveCluster(t.Context(), cluster, ""); err != nil || !p.Done {
		t.Errorf("LeaveCluster() = %+v, %v; want it done", p, err)
	}
}

// machineCluster returns the name of the cluster of the machine.
func machineCluster(t *testing.T, l hocLab) string {
	t.Helper()
	var m lcmv1.LCMMachine
	if err := l.Get(t.Context(), l.key("w-0"), &m); err != nil {
		t.Fatal(err)
	}
	return m.Spec.ClusterName
}

// hocLab makes objects of the family hoc.
type hocLab struct {
	t *testing.T
	client.WithWatch
}

func (l hocLab) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: Namespace, Name: name}
}

func (l hocLab) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{"day2": "true"}}
}

// create creates a module, a machine that is Ready, and a configuration with a Secret,
// which it returns.
func (l hocLab) create() *corev1.Secret {
	l.t.Helper()
	url, sum := serveModule(l.t, "file-template")
	m := &clusterv1.Machine{ObjectMeta: l.meta("w-0")}
	lm := &lcmv1.LCMMachine{ObjectMeta: l.meta("w-0"), Spec: lcmv1.LCMMachineSpec{ClusterName: "c1", Type: lcmv1.MachineWorker, LCMType: lcmv1.LCMTypeK0s}}
	secret := &corev1.Secret{ObjectMeta: l.meta("password"), Data: map[string][]byte{"password": []byte("first password")}}
	for _, o := range []client.Object{
		&kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: "custom"}, Spec: kaasv1.HostOSConfigurationModulesSpec{
			Modules: []kaasv1.Module{{Name: "file-template", Version: "1.0.0", SHA256Sum: sum, URL: url}},
		}},
		&lcmv1.LCMCluster{ObjectMeta: l.meta("c1"), Spec: lcmv1.LCMClusterSpec{
			MachinesTypes:             map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: {}, lcmv1.MachineWorker: {}},
			ManagementClusterEndpoint: lcmv1.Endpoint{Host: "127.0.0.1", Port: 6443}, HelmControllerServiceAccountName: "helm",
		}},
		m, lm, secret,
		&kaasv1.HostOSConfiguration{ObjectMeta: l.meta("test"), Spec: kaasv1.HostOSConfigurationSpec{
			MachineSelector: metav1.LabelSelector{MatchLabels: map[string]string{"day2": "true"}},
			Configs: []kaasv1.Config{{
				Module: "file-template", ModuleVersion: "1.0.0", SecretValues: &kaasv1.SecretReference{Name: "password"},
				Values: &runtime.RawExtension{Raw: []byte(`{"path":"/etc/app.conf","settings":{"a":1}}`)},
			}},
		}},
	} {
		if err := l.Create(l.t.Context(), o); err != nil {
			l.t.Fatal(err)
		}
	}
	m.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{Status: "Ready", Ready: true}
	lm.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "10.0.0.5"}}
	for _, o := range []client.Object{m, lm} {
		if err := l.Status().Update(l.t.Context(), o); err != nil {
			l.t.Fatal(err)
		}
	}
	return secret
}

// serveModule serves the archive of a module of fixtures.
func serveModule(t *testing.T, name string) (url, sha256 string) {
	t.Helper()
	dir, err := fixtures.Module(name)
	if err != nil {
		t.Fatal(err)
	}
	archive, m, err := module.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(archive) }))
	t.Cleanup(s.Close)
	return s.URL + "/" + m.FileName(), m.SHA256
}

// The component of the manifests selects the controllers that a lab of the family has.
func TestManifestsOfTheFamilySelectItsControllers(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), withComponent(t, "hoc"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	if want := "--controllers=" + strings.Join(manager.NamesOf(config.HOC), ","); !strings.Contains(string(text), want) {
		t.Errorf("the manifests have no argument %s", want)
	}
}
