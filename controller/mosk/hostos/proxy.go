package hostos

import (
	"fmt"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpproxy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// proxy returns the proxy for a request. The management cluster, the one with a KaaSRelease,
// names its Proxy; agents use the Proxy of their cluster instead. The error, which a module's
// status shows, contains no URL of a proxy.
func (c *Config) proxy(r *http.Request) (*url.URL, error) {
	var list clusterv1.ClusterList
	if err := c.Client.List(r.Context(), &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("Clusters: %w", err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		v := &o.Spec.ProviderSpec.Value
		if v.KaaS == nil || v.KaaS.Release == "" || v.Proxy == "" || !o.DeletionTimestamp.IsZero() {
			continue
		}
		var p kaasv1.Proxy
		if err := c.Client.Get(r.Context(), client.ObjectKey{Namespace: o.Namespace, Name: v.Proxy}, &p); err != nil {
			return nil, fmt.Errorf("Proxy %s/%s of the management cluster: %w", o.Namespace, v.Proxy, err)
		}
		config := httpproxy.Config{HTTPProxy: string(p.Spec.HTTPProxy), HTTPSProxy: string(p.Spec.HTTPSProxy), NoProxy: p.Spec.NoProxy}
		return config.ProxyFunc()(r.URL)
	}
	return http.ProxyFromEnvironment(r)
}
