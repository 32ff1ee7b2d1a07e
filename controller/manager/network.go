package manager

import (
	"context"
	"errors"
	"fmt"

	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/metalab-dev/metalab/controller/netboot"
)

// Network configures the DHCP and TFTP services of the provisioning network.
type Network struct {
	netboot.Network
	Ports netboot.Ports // to listen on, once this process leads
	// Sockets, when set, are used instead of Ports.
	Sockets *netboot.Sockets
	// OnDHCP, when set, is called after each DHCP message with its outcome.
	OnDHCP func(netboot.Exchange)
}

// serveNetwork adds the services of the provisioning network to the manager, which
// starts them once this process leads.
func (s *Set) serveNetwork(boot *netboot.Server) error {
	n := s.cfg.Network
	if n == nil {
		return nil
	}
	return s.mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		on := n.Sockets
		if on == nil {
			var err error
			if on, err = n.Ports.Listen(ctx); err != nil {
				return fmt.Errorf("provisioning network: %w", err)
			}
		}
		if err := boot.Serve(ctx, on); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("provisioning network: %w", err)
		}
		return nil
	}))
}
