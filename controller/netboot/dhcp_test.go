package netboot

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
)

const (
	baseURL = "http://127.0.0.1:1"
	ourMAC  = "02:00:00:00:00:01"
	ourUUID = "01234567-89ab-4def-8123-456789abcdef"
)

var (
	// A boot whose name is as long as any.
	ourBoot = inband.Boot{Host: "b0b9dd35-2a18-4a6b-9c5e-0123456789ab", ID: "deprovisioning-0123456789abcdef"}
	ourHost = Client{Host: ourBoot.Host, Name: "node-0", MAC: ourMAC}
)

func network(mode Mode) *Network {
	return &Network{
		Mode: mode, Server: netip.MustParseAddr("127.0.0.1"), Pool: netip.MustParsePrefix("198.51.100.0/24"),
		Router: netip.MustParseAddr("198.51.100.1"), DNS: []netip.Addr{netip.MustParseAddr("198.51.100.2")},
	}
}

func newNetServer(t testing.TB, n *Network) *Server {
	t.Helper()
	s, err := New(Config{
		Key: make(inband.Key, inband.KeySize), URL: baseURL, Net: n,
		Media: func(b inband.Boot) job.Media {
			return job.Media{Server: "https://127.0.0.1:2", Token: "secret of " + b.Host, Boot: b.String()}
		},
	})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

// known is a server that may boot ourBoot.
func known(t testing.TB, n *Network) *Server {
	t.Helper()
	s := newNetServer(t, n)
	if err := s.Know(ourHost); err != nil {
		t.Fatalf("Know: %v", err)
	}
	s.Open(ourBoot)
	return s
}

func message(t testing.TB, kind dhcpv4.MessageType, mac string, mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	hw, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(hw), dhcpv4.WithMessageType(kind)}, mods...)...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func class(name string, arch iana.Arch) dhcpv4.Modifier {
	return func(m *dhcpv4.DHCPv4) {
		m.UpdateOption(dhcpv4.OptClassIdentifier(name))
		m.UpdateOption(dhcpv4.OptClientArch(arch))
	}
}

var (
	biosROM  = class("PXEClient:Arch:00000:UNDI:002001", iana.INTEL_X86PC)
	uefiROM  = class("PXEClient:Arch:00007:UNDI:003016", iana.EFI_X86_64)
	httpROM  = class("HTTPClient:Arch:00016:UNDI:003016", iana.EFI_X86_64_HTTP)
	armROM   = class("PXEClient:Arch:00011:UNDI:003016", iana.EFI_ARM64)
	ipxe     = dhcpv4.WithUserClass(userIPXE, false)
	withUUID = dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, []byte{
		0, 0x67, 0x45, 0x23, 0x01, 0xab, 0x89, 0xef, 0x4d, 0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
	})
)

