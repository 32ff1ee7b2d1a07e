package boot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"golang.org/x/sys/unix"
)

const (
	dhcpTimeout = 5 * time.Second // one DHCP attempt
	askTries    = 2
	minRenewal  = time.Minute // shortest interval between two renewals
	ethernet    = "1"         // value of /sys/class/net/*/type (ARPHRD_ETHER)
	classNet    = "/sys/class/net"
	resolvers   = "/etc/resolv.conf"
)

// network switches all NICs on and runs DHCP on each. It returns when the first
// has an address; the others continue.
func network(ctx context.Context, log *slog.Logger) error {
	if err := enableNIC("lo"); err != nil {
		return err
	}
	first := make(chan string, 1)
	go func() {
		known := map[string]bool{}
		again := time.NewTicker(lookAgain)
		defer again.Stop()
		for {
			for _, name := range nics() {
				if !known[name] {
					known[name] = true
					go maintainAddress(ctx, log, name, first)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
		}
	}()
	select {
	case name := <-first:
		log.Info("the network is there", "nic", name)
		return nil
	case <-time.After(linkWait):
		return fmt.Errorf("boot: no NIC has got an address within %s", linkWait)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nics returns the physical Ethernet devices.
func nics() []string {
	entries, err := os.ReadDir(classNet)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		kind, err := os.ReadFile(classNet + "/" + e.Name() + "/type")
		_, device := os.Stat(classNet + "/" + e.Name() + "/device")
		if err == nil && device == nil && strings.TrimSpace(string(kind)) == ethernet {
			out = append(out, e.Name())
		}
	}
	return out
}

// maintainAddress gets an address and renews it.
func maintainAddress(ctx context.Context, log *slog.Logger, name string, first chan<- string) {
	if err := enableNIC(name); err != nil {
		log.Warn("NIC not switched on", "nic", name, "error", err)
		return
	}
	wait := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = time.Second
		lease, err := requestDHCP(ctx, name)
		if err == nil {
			err = configure(name, lease)
		}
		if err != nil {
			log.Info("no address", "nic", name, "error", err)
			continue
		}
		select {
		case first <- name:
		default:
		}
		wait = max(minRenewal, lease.IPAddressLeaseTime(time.Hour)/2)
	}
}

func requestDHCP(ctx context.Context, name string) (*dhcpv4.DHCPv4, error) {
	c, err := nclient4.New(name, nclient4.WithTimeout(dhcpTimeout), nclient4.WithRetry(askTries))
	if err != nil {
		return nil, fmt.Errorf("boot: DHCP on %s: %w", name, err)
	}
	defer c.Close()
	lease, err := c.Request(ctx)
	if err != nil {
		return nil, fmt.Errorf("boot: DHCP on %s: %w", name, err)
	}
	return lease.ACK, nil
}

// configure sets the address, netmask, route and name servers of a DHCP response.
func configure(name string, ack *dhcpv4.DHCPv4) error {
	mask := ack.SubnetMask()
	if mask == nil {
		mask = ack.YourIPAddr.DefaultMask()
	}
	if err := setAddress(name, unix.SIOCSIFADDR, ack.YourIPAddr); err != nil {
		return fmt.Errorf("boot: address of %s: %w", name, err)
	}
	if err := setAddress(name, unix.SIOCSIFNETMASK, net.IP(mask)); err != nil {
		return fmt.Errorf("boot: netmask of %s: %w", name, err)
	}
	if routers := ack.Router(); len(routers) > 0 {
		if err := addRoute(name, routers[0]); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("boot: route by %s: %w", routers[0], err)
		}
	}
	var b strings.Builder
	for _, ip := range ack.DNS() {
		fmt.Fprintf(&b, "nameserver %s\n", ip)
	}
	if b.Len() == 0 {
		return nil
	}
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if err := os.WriteFile(resolvers, []byte(b.String()), 0o644); err != nil { //nolint:gosec // all programs read it
		return fmt.Errorf("boot: %w", err)
	}
	return nil
}

// withSocket calls do with a socket, for the ioctls of NICs.
func withSocket(do func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

// enableNIC switches a NIC on.
func enableNIC(name string) error {
	return withSocket(func(fd int) error {
		r, err := unix.NewIfreq(name)
		if err != nil {
			return fmt.Errorf("boot: %s: %w", name, err)
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
			return fmt.Errorf("boot: %s: %w", name, err)
		}
		r.SetUint16(r.Uint16() | unix.IFF_UP)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
			return fmt.Errorf("boot: %s: %w", name, err)
		}
		return nil
	})
}

func setAddress(name string, request uint, ip net.IP) error {
	return withSocket(func(fd int) error {
		r, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := r.SetInet4Addr(ip.To4()); err != nil {
			return err
		}
		return unix.IoctlIfreq(fd, request, r)
	})
}

// rtentry is the argument of SIOCADDRT (Linux, include/uapi/linux/route.h).
type rtentry struct {
	_            uint64
	to, by, mask [16]byte // sockaddr
	flags        uint16
	_            int16
	_            uint64
	_            uintptr
	_            int16 // metric
	device       *byte
	_, _         uint64
	_            uint16
}

// addRoute adds the default route through a router.
func addRoute(name string, router net.IP) error {
	sockaddr := func(ip net.IP) (b [16]byte) {
		binary.NativeEndian.PutUint16(b[:], unix.AF_INET)
		copy(b[4:], ip.To4())
		return b
	}
	device, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	r := rtentry{
		to: sockaddr(net.IPv4zero), mask: sockaddr(net.IPv4zero), by: sockaddr(router),
		flags: unix.RTF_UP | unix.RTF_GATEWAY, device: device,
	}
	return withSocket(func(fd int) error {
		//nolint:gosec // the kernel takes no other form
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r)))
		if errno != 0 {
			return errno
		}
		return nil
	})
}
