package netboot

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/metalab-dev/metalab/controller/netboot/cpio"
)

const (
	seedMAC = "02:00:00:00:00:07"
	owner   = "the registration fire"
)

var seed = Seed{MetaData: []byte("instance-id: x\n"), UserData: []byte("#cloud-config\n# a token\n")}

// seedPath returns the path of a file of the seed for a NIC.
func seedPath(s *Server, mac, file string) string { return s.path(seedBoot(owner, mac), file) }

// bootFileOf returns the boot file that DHCP names to a NIC, and whether it answers.
func bootFileOf(t *testing.T, s *Server, mac string, mods ...dhcpv4.Modifier) (string, bool) {
	t.Helper()
	reply, e := s.dhcp(message(t, dhcpv4.MessageTypeDiscover, mac, mods...))
	return e.File, reply != nil
}

func TestSeedBootsByPXE(t *testing.T) {
	s := known(t, network(Full))
	if problems := s.OfferSeed(owner, seed, []string{strings.ToUpper(seedMAC)}); problems != nil {
		t.Fatal(problems)
	}
	tftp := s.cfg.Key.Sign(tftpPurpose, seedBoot(owner, seedMAC)) + "/" + UEFIPXE
	if file, _ := bootFileOf(t, s, seedMAC, uefiROM); file != tftp {
		t.Errorf("UEFI boots %q, want %q", file, tftp)
	}
	if _, err := s.program(tftp); err != nil {
		t.Errorf("TFTP %s: %v", tftp, err)
	}
	if file, _ := bootFileOf(t, s, seedMAC, httpROM); file != "" {
		t.Errorf("UEFI over HTTP boots %q: there is no ISO of the seed", file)
	}
	file, _ := bootFileOf(t, s, seedMAC, uefiROM, ipxe)
	script, err := io.ReadAll(get(t, s, strings.TrimPrefix(file, baseURL)).Body)
	if err != nil || !strings.Contains(string(script), " ds=nocloud ") || strings.Contains(string(script), "metalab.config") {
		t.Fatalf("iPXE boots %q, %v", script, err)
	}
	if !strings.Contains(string(script), baseURL+seedPath(s, seedMAC, configFile)) {
		t.Errorf("the script lacks the initrd of the seed:\n%s", script)
	}
	b, err := io.ReadAll(get(t, s, seedPath(s, seedMAC, configFile)).Body)
	if err != nil {
		t.Fatal(err)
	}
	entries, _, err := cpio.Read(b)
	meta, _ := cpio.Find(entries, "/var/lib/cloud/seed/nocloud/meta-data")
	user, _ := cpio.Find(entries, "/var/lib/cloud/seed/nocloud/user-data")
	if err != nil || string(meta) != string(seed.MetaData) || string(user) != string(seed.UserData) {
		t.Errorf("the initrd has the seed %q, %q, %v", meta, user, err)
	}
	if got := get(t, s, seedPath(s, seedMAC, ISOFile)).StatusCode; got != http.StatusNotFound {
		t.Errorf("the ISO of a seed answers %d", got)
	}
}

// Nobody but the NICs that are named gets the seed, and they only while it is offered.
func TestSeedIsServedToItsNICsAlone(t *testing.T) {
	s := known(t, network(Full))
	config := func(mac string) int { return get(t, s, seedPath(s, mac, configFile)).StatusCode }
	if _, answered := bootFileOf(t, s, seedMAC, uefiROM); answered {
		t.Error("a NIC gets an answer before it is offered a seed")
	}
	s.OfferSeed(owner, seed, []string{seedMAC, ourMAC})
	if _, answered := bootFileOf(t, s, "02:00:00:00:00:08", uefiROM); answered {
		t.Error("a NIC that is not named gets an answer")
	}
	if got := config("02:00:00:00:00:08"); got == http.StatusOK {
		t.Error("a NIC that is not named gets the seed")
	}
	// ourMAC is a host's NIC, which boots the host's own image or nothing.
	if file, _ := bootFileOf(t, s, ourMAC, uefiROM, ipxe); file != s.url(ourBoot, scriptFile) {
		t.Errorf("the host boots %q", file)
	}
	s.Close(ourHost.Host)
	if file, answered := bootFileOf(t, s, ourMAC, uefiROM); file != "" || !answered {
		t.Errorf("the host boots %q when it may boot nothing", file)
	}
	if got := config(seedMAC); got != http.StatusOK {
		t.Fatalf("the seed answers %d", got)
	}
	s.OfferSeed(owner, seed, nil)
	if _, answered := bootFileOf(t, s, seedMAC, uefiROM); answered {
		t.Error("a NIC gets an answer after its seed was withdrawn")
	}
	if got := config(seedMAC); got == http.StatusOK {
		t.Error("the seed is served after it was withdrawn")
	}
	if _, err := s.program(s.cfg.Key.Sign(tftpPurpose, seedBoot(owner, seedMAC)) + "/" + UEFIPXE); err == nil {
		t.Error("TFTP serves the seed after it was withdrawn")
	}
}

func TestSeedOfAnotherAndWrongAddresses(t *testing.T) {
	s := newNetServer(t, network(Full))
	s.OfferSeed(owner, seed, []string{seedMAC})
	got := s.OfferSeed("the registration water", Seed{}, []string{seedMAC, "nonsense", "02:00:00:00:00:09"})
	if len(got) != 2 || !strings.Contains(got[0], `"nonsense": want the form`) || !strings.Contains(got[1], seedMAC+" is that of "+owner) {
		t.Errorf("problems %q", got)
	}
	if _, answered := bootFileOf(t, s, "02:00:00:00:00:09", uefiROM); !answered {
		t.Error("the good address gets no answer")
	}
	if got := get(t, s, seedPath(s, seedMAC, configFile)).StatusCode; got != http.StatusOK {
		t.Errorf("the first owner's seed answers %d", got)
	}
	s.WithdrawSeed(owner)
	if got := s.OfferSeed("the registration water", Seed{}, []string{seedMAC}); got != nil {
		t.Errorf("problems %q after the first owner has withdrawn", got)
	}
}