func TestBootFileMatchesTheFirmwareArchitecture(t *testing.T) {
	s := known(t, network(Full))
	tftp := s.cfg.Key.Sign(tftpPurpose, ourBoot) + "/"
	for _, tt := range []struct {
		name string
		mods []dhcpv4.Modifier
		want string
	}{
		{"BIOS", []dhcpv4.Modifier{biosROM}, tftp + LegacyPXE},
		{"UEFI", []dhcpv4.Modifier{uefiROM}, tftp + UEFIPXE},
		{"UEFI over HTTP", []dhcpv4.Modifier{httpROM}, s.ISO(ourBoot)},
		{"iPXE", []dhcpv4.Modifier{uefiROM, ipxe}, s.url(ourBoot, scriptFile)},
		{"iPXE as RFC 3004 has it", []dhcpv4.Modifier{uefiROM, dhcpv4.WithUserClass(userIPXE, true)}, s.url(ourBoot, scriptFile)},
		{"an architecture that nothing is for", []dhcpv4.Modifier{armROM}, ""},
		{"an operating system", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reply, e := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, ourMAC, tt.mods...))
			if reply == nil || reply.MessageType() != dhcpv4.MessageTypeOffer || e.Why != "" {
				t.Fatalf("no offer: %+v", e)
			}
			again, err := dhcpv4.FromBytes(reply.ToBytes())
			if err != nil {
				t.Fatalf("the offer does not parse: %v", err)
			}
			if got := again.BootFileNameOption(); got != tt.want || e.File != tt.want {
				t.Errorf("boot file %q, told %q: want %q", got, e.File, tt.want)
			}
			if len(tt.want) < fileField && again.BootFileName != tt.want {
				t.Errorf("file field %q, want %q", again.BootFileName, tt.want)
			}
			if strings.HasPrefix(tt.want, tftp) && len(tt.want) >= fileField {
				t.Errorf("%q does not fit the file field, which is all that old firmware reads", tt.want)
			}
			if !s.cfg.Net.Pool.Contains(netip.MustParseAddr(again.YourIPAddr.String())) || again.ServerIPAddr.String() != "127.0.0.1" ||
				again.IPAddressLeaseTime(0) != time.Hour || again.Router()[0].String() != "198.51.100.1" {
				t.Errorf("offer:\n%s", again.Summary())
			}
			if isHTTP := again.ClassIdentifier() == classHTTP; isHTTP != (tt.name == "UEFI over HTTP") {
				t.Errorf("vendor class %q", again.ClassIdentifier())
			}
		})
	}
}

// A client that is not registered gets no answer; a registered one gets a boot file
// only while its boot is open.
func TestUnknownClientsGetNothing(t *testing.T) {
	s := known(t, network(Full))
	for name, m := range map[string]*dhcpv4.DHCPv4{
		"another MAC address":           message(t, dhcpv4.MessageTypeDiscover, "02:00:00:00:00:02", uefiROM),
		"iPXE with another MAC address": message(t, dhcpv4.MessageTypeRequest, "02:00:00:00:00:02", uefiROM, ipxe),
		"a UUID that nobody has told":   message(t, dhcpv4.MessageTypeDiscover, "02:00:00:00:00:02", uefiROM, withUUID),
		"for another server":            message(t, dhcpv4.MessageTypeRequest, ourMAC, uefiROM, dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(192, 0, 2, 1)))),
		"a reply":                       message(t, dhcpv4.MessageTypeOffer, ourMAC, func(m *dhcpv4.DHCPv4) { m.OpCode = dhcpv4.OpcodeBootReply }),
		"no type":                       message(t, dhcpv4.MessageTypeNone, ourMAC),
	} {
		if reply, e := s.dhcp(m); reply != nil || e.Why == "" {
			t.Errorf("%s: answered %+v:\n%s", name, e, reply.Summary())
		}
	}
	s.Close(ourHost.Host)
	if reply, e := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, ourMAC, uefiROM, ipxe)); reply == nil || e.File != "" {
		t.Errorf("after Close: %+v, want an address and nothing to boot", e)
	}
	s.Open(ourBoot)
	s.Forget(ourHost.Host)
	if reply, _ := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, ourMAC, uefiROM)); reply != nil {
		t.Errorf("after Forget: answered\n%s", reply.Summary())
	}
	s.Open(ourBoot) // the host is no longer known
	if reply, _ := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, ourMAC, uefiROM)); reply != nil {
		t.Errorf("opened, but not known: answered\n%s", reply.Summary())
	}
}

