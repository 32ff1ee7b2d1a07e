// Package pxe is the network boot of an emulated NIC: a client of DHCP, TFTP, iPXE
// and HTTP on real sockets, which returns the configuration of the agent that the
// boot would start, or the seed of another system. It checks what it loads: programs,
// kernels and the agent's configuration must be what they are said to be. The package does not know the
// machine of the NIC, and does not repeat requests: its caller has the clock.
package pxe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// ErrSilent says that no server answers. The boot can be tried again.
var ErrSilent = errors.New("no answer")

// NIC is the network interface that boots.
type NIC struct {
	MAC    string
	UUID   string // UUID of the machine
	Legacy bool   // its firmware is a PC BIOS, else UEFI on x86-64
}

// Network is a provisioning network with its services; the zero value has none. It
// is safe for concurrent use.
type Network struct {
	mu      sync.Mutex
	dhcp    netip.AddrPort
	tftp    uint16 // port
	waiting map[uint32]func()
}

// Serve sets the address of DHCP and the port of TFTP. An address that is not valid
// means that the service is gone.
func (n *Network) Serve(dhcp netip.AddrPort, tftp uint16) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dhcp, n.tftp = dhcp, tftp
}

func (n *Network) services() (dhcp netip.AddrPort, tftp uint16) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dhcp, n.tftp
}

// ReportExchange is called by the DHCP server after each message. It aborts the wait
// for a message that was ignored: in a lab whose time jumps, a boot cannot wait in
// real time for a reply that does not come.
func (n *Network) ReportExchange(e netboot.Exchange) {
	if e.Why == "" {
		return
	}
	n.mu.Lock()
	give := n.waiting[e.XID]
	n.mu.Unlock()
	if give != nil {
		give()
	}
}

// onNoReply has give called if a message is not answered, until done is called.
func (n *Network) onNoReply(xid uint32, give func()) (done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[uint32]func(){}
	}
	n.waiting[xid] = give
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.waiting, xid)
	}
}

// System is the system that a NIC has loaded: the agent's configuration, or the seed of a
// system that configures itself.
type System struct {
	job.Media
	Seed    *netboot.Seed // nil for the agent
	Cmdline string        // kernel command line; "" without a script
}

// PXE boots a NIC as PXE firmware does: it asks DHCP for a program, fetches it by
// TFTP and starts it. The program, iPXE, asks DHCP again and runs the script that
// DHCP names.
func (n *Network) PXE(ctx context.Context, nic NIC) (System, error) {
	arch := uefi
	if nic.Legacy {
		arch = bios
	}
	offer, err := n.requestBootFile(ctx, nic, arch, false)
	if err != nil {
		return System{}, err
	}
	program, err := n.fetchTFTP(ctx, offer)
	if err != nil {
		return System{}, err
	}
	if err := startsIPXE(program, nic.Legacy); err != nil {
		return System{}, fmt.Errorf("%s: %w", offer.file, err)
	}
	if offer, err = n.requestBootFile(ctx, nic, arch, true); err != nil {
		return System{}, err
	}
	return runScript(ctx, offer.file, nic)
}

// HTTP boots a NIC by UEFI HTTP boot: the ISO at uri or, when that is "", at the URI
// that DHCP names.
func (n *Network) HTTP(ctx context.Context, nic NIC, uri string) (System, error) {
	if uri == "" {
		offer, err := n.requestBootFile(ctx, nic, uefiHTTP, false)
		if err != nil {
			return System{}, err
		}
		uri = offer.file
	}
	r, err := open(ctx, uri)
	if err != nil {
		return System{}, err
	}
	m, err := ReadISO(r, r.size)
	return System{Media: m}, err
}
