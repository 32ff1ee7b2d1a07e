package pxe

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/pin/tftp/v3"
)

// arch is the vendor class and the architecture code of a firmware.
type arch struct {
	class string
	code  iana.Arch
}

var (
	bios     = arch{"PXEClient:Arch:00000:UNDI:002001", iana.INTEL_X86PC}
	uefi     = arch{"PXEClient:Arch:00007:UNDI:003016", iana.EFI_X86_64}
	uefiHTTP = arch{"HTTPClient:Arch:00016:UNDI:003016", iana.EFI_X86_64_HTTP}
)

// bootOffer is what a DHCP server names for the boot.
type bootOffer struct {
	server netip.Addr // the TFTP server
	file   string
}

// replyTimeout is how long, in real time, to wait for a datagram on loopback. That
// the DHCP server ignores a message is known earlier: see ReportExchange.
const replyTimeout = 5 * time.Second

// requestBootFile gets an address and a boot file by DHCP (RFC 2131, §3.1).
func (n *Network) requestBootFile(ctx context.Context, nic NIC, a arch, ipxe bool) (bootOffer, error) {
	mods, err := clientOptions(nic, a, ipxe)
	if err != nil {
		return bootOffer{}, err
	}
	offer, err := n.exchange(ctx, dhcpv4.MessageTypeOffer, append(mods, dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover)))
	if err != nil {
		return bootOffer{}, err
	}
	if a == uefiHTTP && offer.ClassIdentifier() != "HTTPClient" {
		return bootOffer{}, errors.New("no offer is for an HTTP client")
	}
	last := offer
	if !offer.YourIPAddr.IsUnspecified() { // else it is of a proxy DHCP server
		last, err = n.exchange(ctx, dhcpv4.MessageTypeAck, append(mods, dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier()))))
		if err != nil {
			return bootOffer{}, err
		}
		if !last.YourIPAddr.Equal(offer.YourIPAddr) {
			return bootOffer{}, fmt.Errorf("DHCP acknowledges %s and had offered %s", last.YourIPAddr, offer.YourIPAddr)
		}
	}
	out := bootOffer{file: strings.TrimRight(last.BootFileNameOption(), "\x00")}
	if out.file == "" {
		out.file = last.BootFileName
	}
	if out.file == "" {
		return bootOffer{}, errors.New("DHCP names nothing to boot")
	}
	if ip, ok := netip.AddrFromSlice(last.ServerIPAddr.To4()); ok {
		out.server = ip
	}
	return out, nil
}

// clientOptions returns the DHCP options of a PXE client (PXE 2.1, §2.2.1).
func clientOptions(nic NIC, a arch, ipxe bool) ([]dhcpv4.Modifier, error) {
	mac, err := net.ParseMAC(nic.MAC)
	if err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(strings.ReplaceAll(nic.UUID, "-", ""))
	if err != nil || len(id) != 16 {
		return nil, fmt.Errorf("UUID %q", nic.UUID)
	}
	// As SMBIOS has it: the first three parts least byte first.
	wire := append([]byte{0, id[3], id[2], id[1], id[0], id[5], id[4], id[7], id[6]}, id[8:]...)
	mods := []dhcpv4.Modifier{
		dhcpv4.WithHwAddr(mac), dhcpv4.WithBroadcast(true),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(a.class)), dhcpv4.WithOption(dhcpv4.OptClientArch(a.code)),
		dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, wire),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionBootfileName, dhcpv4.OptionTFTPServerName),
	}
	if ipxe {
		mods = append(mods, dhcpv4.WithUserClass("iPXE", false))
	}
	return mods, nil
}

// exchange sends a DHCP message and waits for a reply of a type.
func (n *Network) exchange(ctx context.Context, want dhcpv4.MessageType, mods []dhcpv4.Modifier) (*dhcpv4.DHCPv4, error) {
	m, err := dhcpv4.New(mods...)
	if err != nil {
		return nil, fmt.Errorf("DHCP: %w", err)
	}
	server, _ := n.services()
	if !server.IsValid() {
		return nil, fmt.Errorf("DHCP: %w", ErrSilent)
	}
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server))
	if err != nil {
		return nil, fmt.Errorf("DHCP: %w", err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(replyTimeout)); err != nil {
		return nil, fmt.Errorf("DHCP: %w", err)
	}
	give := func() { _ = c.SetReadDeadline(time.Unix(1, 0)) } // it may be closed already
	defer context.AfterFunc(ctx, give)()
	x := m.TransactionID
	defer n.onNoReply(uint32(x[0])<<24|uint32(x[1])<<16|uint32(x[2])<<8|uint32(x[3]), give)()
	if _, err := c.Write(m.ToBytes()); err != nil {
		return nil, asSilent(err)
	}
	b := make([]byte, 4096)
	for {
		k, err := c.Read(b)
		if err != nil {
			return nil, asSilent(err)
		}
		reply, err := dhcpv4.FromBytes(b[:k])
		if err != nil || reply.TransactionID != x || reply.OpCode != dhcpv4.OpcodeBootReply || !bytes.Equal(reply.ClientHWAddr, m.ClientHWAddr) {
			continue // it is for another client
		}
		switch got := reply.MessageType(); got {
		case want:
			return reply, nil
		case dhcpv4.MessageTypeNak:
			return nil, errors.New("DHCP refuses the address")
		}
	}
}

// asSilent turns a time-out and a refused connection into ErrSilent.
func asSilent(err error) error {
	if timeout := net.Error(nil); errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &timeout) && timeout.Timeout() {
		err = ErrSilent
	}
	return fmt.Errorf("DHCP: %w", err)
}

// maxProgram is the size limit of a network boot program, in bytes.
const maxProgram = 4 << 20

// fetchTFTP fetches the boot file by TFTP.
func (n *Network) fetchTFTP(ctx context.Context, from bootOffer) ([]byte, error) {
	_, port := n.services()
	client, err := tftp.NewClient(netip.AddrPortFrom(from.server, port).String())
	if err != nil {
		return nil, fmt.Errorf("TFTP: %w", err)
	}
	client.SetTimeout(replyTimeout)
	client.SetRetries(2)
	client.SetBlockSize(1468)
	file, err := client.Receive(from.file, "octet")
	if err != nil {
		return nil, fmt.Errorf("TFTP: %s: %w", from.file, err)
	}
	b := &boundedBuffer{ctx: ctx, left: maxProgram}
	if _, err := file.WriteTo(b); err != nil {
		return nil, fmt.Errorf("TFTP: %s: %w", from.file, err)
	}
	return b.b, nil
}

// boundedBuffer keeps the bytes written to it, up to a limit and until ctx ends.
type boundedBuffer struct {
	ctx  context.Context //nolint:containedctx // tftp's writers take none
	b    []byte
	left int
}

func (w *boundedBuffer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if len(p) > w.left {
		return 0, fmt.Errorf("file is too long: %w", io.ErrShortBuffer)
	}
	w.b, w.left = append(w.b, p...), w.left-len(p)
	return len(p), nil
}