func TestServerIsKnownByItsUUIDUntilItsMACIs(t *testing.T) {
	s := newNetServer(t, network(Full))
	h := Client{Host: ourBoot.Host, Name: "node-0", UUID: strings.ToUpper(ourUUID)}
	if err := s.Know(h); err != nil {
		t.Fatal(err)
	}
	s.Open(ourBoot)
	if reply, _ := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, ourMAC, uefiROM)); reply != nil {
		t.Error("answered a server that says no UUID")
	}
	if _, e := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, ourMAC, uefiROM, withUUID)); e.File == "" {
		t.Fatalf("by its UUID: %+v", e)
	}
	if err := s.Know(h); err != nil { // as at each pass
		t.Fatal(err)
	}
	if _, e := s.dhcp(message(t, dhcpv4.MessageTypeRequest, ourMAC, uefiROM, ipxe)); e.File == "" {
		t.Errorf("by the MAC address that it had: %+v", e)
	}
	if reply, _ := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, "02:00:00:00:00:02", uefiROM, withUUID)); reply != nil {
		t.Error("answered a second NIC that says the same UUID")
	}
}

// B-47 B-141
func TestTwoHostsCannotHaveOneMAC(t *testing.T) {
	s := known(t, network(Full))
	err := s.Know(Client{Host: "other", Name: "node-1", MAC: strings.ToUpper(ourMAC)})
	if want := "MAC address 02:00:00:00:00:01 conflicts with existing node node-0"; err == nil || err.Error() != want {
		t.Errorf("Know = %v, want %q", err, want)
	}
	for _, bad := range []string{"x", "02:00", "02:00:00:00:00:00:00:01"} {
		if err := s.Know(Client{Host: "other", MAC: bad}); err == nil {
			t.Errorf("Know(MAC %q) = nil, want an error", bad)
		}
	}
}

func TestProxyOffersABootFileAndNoAddress(t *testing.T) {
	s := known(t, network(Proxy))
	reply, e := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, ourMAC, biosROM))
	if reply == nil {
		t.Fatalf("no offer: %+v", e)
	}
	if !reply.YourIPAddr.IsUnspecified() || reply.ClassIdentifier() != classPXE || reply.IPAddressLeaseTime(0) != 0 ||
		string(reply.Options.Get(dhcpv4.OptionVendorSpecificInformation)) != "\x06\x01\x08\xff" {
		t.Errorf("offer:\n%s", reply.Summary())
	}
	if reply, _ := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, ourMAC)); reply != nil {
		t.Errorf("answered who does not boot:\n%s", reply.Summary())
	}
}

func TestEachClientGetsAnotherAddress(t *testing.T) {
	n := network(Full)
	n.Pool = netip.MustParsePrefix("198.51.100.0/29") // 6, of which 2 are the router's and the resolver's
	s := newNetServer(t, n)
	given := map[string]string{}
	ask := func(mac string, kind dhcpv4.MessageType, want net.IP) *dhcpv4.DHCPv4 {
		if err := s.Know(Client{Host: mac, Name: mac, MAC: mac}); err != nil {
			t.Fatal(err)
		}
		m := message(t, kind, mac)
		if want != nil {
			m.UpdateOption(dhcpv4.OptRequestedIPAddress(want))
		}
		reply, _ := s.dhcp(m)
		return reply
	}
	for i := range 4 {
		mac := "02:00:00:00:01:0" + string(rune('0'+i))
		offer := ask(mac, dhcpv4.MessageTypeDiscover, nil)
		ip := offer.YourIPAddr.String()
		if other := given[ip]; other != "" || strings.HasSuffix(ip, ".1") || strings.HasSuffix(ip, ".2") || strings.HasSuffix(ip, ".0") || strings.HasSuffix(ip, ".7") {
			t.Errorf("%s is offered %s, which is %q's or not to be given", mac, ip, other)
		}
		given[ip] = mac
		if ack := ask(mac, dhcpv4.MessageTypeRequest, offer.YourIPAddr); ack.MessageType() != dhcpv4.MessageTypeAck || !ack.YourIPAddr.Equal(offer.YourIPAddr) {
			t.Errorf("%s asks for what it was offered:\n%s", mac, ack.Summary())
		}
		if nak := ask(mac, dhcpv4.MessageTypeRequest, net.IPv4(192, 0, 2, 9)); nak.MessageType() != dhcpv4.MessageTypeNak || !nak.YourIPAddr.IsUnspecified() {
			t.Errorf("%s asks for a foreign address:\n%s", mac, nak.Summary())
		}
	}
	if reply := ask("02:00:00:00:01:09", dhcpv4.MessageTypeDiscover, nil); reply != nil {
		t.Errorf("the pool is empty, yet:\n%s", reply.Summary())
	}
	s.Forget("02:00:00:00:01:00")
	if reply := ask("02:00:00:00:01:09", dhcpv4.MessageTypeDiscover, nil); reply == nil {
		t.Error("an address that was let go is not given again")
	}
	before := ask("02:00:00:00:01:01", dhcpv4.MessageTypeDiscover, nil).YourIPAddr
	ask("02:00:00:00:01:01", dhcpv4.MessageTypeDecline, nil)
	s.Forget("02:00:00:00:01:02") // else there were none left
	if after := ask("02:00:00:00:01:01", dhcpv4.MessageTypeDiscover, nil).YourIPAddr; after.Equal(before) {
		t.Errorf("%s was declined, and is offered again", before)
	}
}

