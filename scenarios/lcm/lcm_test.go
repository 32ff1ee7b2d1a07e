package lcm_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// account is the service account of an agent, with the rights that docs/day2.md lists: its
// LCMMachine, and the Secrets that the machine's items name.
func account(t *testing.T, cs *kubernetes.Clientset, machine string, secrets ...string) (token string) {
	t.Helper()
	ctx, meta := t.Context(), metav1.ObjectMeta{Name: "lcm-" + machine, Namespace: "default"}
	_, err := cs.CoreV1().ServiceAccounts(meta.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err == nil {
		_, err = cs.RbacV1().Roles(meta.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{lcmv1.GroupVersion.Group}, Resources: []string{"lcmmachines"}, ResourceNames: []string{machine}, Verbs: []string{"get", "watch"}},
			{APIGroups: []string{lcmv1.GroupVersion.Group}, Resources: []string{"lcmmachines/status"}, ResourceNames: []string{machine}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: []string{"get"}},
		}}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = cs.RbacV1().RoleBindings(meta.Namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: meta.Name, Namespace: meta.Namespace}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := cs.CoreV1().ServiceAccounts(meta.Namespace).CreateToken(ctx, meta.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

// statements H13, H20, H23 and H29: the agent with the rights of its account
// downloads a module, runs it with real Ansible, and follows the object.
func TestAgentOnThisMachineWithAnAPI(t *testing.T) {
	ansible := prerequisites.Need(t, "ansible-playbook")
	k, err := kube.Start(t.Context(), kube.Config{Dir: t.TempDir(), FastPaths: true, Families: []string{config.HOC}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Stop() })
	cs, err := kubernetes.NewForConfig(k.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(lcmv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(k.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(fixtures.Modules, "modules/file-template")
	if err != nil {
		t.Fatal(err)
	}
	archive, m, err := module.Build(files)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	t.Cleanup(web.Close)

	dir := t.TempDir()
	host, err := sys.OpenHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "default"}, StringData: map[string]string{"password": "first-secret"}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	const path = "/root/host-os-modules/file-template-1.0.0"
	items := item.HostOS("test", m.Name, m.Version, lcmv1.PhaseReconfigure)
	values := func(a int) string {
		b, err := json.Marshal(map[string]any{"path": "/etc/app.conf", "settings": map[string]any{"a": a}, "root": dir})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	overwrites := map[string]map[string]string{
		items[0].Name: {item.ParamURL: web.URL + "/m.tgz", item.ParamSHA256: m.SHA256, item.ParamPath: path},
		items[1].Name: {
			item.ParamPlaybook: m.Playbook, item.ParamAnsible: ansible, item.ParamPath: path, item.ParamSHA256: m.SHA256,
			item.ParamValues: values(1), item.ParamSecretRef: "default/app", item.ParamSecretVersion: secret.ResourceVersion,
		},
	}
	machine := &lcmv1.LCMMachine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: "default"}}
	machine.Spec = lcmv1.LCMMachineSpec{Type: lcmv1.MachineWorker, LCMType: lcmv1.LCMTypeK0s, StateItems: item.Merge(items, overwrites), StateItemsOverwrites: overwrites}
	if err := c.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	token := account(t, cs, machine.Name, "app")
	const text = "server: SERVER\ncaFile: /etc/lab-agent/ca.crt\ntokenFile: /etc/lab-agent/token\nnamespace: default\nmachine: worker-0\n"
	err = host.Put(
		sys.File{Name: lcm.ConfigFile, Mode: 0o600, Content: []byte(strings.Replace(text, "SERVER", k.RESTConfig().Host, 1))},
		sys.File{Name: "/etc/lab-agent/ca.crt", Mode: 0o644, Content: k.RESTConfig().CAData},
		sys.File{Name: "/etc/lab-agent/token", Mode: 0o600, Content: []byte(token)},
	)
	if err != nil {
		t.Fatal(err)
	}
	options, err := lcm.ParseArgs([]string{"--keep-user"}, host)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var log strings.Builder
	r, w := io.Pipe()
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(&log, r) }()
	go func() {
		defer w.Close()
		ended <- lcm.Run(ctx, lcm.Config{
			Account: options.Account, KeepUser: options.KeepUser, System: host, Version: "v0.3.0-300", Log: slog.New(slog.NewTextHandler(w, nil)),
			Hardware: func(context.Context) (job.Hardware, error) {
				return job.Hardware{Hostname: "worker-0", NICs: []job.NIC{{Name: "eth0", MAC: "0c:00:00:00:00:01", IP: "192.0.2.7"}}}, nil
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		<-read
		if t.Failed() {
			t.Logf("log of the agent:\n%s", log.String())
		}
	})

	// reached waits until the object is as wanted.
	reached := func(what string, is func() bool) {
		t.Helper()
		deadline := time.After(2 * time.Minute)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(machine), machine)
			if err == nil && is() {
				return
			}
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%s: not within two minutes: %+v, %v", what, machine.Status, err)
			}
		}
	}
	done := func() bool { return item.ComputeState(machine) == lcmv1.StateReady }
	written := func(want ...string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, "etc/app.conf"))
		for _, line := range want {
			if err != nil || !slices.Contains(strings.Split(string(b), "\n"), line) {
				t.Errorf("the module has written %q, %v, want %q", b, err, line)
			}
		}
	}
	reached("both items are done", done)
	written("a=1", "password=first-secret")
	download := machine.Status.StateItemStatuses[items[0].Name]

	// The Secret changes, and with it the item: its playbook alone runs again.
	secret.StringData = map[string]string{"password": "second-secret"}
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	overwrites[items[1].Name][item.ParamSecretVersion], overwrites[items[1].Name][item.ParamValues] = secret.ResourceVersion, values(2)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"stateItems": item.Merge(items, overwrites), "stateItemsOverwrites": overwrites}})
	if err != nil {
		t.Fatal(err)
	}
	before := machine.Status.StateItemStatuses[items[1].Name].Hash
	if err := c.Patch(t.Context(), machine, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	reached("the play with new values is done", func() bool { return done() && machine.Status.StateItemStatuses[items[1].Name].Hash != before })
	written("a=2", "password=second-secret")
	if again := machine.Status.StateItemStatuses[items[0].Name]; !again.FinishedAt.Equal(download.FinishedAt) || again.Attempt != 1 {
		t.Errorf("the download has run again: %+v", again)
	}
	all, err := json.Marshal(machine)
	if err != nil || strings.Contains(string(all), "-secret\"") || strings.Contains(string(all), "second-secret") {
		t.Errorf("the object has a value of the Secret: %s, %v", all, err)
	}

	// Without items no status is left.
	if err := c.Patch(t.Context(), machine, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stateItems":null,"stateItemsOverwrites":null}}`))); err != nil {
		t.Fatal(err)
	}
	reached("the statuses are removed", func() bool { return len(machine.Status.StateItemStatuses) == 0 })
	written("a=2")
}
