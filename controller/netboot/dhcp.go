package netboot

import (
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/metalab-dev/metalab/controller/inband"
)

// Vendor and user classes of firmware (PXE 2.1, §2.2.1; UEFI 2.10, §24.7.3).
const (
	classPXE  = "PXEClient"
	classHTTP = "HTTPClient"
	userIPXE  = "iPXE"
)

// programs are the network boot programs that firmware fetches by TFTP, by architecture
// (RFC 4578, with IANA's corrections: UEFI on x86-64 sends 7 or 9).
var programs = map[iana.Arch]string{
	iana.INTEL_X86PC: LegacyPXE, iana.EFI_X86_64: UEFIPXE, iana.EFI_BC: UEFIPXE,
}

// httpArchs are the architectures of firmware that boots the ISO over HTTP.
var httpArchs = []iana.Arch{iana.EFI_X86_64_HTTP, iana.EFI_BC_HTTP}

// Exchange is a DHCP message of a client and the outcome.
type Exchange struct {
	MAC  string
	XID  uint32
	Type string // DHCP message type
	File string // boot file in the answer
	Why  string // why there is no answer; "" when there is one
}

// dhcp returns the answer to a message, nil when there is none.
func (s *Server) dhcp(m *dhcpv4.DHCPv4) (answer *dhcpv4.DHCPv4, e Exchange) {
	e = Exchange{MAC: m.ClientHWAddr.String(), XID: xid(m), Type: m.MessageType().String()}
	n := s.cfg.Net
	if n == nil || m.OpCode != dhcpv4.OpcodeBootRequest || m.HWType != iana.HWTypeEthernet || len(m.ClientHWAddr) != 6 {
		e.Why = "not a request from Ethernet"
		return nil, e
	}
	if id := m.ServerIdentifier(); id != nil && !id.Equal(n.Server.AsSlice()) {
		e.Why = "the message is for another server"
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	boot, known := s.bootOf(e.MAC, machineID(m))
	if !known {
		e.Why = "unknown MAC address"
		return nil, e
	}
	reply, ok := replies[n.Mode][m.MessageType()]
	if !ok {
		e.Why = "no answer to this message type"
		if m.MessageType() == dhcpv4.MessageTypeDecline {
			s.leases.decline(e.MAC)
		}
		return nil, e
	}
	server := net.IP(n.Server.AsSlice())
	mods := []dhcpv4.Modifier{
		dhcpv4.WithMessageType(reply), dhcpv4.WithServerIP(server), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(server)),
		// Firmware expects its client machine identifier in the answer (PXE 2.1, §2.4.3).
		dhcpv4.WithOptionCopied(m, dhcpv4.OptionClientMachineIdentifier),
	}
	file := s.bootFile(boot, m)
	if n.Mode == Full {
		lease, nak, err := s.leaseFor(m, e.MAC)
		if err != nil {
			e.Why = err.Error()
			return nil, e
		}
		if nak {
			mods[0], file = dhcpv4.WithMessageType(dhcpv4.MessageTypeNak), ""
		} else {
			mods = append(mods, lease...)
		}
	} else if file == "" {
		e.Why = "nothing to boot"
		return nil, e
	}
	if file != "" {
		mods = append(mods, s.bootOptions(m, file)...)
	}
	answer, err := dhcpv4.NewReplyFromRequest(m, mods...)
	if err != nil {
		e.Why = err.Error()
		return nil, e
	}
	e.File = file
	return answer, e
}

// replies are the message types of the answers (RFC 2131, §4.3; PXE 2.1, §2.4).
var replies = map[Mode]map[dhcpv4.MessageType]dhcpv4.MessageType{
	Full: {
		dhcpv4.MessageTypeDiscover: dhcpv4.MessageTypeOffer,
		dhcpv4.MessageTypeRequest:  dhcpv4.MessageTypeAck,
		dhcpv4.MessageTypeInform:   dhcpv4.MessageTypeAck,
	},
	Proxy: {
		dhcpv4.MessageTypeDiscover: dhcpv4.MessageTypeOffer,
		dhcpv4.MessageTypeRequest:  dhcpv4.MessageTypeAck,
	},
}

