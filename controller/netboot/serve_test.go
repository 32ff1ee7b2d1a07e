package netboot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/pin/tftp/v3"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot/cpio"
)

// serve runs a server's network services on loopback.
func serve(t *testing.T, s *Server) *Sockets {
	t.Helper()
	free := netip.MustParseAddrPort("127.0.0.1:0")
	on, err := Ports{DHCP: free, Proxy: free, TFTP: free}.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, on) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve = %v, want %v", err, context.Canceled)
		}
	})
	return on
}

func TestBootByTheNetworkOverSockets(t *testing.T) {
	s := known(t, network(Full))
	on := serve(t, s)
	for _, port := range []*net.UDPConn{on.DHCP, on.Proxy} {
		c, err := net.DialUDP("udp4", nil, port.LocalAddr().(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		stranger := message(t, dhcpv4.MessageTypeDiscover, "02:00:00:00:00:02", uefiROM)
		discover := message(t, dhcpv4.MessageTypeDiscover, ourMAC, uefiROM)
		for _, b := range [][]byte{[]byte("garbage"), stranger.ToBytes(), discover.ToBytes()} {
			if _, err := c.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 2000)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		offer, err := dhcpv4.FromBytes(b[:n])
		if err != nil || offer.TransactionID != discover.TransactionID {
			t.Fatalf("the first answer is %v, %v: want that to the known client", offer, err)
		}
		client, err := tftp.NewClient(on.TFTP.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		client.SetBlockSize(tftpBlock)
		from, err := client.Receive(offer.BootFileName, "octet")
		if err != nil {
			t.Fatalf("TFTP %s: %v", offer.BootFileName, err)
		}
		var got bytes.Buffer
		if _, err := from.WriteTo(&got); err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(io.NewSectionReader(s.image.files[UEFIPXE].r, 0, 1<<30))
		if err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("TFTP gave %d bytes, want the program's %d (%v)", got.Len(), len(want), err)
		}
	}
	client, err := tftp.NewClient(on.TFTP.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Receive("../../etc/passwd", "octet"); err == nil {
		t.Error("TFTP gave ../../etc/passwd")
	}
	if to, err := client.Send(s.cfg.Key.Sign(tftpPurpose, ourBoot)+"/"+UEFIPXE, "octet"); err == nil {
		if _, err = to.ReadFrom(strings.NewReader("mine")); err == nil {
			t.Error("TFTP took a file")
		}
	}
}

func TestScriptNamesWhatTheServerServes(t *testing.T) {
	s := known(t, network(Full))
	script, err := io.ReadAll(get(t, s, strings.TrimPrefix(s.url(ourBoot, scriptFile), baseURL)).Body)
	if err != nil || !bytes.HasPrefix(script, []byte("#!ipxe\n")) {
		t.Fatalf("script %q, %v", script, err)
	}
	var initrd []byte
	urls := 0
	for word := range strings.FieldsSeq(string(script)) {
		path, ok := strings.CutPrefix(word, baseURL)
		if !ok {
			continue
		}
		urls++
		resp := get(t, s, path)
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s = %d, %v", path, resp.StatusCode, err)
		}
		if strings.Contains(path, ".cpio?") {
			initrd = body
		}
	}
	entries, _, err := cpio.Read(initrd)
	config, ok := cpio.Find(entries, job.MediaConfigPath)
	if urls != 3 || err != nil || !ok || !bytes.Contains(config, []byte("secret of "+ourBoot.Host)) {
		t.Errorf("%d URLs; %s = %q, %v", urls, job.MediaConfigPath, config, err)
	}
}

// The signed names that one host gets do not open the files of another.
func TestSignedNamesOfAHostDoNotOpenFilesOfAnother(t *testing.T) {
	s := known(t, network(Full))
	victim := inband.Boot{Host: "victim", ID: "b1"}
	if err := s.Know(Client{Host: "victim", Name: "node-1", MAC: "02:00:00:00:00:03"}); err != nil {
		t.Fatal(err)
	}
	s.Open(victim)
	mine := s.cfg.Key.Sign(tftpPurpose, ourBoot)
	for _, name := range []string{
		strings.Replace(mine, ourBoot.String(), victim.String(), 1) + "/" + UEFIPXE,
		s.cfg.Key.Sign(mediaPurpose, ourBoot) + "/" + UEFIPXE, // good for HTTP
		mine + "/" + ISOFile, mine + "/" + configFile, mine + "/../" + UEFIPXE, mine, UEFIPXE, "", "/", "//" + mine + "/" + UEFIPXE,
		"/etc/passwd", "../" + mine + "/" + UEFIPXE, mine + "/" + UEFIPXE + "\x00",
	} {
		if _, err := s.program(name); !errors.Is(err, errNoFile) {
			t.Errorf("TFTP %q = %v, want %v", name, err, errNoFile)
		}
	}
	for _, name := range []string{mine + "/" + UEFIPXE, "/" + mine + "/" + LegacyPXE} {
		if _, err := s.program(name); err != nil {
			t.Errorf("TFTP %q = %v", name, err)
		}
	}
	s.Close(ourHost.Host)
	if _, err := s.program(mine + "/" + UEFIPXE); !errors.Is(err, errNoFile) {
		t.Errorf("TFTP after Close = %v, want %v", err, errNoFile)
	}
	for _, path := range []string{
		"/boot/" + ourBoot.String() + "/" + configFile + "?token=" + s.cfg.Key.Signature(tftpPurpose, ourBoot), // a signature for TFTP
		strings.TrimPrefix(s.url(ourBoot, "agent.json"), baseURL),
		strings.TrimPrefix(s.url(ourBoot, "../"+victim.String()), baseURL),
	} {
		if got := get(t, s, path).StatusCode; got != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, got)
		}
	}
}

// FuzzTFTP: no name but the ones that DHCP gives finds anything.
func FuzzTFTP(f *testing.F) {
	s := known(f, network(Full))
	good := s.cfg.Key.Sign(tftpPurpose, ourBoot) + "/"
	for _, name := range []string{good + UEFIPXE, strings.TrimSuffix(good, "/") + "\n/" + UEFIPXE, good + "../x", "/", "..\\x", "/etc/passwd"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		_, err := s.program(name)
		switch name {
		case good + UEFIPXE, good + LegacyPXE, "/" + good + UEFIPXE, "/" + good + LegacyPXE:
		default:
			if err == nil {
				t.Fatalf("TFTP %q is served", name)
			}
		}
	})
}

// FuzzHTTP: only a path with the right signature of a file finds the file.
func FuzzHTTP(f *testing.F) {
	s := known(f, network(Full))
	good, code := pathPrefix+ourBoot.String()+"/", s.cfg.Key.Signature(mediaPurpose, ourBoot)
	for name := range files {
		f.Add(good+name, "token="+code)
		f.Add(good+name, "token="+code+"=")
		f.Add(good+name, "token="+code+"%0a")
		f.Add(good+name, "")
	}
	f.Add(good+"../../etc/passwd", "token="+code)
	f.Fuzz(func(t *testing.T, path, query string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawQuery = path, query
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		name, ours := strings.CutPrefix(path, good)
		_, known := files[name]
		tokens := r.URL.Query()["token"]
		if signed := len(tokens) == 1 && tokens[0] == code; w.Code != http.StatusNotFound && !(ours && signed && known) {
			t.Fatalf("GET %q ? %q = %d", path, query, w.Code)
		}
	})
}
