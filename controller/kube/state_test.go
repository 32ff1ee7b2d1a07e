package kube

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

var loopback = net.IPv4(127, 0, 0, 1)

func TestCertificatesAreReusedUntilHalfTheirLife(t *testing.T) {
	birth := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name                        string
		at                          time.Duration // after birth
		host                        net.IP
		newCA, newServing, newAdmin bool
	}{
		{name: "a restart", at: time.Hour, host: loopback},
		{name: "in the first half of its life", at: certLife/2 - time.Hour, host: loopback},
		{name: "in the second half of its life", at: certLife/2 + time.Hour, host: loopback, newServing: true, newAdmin: true},
		{name: "after its life", at: 2 * certLife, host: loopback, newServing: true, newAdmin: true},
		{name: "at another address", at: time.Hour, host: net.IPv4(192, 0, 2, 1), newServing: true},
		{name: "just before the end of the authority", at: caLife - time.Hour, host: loopback, newServing: true, newAdmin: true},
		{name: "after the end of the authority", at: caLife + time.Hour, host: loopback, newCA: true, newServing: true, newAdmin: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			a := keys(t, dir, loopback, birth)
			b := keys(t, dir, tt.host, birth.Add(tt.at))
			for _, p := range []struct {
				name     string
				old, new pair
				renewed  bool
			}{
				{"authority", a.ca, b.ca, tt.newCA},
				{"serving", a.serving, b.serving, tt.newServing},
				{"admin", a.admin, b.admin, tt.newAdmin},
			} {
				if got := !p.old.cert.Equal(p.new.cert); got != p.renewed {
					t.Errorf("%s: renewed = %t, want %t", p.name, got, p.renewed)
				}
				if now := birth.Add(tt.at); now.After(p.new.cert.NotAfter) || now.Before(p.new.cert.NotBefore) {
					t.Errorf("%s: valid from %s to %s, which does not hold %s", p.name, p.new.cert.NotBefore, p.new.cert.NotAfter, now)
				}
			}
			for _, leaf := range []pair{b.serving, b.admin} {
				if err := leaf.cert.CheckSignatureFrom(b.ca.cert); err != nil {
					t.Errorf("%s: %v", leaf.file, err)
				}
			}
			if err := b.serving.cert.VerifyHostname(tt.host.String()); err != nil {
				t.Error(err)
			}
		})
	}
}

func keys(t *testing.T, dir string, host net.IP, now time.Time) *pki {
	t.Helper()
	p, err := openPKI(dir, host, now)
	if err != nil {
		t.Fatalf("openPKI() error = %v, want none", err)
	}
	return p
}

func TestUnreadableKeysAreAnErrorAndNotReplaced(t *testing.T) {
	for _, name := range []string{"ca.pem", "serving.pem", "admin.pem", "service-account.key"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			keys(t, dir, loopback, time.Now())
			file := filepath.Join(dir, "pki", name)
			if err := os.WriteFile(file, []byte("spilt coffee"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := openPKI(dir, loopback, time.Now()); err == nil || !strings.HasPrefix(err.Error(), file+": ") {
				t.Errorf("openPKI() error = %v, want one about %s", err, file)
			}
		})
	}
}

func TestKubeconfigHasServerKeysAndMode0600(t *testing.T) {
	dir := t.TempDir()
	p := keys(t, dir, net.IPv6loopback, time.Now())
	file := filepath.Join(dir, "kubeconfig")
	// The mode of an existing file that everybody can read has to change.
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.writeKubeconfig(file, &net.TCPAddr{IP: net.IPv6unspecified, Port: 6443}); err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://[::1]:6443"; c.Host != want {
		t.Errorf("server = %s, want %s", c.Host, want)
	}
	if _, err := tls.X509KeyPair(c.CertData, c.KeyData); err != nil {
		t.Error(err)
	}
	fi, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("mode = %s, want -rw-------", fi.Mode())
	}
}

func TestListenReusesThePortOfTheLastRun(t *testing.T) {
	dir := t.TempDir()
	open := func(address string) net.Listener {
		t.Helper()
		ln, err := listen(dir, address)
		if err != nil {
			t.Fatalf("listen(%s) error = %v, want none", address, err)
		}
		t.Cleanup(func() { ln.Close() })
		return ln
	}
	first := open("")
	if !first.Addr().(*net.TCPAddr).IP.IsLoopback() {
		t.Errorf("listen() = %s, want loopback", first.Addr())
	}
	first.Close()
	second := open("")
	if got, want := second.Addr().String(), first.Addr().String(); got != want {
		t.Errorf("second time = %s, want %s again", got, want)
	}
	third := open("127.0.0.1:0")
	if third.Addr().String() == second.Addr().String() {
		t.Errorf("third time = %s, which is taken", third.Addr())
	}
	third.Close()
	second.Close()
	// Now the last port is reused. A port that was given explicitly is not stored.
	explicit := open(second.Addr().String())
	explicit.Close()
	if got, want := open("").Addr().String(), third.Addr().String(); got != want {
		t.Errorf("fourth time = %s, want %s again", got, want)
	}
	if _, err := listen(dir, third.Addr().String()); err == nil {
		t.Error("listen on a port in use: no error")
	}
	if _, err := listen(dir, "6443"); err == nil || !strings.HasPrefix(err.Error(), "listen: ") {
		t.Errorf("listen(6443) error = %v, want one about the address", err)
	}
}

func TestSocketDirIsPrivate(t *testing.T) {
	run := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	a, b := t.TempDir(), t.TempDir()
	folder := func(dir string) string {
		t.Helper()
		s, err := socketDir(dir)
		if err != nil {
			t.Fatalf("socketDir(%s) error = %v, want none", dir, err)
		}
		return s
	}
	if first, again := folder(a), folder(a); !strings.HasPrefix(first, filepath.Join(run, "metalab")) || first != again || first == folder(b) {
		t.Errorf("socketDir(a) = %s, socketDir(b) = %s, want one for each under %s", folder(a), folder(b), run)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(a, link); err != nil {
		t.Fatal(err)
	}
	if folder(link) != folder(a) {
		t.Errorf("socketDir(link to a) = %s, want %s", folder(link), folder(a))
	}

	// Without a runtime folder it is in the temporary folder, where everybody can write.
	tmp := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", tmp)
	if !strings.HasPrefix(folder(a), tmp) {
		t.Errorf("socketDir(a) without a runtime folder = %s, want under %s", folder(a), tmp)
	}
	if err := os.Chmod(filepath.Dir(folder(a)), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := socketDir(a); err == nil {
		t.Error("socketDir under a folder that others can write to: error = nil, want one")
	}

	long := filepath.Join(run, strings.Repeat("x", maxSocketPath))
	t.Setenv("XDG_RUNTIME_DIR", long)
	if _, err := socketDir(a); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("socketDir with a long runtime folder: error = %v, want one with XDG_RUNTIME_DIR", err)
	}
	if _, err := os.Stat(long); err == nil {
		t.Error("socketDir created the folder although it returned an error")
	}
}