// leaseFor returns the options of an answer that concern the client's address. nak is true
// when the client requests an address that is not its own.
func (s *Server) leaseFor(m *dhcpv4.DHCPv4, mac string) (mods []dhcpv4.Modifier, nak bool, err error) {
	n := s.cfg.Net
	mods = []dhcpv4.Modifier{dhcpv4.WithNetmask(net.CIDRMask(n.Pool.Bits(), 32))}
	if n.Router.IsValid() {
		mods = append(mods, dhcpv4.WithOption(dhcpv4.OptRouter(n.Router.AsSlice())))
	}
	if len(n.DNS) > 0 {
		var ips []net.IP
		for _, a := range n.DNS {
			ips = append(ips, a.AsSlice())
		}
		mods = append(mods, dhcpv4.WithOption(dhcpv4.OptDNS(ips...)))
	}
	if m.MessageType() == dhcpv4.MessageTypeInform { // it has an address
		return mods, false, nil
	}
	a, err := s.leases.give(mac)
	if err != nil {
		return nil, false, err
	}
	if m.MessageType() == dhcpv4.MessageTypeRequest {
		want := m.RequestedIPAddress()
		if want == nil {
			want = m.ClientIPAddr
		}
		if w, ok := netip.AddrFromSlice(want); ok && !w.Unmap().IsUnspecified() && w.Unmap() != a {
			return nil, true, nil
		}
	}
	return append(mods, dhcpv4.WithYourIP(a.AsSlice()), dhcpv4.WithLeaseTime(uint32(n.lease().Seconds()))), false, nil
}

// bootOf returns the boot that the server with a NIC may make now, the zero Boot for none. It
// returns false for a NIC that neither a registered server nor a seed has. A registered server
// has no seed, whatever it may boot. The caller holds s.mu.
func (s *Server) bootOf(mac, uuid string) (inband.Boot, bool) {
	if c := s.find(mac, uuid); c != nil {
		return s.open[c.Host], true
	}
	if o := s.seeds[mac]; o != nil {
		return o.boot, true
	}
	return inband.Boot{}, false
}

// bootFile returns the boot file for a boot, "" when there is none for the firmware that asks.
// The caller holds s.mu.
func (s *Server) bootFile(boot inband.Boot, m *dhcpv4.DHCPv4) string {
	if boot == (inband.Boot{}) {
		return ""
	}
	class := m.ClassIdentifier()
	switch {
	case slices.Contains(m.UserClass(), userIPXE):
		return s.url(boot, scriptFile)
	case strings.HasPrefix(class, classHTTP):
		if isSeed(boot) {
			return "" // a seed has no ISO here
		}
		if slices.ContainsFunc(m.ClientArch(), func(a iana.Arch) bool { return slices.Contains(httpArchs, a) }) {
			return s.url(boot, ISOFile)
		}
	case strings.HasPrefix(class, classPXE):
		for _, a := range m.ClientArch() {
			if p := programs[a]; p != "" {
				return s.cfg.Key.Sign(tftpPurpose, boot) + "/" + p
			}
		}
	}
	return ""
}

// fileField is the size of the header's file field in bytes, with the final zero.
const fileField = 128

// bootOptions returns the options that name the boot file. An HTTP client accepts an offer
// only if its vendor class is HTTPClient (UEFI 2.10, §24.7.3.1). The offer of a proxy must
// tell a PXE client to use this file and to skip the discovery of boot servers (PXE 2.1,
// option 43, tag 6, bit 3).
func (s *Server) bootOptions(m *dhcpv4.DHCPv4, file string) []dhcpv4.Modifier {
	mods := []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptBootFileName(file)),
		dhcpv4.WithOption(dhcpv4.OptTFTPServerName(s.cfg.Net.Server.String())),
	}
	if len(file) < fileField {
		mods = append(mods, func(d *dhcpv4.DHCPv4) { d.BootFileName = file })
	}
	switch class := m.ClassIdentifier(); {
	case strings.HasPrefix(class, classHTTP):
		mods = append(mods, dhcpv4.WithOption(dhcpv4.OptClassIdentifier(classHTTP)))
	case strings.HasPrefix(class, classPXE) && s.cfg.Net.Mode == Proxy:
		mods = append(mods, dhcpv4.WithOption(dhcpv4.OptClassIdentifier(classPXE)),
			dhcpv4.WithGeneric(dhcpv4.OptionVendorSpecificInformation, []byte{6, 1, 8, 255}))
	}
	return mods
}

// machineID returns the UUID in a client's message as BMCs write it, "" when there is none.
// SMBIOS has the first three fields of a UUID in little-endian order (PXE 2.1, option 97).
func machineID(m *dhcpv4.DHCPv4) string {
	b := m.Options.Get(dhcpv4.OptionClientMachineIdentifier)
	if len(b) != 17 || b[0] != 0 {
		return ""
	}
	b = b[1:]
	h := hex.EncodeToString([]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]})
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func xid(m *dhcpv4.DHCPv4) uint32 {
	x := m.TransactionID
	return uint32(x[0])<<24 | uint32(x[1])<<16 | uint32(x[2])<<8 | uint32(x[3])
}
