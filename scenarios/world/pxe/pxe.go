// Package pxe is the firmware of an emulated NIC, and what it loads: it boots
// over the network as a client of DHCP, TFTP, iPXE and HTTP, on real sockets,
// and says which agent's configuration the system holds that it would start. It
// takes what comes for what it is: a program must be one, a kernel too, and an
// agent is there only if its configuration is. The package does not know what
// machine the NIC is in, and waits for nobody: time is its caller's.
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

// ErrSilent says that nobody answers: it may be worth while to ask again.
var ErrSilent = errors.New("no answer")

// NIC is who boots.
type NIC struct {
	MAC    string
	UUID   string // of the machine
	Legacy bool   // its firmware is a PC BIOS, else UEFI on x86-64
}

// Network is what NICs are cabled to: the services of one provisioning network.
// The zero value has none. It is safe for concurrent use.
type Network struct {
	mu      sync.Mutex
	dhcp    netip.AddrPort
	tftp    uint16 // port
	waiting map[uint32]func()
}

// Serve says where DHCP listens, and on which port TFTP does. Addresses that
// are not valid are of services that are gone.
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

// ReportExchange is told by the DHCP server what became of a message. In a lab whose time
// jumps nobody can wait for an answer that does not come: that it does not come
// has to be known. Nothing else is taken from here.
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

// onNoReply has give called when a message is not answered, until done.
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

// System is what a NIC has loaded: an agent's, by its configuration.
type System struct {
	job.Media
	Cmdline string // of the kernel, where a script has one
}

// PXE boots a NIC: its firmware asks DHCP for a program, fetches that by TFTP
// and starts it. The program asks again, as itself, and runs the script that it
// is given.
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
		return System{}, fmt.Errorf("pxe: %s: %w", offer.file, err)
	}
	if offer, err = n.requestBootFile(ctx, nic, arch, true); err != nil {
		return System{}, err
	}
	return runScript(ctx, offer.file, nic)
}

// HTTP boots a NIC over HTTP: the ISO at a URI or, without one, at the one that
// DHCP names.
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
