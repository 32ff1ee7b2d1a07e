package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/kubeapi"
	daemon "github.com/metalab-dev/metalab/agent/machineconfig"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/guest/staging"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// machineConfigNode is a Node whose machine-config daemon is the product's, with the rights of
// its account and connections of its own. It has a system that boots, and no server.
type machineConfigNode struct {
	name  string
	lab   *Lab
	wrap  func(http.RoundTripper) http.RoundTripper
	roots *x509.CertPool
	disk  memoryStore
	token string
	dir   string
}

// startNodes starts nodes of the pool worker, from w-0 on. wrap sees the requests of their daemons.
func startNodes(t testing.TB, l *Lab, admin client.Client, count int, wrap func(http.RoundTripper) http.RoundTripper) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(l.kube.api.CAData) {
		t.Fatal("the API has no certificate authority")
	}
	nodes := make([]*machineConfigNode, count)
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(8)
	dir := t.TempDir()
	for i := range nodes {
		n := &machineConfigNode{name: fmt.Sprintf("w-%d", i), lab: l, wrap: wrap, roots: roots}
		n.dir = filepath.Join(dir, n.name)
		nodes[i] = n
		g.Go(func() error { return n.join(ctx, admin) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	for _, n := range nodes {
		group.Go(func() {
			if err := n.run(running); err != nil {
				t.Errorf("node %s: %v", n.name, err)
			}
		})
	}
	t.Cleanup(func() { stop(); group.Wait() })
}

// join creates the Node, Ready, and the account of its daemon.
func (n *machineConfigNode) join(ctx context.Context, admin client.Client) error {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}}
	if err := admin.Create(ctx, o); err != nil {
		return err
	}
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: NodeAccounts, Name: n.name}}
	request := &authenticationv1.TokenRequest{}
	err := errors.Join(admin.Status().Update(ctx, o), admin.Create(ctx, account), admin.SubResource("token").Create(ctx, account, request))
	n.token = request.Status.Token
	return err
}

// run boots the system of the node, again when its daemon reboots it, until ctx ends.
func (n *machineConfigNode) run(ctx context.Context) error {
	for boot := 1; ; boot++ {
		rebooted := make(chan struct{})
		s := sandbox.New(sandbox.Config{
			Base: debian.Base(debian.Bookworm), Store: &n.disk, Dir: n.dir, Lowers: n.lab.agents.systems.lowers, RequireLimits: true, Boot: sys.Boot{ID: fmt.Sprintf("%s-%d", n.name, boot)}, Now: n.lab.clock.Now,
			Reboot: sync.OnceFunc(func() { close(rebooted) }),
		})
		token := sandbox.Tree{"etc/lab-agent/token": sandbox.File(0o600, n.token)}
		if err := s.Put(token); err != nil {
			return err
		}
		err := n.runDaemon(ctx, s, rebooted)
		if err = errors.Join(err, s.Close()); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// runDaemon runs the daemon until the system is rebooted or ctx ends.
func (n *machineConfigNode) runDaemon(ctx context.Context, s *sandbox.System, rebooted <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: n.roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 2}
	defer transport.CloseIdleConnections()
	images := staging.New(s, "amd64")
	go func() {
		ended <- daemon.Run(ctx, daemon.Config{
			Account: daemon.Account{Account: kubeapi.Account{Server: n.lab.kube.api.Host, CAFile: "/etc/lab-agent/ca.crt", TokenFile: "/etc/lab-agent/token"}, Node: n.name},
			System:  s.Host(), OS: images, Monitor: images, API: n.wrap(transport), Log: slog.New(slog.DiscardHandler),
			Clock: daemonClock{agentClock{labClock{n.lab.clock}}}, Enter: n.lab.clock.Enter,
		})
	}()
	select {
	case <-rebooted:
	case <-ctx.Done():
	}
	cancel()
	return <-ended
}

// refusedWrites are the requests to write that the API has refused for another reason than that
// the object has changed, or is gone already.
type refusedWrites struct {
	mu   sync.Mutex
	list []string
}

func (r *refusedWrites) watch(next http.RoundTripper) http.RoundTripper {
	return doer(func(req *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(req)
		if err != nil || req.Method == http.MethodGet || answer.StatusCode < 400 || answer.StatusCode == http.StatusConflict ||
			req.Method == http.MethodDelete && answer.StatusCode == http.StatusNotFound {
			return answer, err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(text))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = append(r.list, fmt.Sprintf("%s %s = %d %s", req.Method, req.URL.Path, answer.StatusCode, text))
		return answer, err
	})
}

// TestRolloutHasNoRefusedWrite rolls files, an image and the way back out to nodes whose daemons
// are the product's (statements M12, M28, M37 and M41), and looks at every write of both sides:
// the API refuses none but for a conflict. A build says which Job makes it.
func TestRolloutHasNoRefusedWrite(t *testing.T) {
	w, admin := startWithoutControllers(t, config.MachineConfig)
	var refused refusedWrites
	startNodes(t, w, admin, 2, refused.watch)
	w.kube.api = rest.CopyConfig(w.kube.api)
	w.kube.api.Wrap(refused.watch)
	if err := w.StartControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := &layering{t: t, WithWatch: admin}
	_, l.host = w.Registry()
	l.awaitUpdated("")
	l.create(l.machineConfig("50-motd", "/etc/motd", "Metalab"))
	l.awaitUpdated("50-motd")
	l.create(l.osConfig("FROM configs AS final\n"))
	patience.Await(t, "the nodes have an image", func() bool { return l.haveImage(2) })
	var builds mcv1.MachineOSBuildList
	if err := admin.List(t.Context(), &builds); err != nil || len(builds.Items) != 1 {
		t.Fatalf("%d MachineOSBuilds, %v; want one", len(builds.Items), err)
	}
	if st := builds.Items[0].Status; st.Builder == nil || st.Builder.Job == nil || len(st.RelatedObjects) != 1 || *st.Builder.Job != st.RelatedObjects[0] {
		t.Errorf("builder %+v and related objects %+v of a build, want its Job", st.Builder, st.RelatedObjects)
	}
	if err := admin.Delete(t.Context(), l.osConfig("")); err != nil {
		t.Fatal(err)
	}
	patience.Await(t, "the nodes have no image", func() bool { return l.haveImage(0) })
	l.awaitUpdated("50-motd")
	for i := range 2 {
		m := new(mcv1.MachineConfigNode)
		if err := admin.Get(t.Context(), client.ObjectKey{Name: fmt.Sprintf("w-%d", i)}, m); err != nil {
			t.Fatal(err)
		}
		if v := m.Status.ConfigVersion; v == nil || v.Current == "" || v.Current != v.Desired {
			t.Errorf("configVersion of MachineConfigNode %s = %+v, want the current one", m.Name, v)
		}
	}
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if len(refused.list) > 0 {
		t.Errorf("refused writes:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}

// haveImage reports whether so many nodes have an image, and none is between two.
func (l *layering) haveImage(want int) bool {
	l.t.Helper()
	var all corev1.NodeList
	if err := l.List(l.t.Context(), &all); err != nil {
		l.t.Fatal(err)
	}
	has := 0
	for _, n := range all.Items {
		a := n.Annotations
		if a[machineconfig.CurrentImage] != a[machineconfig.DesiredOSImage] || a[machineconfig.State] != machineconfig.Done {
			return false
		}
		has += min(len(a[machineconfig.CurrentImage]), 1)
	}
	return has == want
}
