package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

const (
	proxyName = "outbound"
	proxyUser = "operator"
	// farHost has a name that no resolver knows (RFC 6761, §6.4): the proxy alone reaches it.
	farHost = "files.invalid"
	farText = "from behind the proxy\n"
)

// registerProxies binds the steps on the Proxy of a Cluster.
func (s *scenario) registerProxies(sc *stepRegistry) {
	sc.Step(`^a cluster whose release downloads "([^"]*)" from a server behind a proxy with the password "([^"]*)"$`, "starts an HTTP proxy that demands this password and alone reaches the server; creates a management Cluster whose ClusterRelease has an item that downloads the file", s.clusterBehindProxy)
	sc.Step(`^the modules are on the server behind the proxy$`, "serves the modules that will be listed from the server that the proxy alone reaches", func() (err error) {
		if s.modules, err = startModuleServer(); err != nil {
			return err
		}
		s.modules.url = "http://" + farHost
		s.proxy.modules.Store(s.modules)
		return nil
	})
	sc.Step(`^the cluster names the proxy$`, "sets proxy of the Cluster", func(ctx context.Context) error {
		return s.changeCluster(ctx, func(v *baremetalv1.ClusterProviderSpec) { v.Proxy = proxyName })
	})
	sc.Step(`^the operator creates the proxy$`, "creates the Proxy with the user name and password in its URL", func(ctx context.Context) error {
		return s.create(ctx, &kaasv1.Proxy{ObjectMeta: day2Meta(proxyName), Spec: kaasv1.ProxySpec{HTTPProxy: kaasv1.ProxyURL(s.proxy.url)}})
	})
}

// outboundProxy is an HTTP proxy.
type outboundProxy struct {
	url  string // with user name and password
	http *http.Server
	done sync.WaitGroup

	modules atomic.Pointer[moduleServer] // the server behind the proxy, beside farText; nil: none
}

func startProxy(password string) (*outboundProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &outboundProxy{url: fmt.Sprintf("http://%s:%s@%s", proxyUser, password, l.Addr())}
	want := new(http.Request)
	want.Header = http.Header{}
	want.SetBasicAuth(proxyUser, password)
	p.http = &http.Server{ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Proxy-Authorization") != want.Header.Get("Authorization"):
			w.WriteHeader(http.StatusProxyAuthRequired)
		case r.URL.Host != farHost:
			w.WriteHeader(http.StatusBadGateway)
		case strings.HasSuffix(r.URL.Path, archiveSuffix) && p.modules.Load() != nil:
			p.modules.Load().ServeHTTP(w, r)
		default:
			_, _ = w.Write([]byte(farText))
		}
	})}
	p.done.Go(func() { _ = p.http.Serve(l) })
	return p, nil
}

func (p *outboundProxy) close() {
	_ = p.http.Close()
	p.done.Wait()
}

// clusterBehindProxy creates a management Cluster: its release is of a version below those
// of other scenarios, and never changes.
func (s *scenario) clusterBehindProxy(ctx context.Context, path, password string) (err error) {
	if s.proxy, err = startProxy(password); err != nil {
		return err
	}
	name := fmt.Sprintf("outbound-%d", rand.Uint32())
	sum := sha256.Sum256([]byte(farText))
	download := lcmv1.LCMStateItem{Runner: lcmv1.RunnerDownloader, Name: "download", Version: "1", Phase: lcmv1.PhaseDeploy, Params: map[string]string{
		item.ParamURL: "http://" + farHost + path, item.ParamSHA256: hex.EncodeToString(sum[:]), item.ParamPath: path,
	}}
	c := &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)}
	c.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
	c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{KaaS: &baremetalv1.KaaS{Release: name}}
	return s.create(ctx,
		&kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaasv1.ClusterReleaseSpec{
			Version: "0.1.0", LCMType: lcmv1.LCMTypeK0s,
			AllowedDistributions: []kaasv1.Distribution{{ID: "debian", Default: true, Image: kaasv1.DistributionImage{URL: s.url(), Checksum: s.url() + ".sha256"}}},
			MachineTypes:         map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineWorker: {download}},
		}},
		&kaasv1.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaasv1.KaaSReleaseSpec{Version: "0.1.0", ClusterRelease: name}}, c)
}
