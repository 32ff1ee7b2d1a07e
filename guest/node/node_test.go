package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// lab is an agent on a fake API and a fake clock.
type lab struct {
	*testing.T
	*agent
	api   *fake.Clientset
	clock *clocktesting.FakeClock
}

func newLab(t *testing.T, objects ...kuberuntime.Object) *lab {
	l := &lab{T: t, api: fake.NewClientset(objects...), clock: clocktesting.NewFakeClock(start)}
	l.agent = &agent{
		Config: Config{Clock: l.clock, Log: slog.New(slog.DiscardHandler), Enter: func() func() { return func() {} }, Lost: func() bool { return false }},
		name:   "node-0", api: l.api,
		facts: Facts{
			Hostname: "Node-0", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7")}, CPUs: 4, MemoryBytes: 8 << 30, Arch: "x86_64",
			MachineID: "m", BootID: "b", UUID: "s", OSImage: "Debian", Version: "1", KernelVersion: "6.1", OSTag: "linux",
		},
	}
	return l
}

func (l *lab) mustStep() time.Duration {
	l.Helper()
	wait, err := l.step(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	return wait
}

// writes returns the requests that changed something since the last call, as VERB RESOURCE.
func (l *lab) writes() (out []string) {
	for _, a := range l.api.Actions() {
		if v := a.GetVerb(); v != "get" && v != "list" && v != "watch" {
			out = append(out, strings.TrimSuffix(fmt.Sprintf("%s %s/%s", v, a.GetResource().Resource, a.GetSubresource()), "/"))
		}
	}
	l.api.ClearActions()
	return out
}

func (l *lab) node() *corev1.Node {
	l.Helper()
	n, err := l.api.CoreV1().Nodes().Get(l.Context(), "node-0", metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return n
}

func TestNodeAndLeaseAreRegisteredAndRenewed(t *testing.T) {
	l := newLab(t)
	if wait := l.mustStep(); wait != renewal {
		t.Errorf("the first step waits %s, want %s", wait, renewal)
	}
	want := []string{"create nodes", "patch nodes/status", "patch nodes/status", "create leases"}
	if diff := cmp.Diff(want, l.writes()); diff != "" {
		t.Errorf("writes of the first step (-want +got):\n%s", diff)
	}
	n := l.node()
	wantLabels := map[string]string{corev1.LabelHostname: "node-0", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	if diff := cmp.Diff(wantLabels, n.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got := n.Status.Addresses; len(got) != 2 || got[0].Address != "192.0.2.7" || got[1].Address != "node-0" {
		t.Errorf("addresses %+v", got)
	}
	if c := n.Status.Conditions; len(c) != 1 || c[0].Type != corev1.NodeReady || c[0].Status != corev1.ConditionTrue {
		t.Errorf("conditions %+v", c)
	}
	if got := n.Status.Capacity.Cpu().Value(); got != 4 {
		t.Errorf("%d CPUs, want 4", got)
	}

	l.clock.Step(renewal - time.Second)
	if wait := l.mustStep(); wait != time.Second {
		t.Errorf("a second before the renewal, a step waits %s, want 1s", wait)
	}
	if got := l.writes(); got != nil {
		t.Errorf("before the renewal the agent writes %v", got)
	}
	l.clock.Step(time.Second)
	l.mustStep()
	if diff := cmp.Diff([]string{"update leases"}, l.writes()); diff != "" {
		t.Errorf("writes of a renewal (-want +got):\n%s", diff)
	}
	lease, err := l.api.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "node-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := lease.Spec.RenewTime.Time; !got.Equal(start.Add(renewal)) || *lease.Spec.LeaseDurationSeconds != 60 || lease.OwnerReferences[0].Name != "node-0" {
		t.Errorf("lease %+v of %+v, want one of 60 s, renewed at %s", lease.Spec, lease.OwnerReferences, start.Add(renewal))
	}
}

func TestNodeThatWasDeletedIsRegisteredAgain(t *testing.T) {
	l := newLab(t)
	l.mustStep()
	if err := l.api.CoreV1().Nodes().Delete(t.Context(), "node-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	l.clock.Step(renewal)
	l.mustStep()
	if c := l.node().Status.Conditions; len(c) != 1 || c[0].Status != corev1.ConditionTrue {
		t.Errorf("conditions of the new node: %+v", c)
	}
}

func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "uid-x"}, Spec: corev1.PodSpec{
		NodeName: "node-0", Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	change(p)
	return p
}

func TestPodsOfTheNode(t *testing.T) {
	l := newLab(t,
		pod("new", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		pod("host", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		pod("done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("leaves", func(p *corev1.Pod) {
			p.Status.Phase, p.DeletionTimestamp, p.Finalizers = corev1.PodRunning, ptr.To(metav1.NewTime(start)), []string{"f"}
		}))
	l.mustStep()
	list, err := l.api.CoreV1().Pods("a").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	type state struct {
		Phase      corev1.PodPhase
		HostIP, IP string
		Ready      bool
		Conditions int
	}
	got := map[string]state{}
	for _, p := range list.Items {
		c := p.Status.ContainerStatuses
		got[p.Name] = state{p.Status.Phase, p.Status.HostIP, p.Status.PodIP, len(c) == 1 && c[0].Ready && c[0].State.Running != nil, len(p.Status.Conditions)}
	}
	delete(got, "leaves")
	want := map[string]state{
		"new":  {corev1.PodRunning, "192.0.2.7", "", true, len(podConditions)},
		"host": {corev1.PodRunning, "192.0.2.7", "192.0.2.7", true, len(podConditions)},
		"done": {Phase: corev1.PodSucceeded},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	var deleted []string
	for _, a := range l.api.Actions() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok {
			o := d.DeleteOptions
			deleted = append(deleted, fmt.Sprintf("%s after %d s if it is %s", d.Name, *o.GracePeriodSeconds, *o.Preconditions.UID))
		}
	}
	if diff := cmp.Diff([]string{"leaves after 0 s if it is uid-x"}, deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	for _, a := range l.api.Actions() {
		if w, ok := a.(clienttesting.ListActionImpl); ok && w.Namespace == "" && w.ListRestrictions.Fields.String() != "spec.nodeName=node-0" {
			t.Errorf("the agent lists the pods of %q", w.ListRestrictions.Fields)
		}
	}
}

func TestNodeLeaves(t *testing.T) {
	for name, tt := range map[string]struct {
		lost bool
		want corev1.ConditionStatus
	}{
		"shutdown": {false, corev1.ConditionFalse},
		"no power": {true, corev1.ConditionTrue}, // an agent without power reports nothing: its lease ends
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.mustStep()
			l.Lost = func() bool { return tt.lost }
			l.leave()
			if c := l.node().Status.Conditions[0]; c.Status != tt.want {
				t.Errorf("Ready is %+v, want %s", c, tt.want)
			}
		})
	}
}

// files are the files of a server.
type files map[string]string

func (f files) ReadFile(name string) ([]byte, error) {
	text, exists := f[name]
	if !exists {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return []byte(text), nil
}

func TestParseArgs(t *testing.T) {
	good := "server: https://192.0.2.1:6443\ncaFile: /ca\ntokenFile: /token\nmachine: m\n"
	for name, tt := range map[string]struct {
		args  []string
		files files
		err   string // a part of it; "" for none
	}{
		"default file":  {nil, files{ConfigFile: good}, ""},
		"another file":  {[]string{"--config", "/x"}, files{"/x": good}, ""},
		"no file":       {nil, files{}, ConfigFile},
		"argument":      {[]string{"x"}, files{ConfigFile: good}, `argument "x"`},
		"unknown flag":  {[]string{"--x"}, files{ConfigFile: good}, "--x"},
		"no YAML":       {nil, files{ConfigFile: "\t"}, ConfigFile},
		"http":          {nil, files{ConfigFile: strings.Replace(good, "https", "http", 1)}, `server "http://192.0.2.1:6443": give the https URL`},
		"relative CA":   {nil, files{ConfigFile: strings.Replace(good, "/ca", "ca", 1)}, `caFile "ca": give an absolute path`},
		"without token": {nil, files{ConfigFile: strings.Replace(good, "tokenFile: /token\n", "", 1)}, `tokenFile ""`},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ParseArgs(tt.args, tt.files)
			switch {
			case tt.err == "" && (err != nil || a != (Account{Server: "https://192.0.2.1:6443", CAFile: "/ca", TokenFile: "/token"})):
				t.Errorf("ParseArgs() = %+v, %v", a, err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("ParseArgs() error = %v, want one with %q", err, tt.err)
			}
		})
	}
}

func TestNodeNames(t *testing.T) {
	for host, want := range map[string]string{"Node-0.Example": "node-0.example", " n \n": "n", "": "", "a_b": "", "-a": ""} {
		got, err := nodeName(host)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("nodeName(%q) = %q, %v; want %q", host, got, err, want)
		}
	}
}

func TestOSImage(t *testing.T) {
	for name, tt := range map[string]struct {
		files files
		want  string
	}{
		"quoted":  {files{"/etc/os-release": "ID=debian\nPRETTY_NAME=\"Debian 12\"\n"}, "Debian 12"},
		"without": {files{"/etc/os-release": "ID=debian\n"}, ""},
		"no file": {files{}, ""},
	} {
		if got, err := OSImage(tt.files); got != tt.want || err != nil {
			t.Errorf("%s: OSImage() = %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

func TestRunNeedsItsFields(t *testing.T) {
	account := Account{Server: "https://192.0.2.1", CAFile: "/ca", TokenFile: "/token"}
	facts := func(context.Context) (Facts, error) { return Facts{Hostname: "a_b"}, nil }
	broken := errors.New("no inventory")
	for name, tt := range map[string]struct {
		c    Config
		want string
	}{
		"no server":     {Config{Files: files{}, Facts: facts}, "server"},
		"no files":      {Config{Account: account, Facts: facts}, "Files"},
		"no facts":      {Config{Account: account, Files: files{}}, "Facts"},
		"bad host name": {Config{Account: account, Files: files{}, Facts: facts}, `"a_b" cannot be the name of a Node`},
		"failing facts": {Config{Account: account, Files: files{}, Facts: func(context.Context) (Facts, error) { return Facts{}, broken }}, "no inventory"},
	} {
		if err := Run(t.Context(), tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Run() error = %v, want one with %q", name, err, tt.want)
		}
	}
}

// The watch of the pods uses the token of the connection: with a new token there is a new
// watch, or no pod would be served any more.
func TestNewTokenBeginsANewWatch(t *testing.T) {
	var mu sync.Mutex
	token, watches := "one", make(chan string, 8)
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		has := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		mu.Lock()
		valid := has == token
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !valid:
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonUnauthorized, Code: http.StatusUnauthorized})
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			watches <- has
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/pods"):
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
		case strings.Contains(r.URL.Path, "/leases"):
			fmt.Fprint(w, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"n"}}`)
		default:
			fmt.Fprint(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`)
		}
	}))
	defer api.Close()
	clock := clocktesting.NewFakeClock(start)
	var server sync.Mutex
	f := files{"/ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})), "/token": "one"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{
			Account: Account{Server: api.URL, CAFile: "/ca", TokenFile: "/token"}, Clock: clock, Log: slog.New(slog.DiscardHandler), Lost: func() bool { return true },
			Facts: func(context.Context) (Facts, error) { return Facts{Hostname: "n"}, nil },
			Files: lockedFiles{&server, f},
		})
	}()
	if got := <-watches; got != "one" {
		t.Errorf("the first watch has the token %q", got)
	}
	mu.Lock()
	token = "two"
	mu.Unlock()
	server.Lock()
	f["/token"] = "two"
	server.Unlock()
	for waiting := true; waiting; {
		select {
		case got := <-watches:
			if got != "two" {
				t.Errorf("the new watch has the token %q", got)
			}
			waiting = false
		default:
			if clock.HasWaiters() {
				clock.Step(renewal)
			}
			runtime.Gosched()
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The certificate of an API may be signed by another authority, of which caFile then has the
// certificate.
func TestCAIsReadAgain(t *testing.T) {
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`)
	}))
	defer api.Close()
	f := files{"/ca": anotherCA(t), "/token": "one"}
	read := make(chan struct{}, 100)
	clock := clocktesting.NewFakeClock(start)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{
			Account: Account{Server: api.URL, CAFile: "/ca", TokenFile: "/token"}, Clock: clock, Log: slog.New(slog.DiscardHandler), Lost: func() bool { return true },
			Facts: func(context.Context) (Facts, error) { return Facts{Hostname: "n"}, nil },
			Files: countingFiles{f, read},
		})
	}()
	<-read // the read of the first connection
	for waiting := true; waiting; {
		select {
		case <-read:
			waiting = false
		default:
			if clock.HasWaiters() {
				clock.Step(retry)
			}
			runtime.Gosched()
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// anotherCA returns the certificate of an authority that has signed nothing.
func anotherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// countingFiles sends to read when the CA is read.
type countingFiles struct {
	files
	read chan<- struct{}
}

func (f countingFiles) ReadFile(name string) ([]byte, error) {
	if name == "/ca" {
		f.read <- struct{}{}
	}
	return f.files.ReadFile(name)
}

type lockedFiles struct {
	mu *sync.Mutex
	files
}

func (f lockedFiles) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files.ReadFile(name)
}

func TestAccountOfToken(t *testing.T) {
	token := func(payload string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	}
	for in, want := range map[string]string{
		token(`{"sub":"system:serviceaccount:lab-nodes:w-0"}`) + "\n": "system:serviceaccount:lab-nodes:w-0",
		token(`{}`): "", token(`{`): "", "a.b.c": "", "opaque": "", "": "",
	} {
		if got := accountOf(in); got != want {
			t.Errorf("accountOf(%q) = %q, want %q", in, got, want)
		}
	}
}
