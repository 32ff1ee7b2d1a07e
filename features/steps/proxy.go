package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetal "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	capi "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaas "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
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
	sc.Step(`^the cluster names the proxy$`, "sets proxy of the Cluster", func(ctx context.Context) error {
		return s.changeCluster(ctx, func(v *baremetal.ClusterProviderSpec) { v.Proxy = proxyName })
	})
	sc.Step(`^the operator creates the proxy$`, "creates the Proxy with the user name and password in its URL", func(ctx context.Context) error {
		return s.create(ctx, &kaas.Proxy{ObjectMeta: day2Meta(proxyName), Spec: kaas.ProxySpec{HTTPProxy: kaas.ProxyURL(s.proxy.url)}})
	})
}

// outboundProxy is an HTTP proxy.
type outboundProxy struct {
	url  string // with user name and password
	http *http.Server
	done sync.WaitGroup
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
	download := lcm.LCMStateItem{Runner: lcm.RunnerDownloader, Name: "download", Version: "1", Phase: lcm.PhaseDeploy, Params: map[string]string{
		item.ParamURL: "http://" + farHost + path, item.ParamSHA256: hex.EncodeToString(sum[:]), item.ParamPath: path,
	}}
	c := &capi.Cluster{ObjectMeta: day2Meta(clusterName)}
	c.Labels = map[string]string{capi.ProviderLabel: capi.ProviderBareMetal}
	c.Spec.ProviderSpec.Value = baremetal.ClusterProviderSpec{KaaS: &baremetal.KaaS{Release: name}}
	return s.create(ctx,
		&kaas.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaas.ClusterReleaseSpec{
			Version: "0.1.0", LCMType: lcm.LCMTypeK0s,
			AllowedDistributions: []kaas.Distribution{{ID: "debian", Default: true, Image: kaas.DistributionImage{URL: s.url(), Checksum: s.url() + ".sha256"}}},
			MachineTypes:         map[lcm.MachineType][]lcm.LCMStateItem{lcm.MachineWorker: {download}},
		}},
		&kaas.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaas.KaaSReleaseSpec{Version: "0.1.0", ClusterRelease: name}}, c)
}