func TestResponsesAreSentToRelayClientOrBroadcast(t *testing.T) {
	for _, tt := range []struct{ relay, from, want string }{
		{"0.0.0.0", "0.0.0.0:68", "255.255.255.255:68"},
		{"0.0.0.0", "127.0.0.1:4444", "127.0.0.1:4444"},
		{"192.0.2.1", "192.0.2.1:67", "192.0.2.1:67"},
		{"192.0.2.1", "198.51.100.9:4444", "192.0.2.1:67"},
	} {
		m := message(t, dhcpv4.MessageTypeDiscover, ourMAC, dhcpv4.WithGatewayIP(net.ParseIP(tt.relay)))
		if got := destination(m, netip.MustParseAddrPort(tt.from)).String(); got != tt.want {
			t.Errorf("relay %s, from %s: answered to %s, want %s", tt.relay, tt.from, got, tt.want)
		}
	}
}

// FuzzDHCP: the response to any packet is a valid message to a registered MAC
// address, and its boot file belongs to the open boot of that host.
func FuzzDHCP(f *testing.F) {
	for _, m := range []*dhcpv4.DHCPv4{
		message(f, dhcpv4.MessageTypeDiscover, ourMAC, uefiROM), message(f, dhcpv4.MessageTypeRequest, ourMAC, biosROM, ipxe),
		message(f, dhcpv4.MessageTypeInform, ourMAC, httpROM, withUUID), message(f, dhcpv4.MessageTypeDiscover, "02:00:00:00:00:02", withUUID),
	} {
		f.Add(m.ToBytes())
	}
	other := inband.Boot{Host: "other", ID: "b1"}
	servers := []*Server{known(f, network(Full)), known(f, network(Proxy))}
	for _, s := range servers {
		if err := s.Know(Client{Host: other.Host, Name: "node-1", MAC: "02:00:00:00:00:03"}); err != nil {
			f.Fatal(err)
		}
		s.Open(other)
	}
	whose := map[string]inband.Boot{ourMAC: ourBoot, "02:00:00:00:00:03": other}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range servers {
			answer, _ := s.datagram(b, netip.MustParseAddrPort("127.0.0.1:68"))
			if answer == nil {
				continue
			}
			reply, err := dhcpv4.FromBytes(answer)
			if err != nil {
				t.Fatalf("the answer does not parse: %v", err)
			}
			boot, ok := whose[reply.ClientHWAddr.String()]
			if !ok {
				t.Fatalf("answered %s", reply.ClientHWAddr)
			}
			if name := reply.BootFileNameOption(); name != "" && !strings.Contains(name, boot.String()) {
				t.Fatalf("%s is told to boot %s", reply.ClientHWAddr, name)
			}
		}
	})
}
