package manager

import (
	"context"
	"net"
	"net/netip"

	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/metalab-dev/metalab/controller/mosk/provider/clusters"
	"github.com/metalab-dev/metalab/controller/mosk/provider/loadbalancer"
)

// LoadBalancer makes the load balancers of Clusters by forwarding TCP connections, as a lab
// does. Elsewhere others make them.
type LoadBalancer struct {
	// Networks contain the addresses that Clusters may ask for.
	Networks []netip.Prefix
	// Dial connects to the Kubernetes API of a control machine.
	Dial func(context.Context, loadbalancer.Backend) (net.Conn, error)
}

// balancer returns the maker of load balancers; nil when others make them.
func (s *Set) balancer() (clusters.Balancer, error) {
	c := s.cfg.LoadBalancer
	if c == nil {
		return nil, nil
	}
	f, err := loadbalancer.New(loadbalancer.Config{Networks: c.Networks, Port: loadbalancer.APIPort, Dial: c.Dial})
	if err != nil {
		return nil, err
	}
	return f, s.mgr.Add(ctrlmanager.RunnableFunc(f.Run))
}
