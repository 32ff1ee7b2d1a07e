package ipmi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// overRedfish asks the same BMC over its other protocol.
func overRedfish(t *testing.T, l *racktest.Rack, a Account, method, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, l.First().URL()+"/redfish/v1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(a.Name, a.Password)
	r.Header.Set("Content-Type", "application/json")
	w, err := l.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, string(b)
}

// changed is overRedfish by an administrator, which must succeed.
func changed(t *testing.T, l *racktest.Rack, method, path, body string) string {
	t.Helper()
	status, answer := overRedfish(t, l, fakeAdmin, method, path, body)
	if status >= http.StatusMultipleChoices {
		t.Fatalf("%s %s %s = %d %s", method, path, body, status, answer)
	}
	return answer
}

// login opens a session, and says whether it could.
func login(t *testing.T, address string, a Account) (*Session, error) {
	t.Helper()
	c, err := Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.Timeout, c.Tries = 500*time.Millisecond, 4
	h, err := c.Handshake(Login{Name: a.Name, Password: a.Password, Suite: 17})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Open(t.Context()); err != nil {
		return nil, err
	}
	wrong := h.Challenge(t.Context()) // who goes on all the same is found out
	s, err := h.Prove(t.Context())
	if wrong != nil {
		err = wrong
	}
	return s, err
}

// TestWrongPasswordsCountInBothProtocols shows statement F8.
func TestWrongPasswordsCountInBothProtocols(t *testing.T) {
	l, target := emulated(t, "")
	changed(t, l, http.MethodPatch, "AccountService", `{"AccountLockoutThreshold":4,"AccountLockoutDuration":600,"AccountLockoutCounterResetAfter":600}`)
	wrong := Account{Name: fakeUser.Name, Password: "wrong"}
	for range 2 {
		if status, _ := overRedfish(t, l, wrong, http.MethodGet, "Systems/1", ""); status != http.StatusUnauthorized {
			t.Errorf("a wrong password over Redfish = %d", status)
		}
	}
	if _, err := login(t, target.Address, fakeUser); err != nil {
		t.Fatalf("after two wrong passwords: %v", err) // and the count begins anew
	}
	for range 2 {
		if _, err := login(t, target.Address, wrong); err == nil {
			t.Error("a wrong password opens a session")
		}
		if status, _ := overRedfish(t, l, wrong, http.MethodGet, "Systems/1", ""); status != http.StatusUnauthorized {
			t.Errorf("a wrong password over Redfish = %d", status)
		}
	}
	if _, err := login(t, target.Address, fakeUser); err == nil {
		t.Error("two wrong passwords in each protocol lock nobody out of IPMI")
	}
	if status, _ := overRedfish(t, l, fakeUser, http.MethodGet, "Systems/1", ""); status != http.StatusUnauthorized {
		t.Errorf("nor of Redfish: %d", status)
	}
}

func TestAccountsThatAreDeletedHaveNoSessions(t *testing.T) {
	l, target := emulated(t, "")
	stays, err := login(t, target.Address, fakeOperator)
	if err != nil {
		t.Fatal(err)
	}
	goes, err := login(t, target.Address, fakeUser)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := goes.Do(t.Context(), GetDeviceID); err != nil {
		t.Fatal(err)
	}
	changed(t, l, http.MethodDelete, "AccountService/Accounts/3", "")
	goes.conn.Timeout, goes.conn.Tries = 200*time.Millisecond, 1
	if _, err := goes.Do(t.Context(), GetDeviceID); err == nil {
		t.Error("a session is answered whose account was deleted over Redfish")
	}
	if _, err := stays.Do(t.Context(), GetDeviceID); err != nil {
		t.Errorf("another account's session: %v", err)
	}
	changed(t, l, http.MethodPatch, "AccountService/Accounts/2", `{"RoleId":"ReadOnly"}`)
	stays.conn.Timeout, stays.conn.Tries = 200*time.Millisecond, 1
	if _, err := stays.Do(t.Context(), GetDeviceID); err == nil {
		t.Error("a session keeps rights that its account has lost")
	}
}

func TestRedfishMovesIPMI(t *testing.T) {
	l, target := emulated(t, "")
	host, _, err := net.SplitHostPort(target.Address)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	port := free.LocalAddr().(*net.UDPAddr).Port
	free.Close()
	other := net.JoinHostPort(host, fmt.Sprint(port))
	there := func(address string) bool {
		c, err := Dial(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Timeout, c.Tries = 200*time.Millisecond, 2
		_, err = c.GUID(t.Context(), V20)
		return err == nil
	}
	for _, tt := range []struct {
		set            string
		first, another bool
	}{
		{`{"IPMI":{"ProtocolEnabled":false}}`, false, false},
		{fmt.Sprintf(`{"IPMI":{"ProtocolEnabled":true,"Port":%d}}`, port), false, true},
	} {
		changed(t, l, http.MethodPatch, "Managers/1/NetworkProtocol", tt.set)
		if first, another := there(target.Address), there(other); first != tt.first || another != tt.another {
			t.Errorf("%s: it is at the first port: %t, at another: %t", tt.set, first, another)
		}
	}
	if at, ok := l.First().IPMI(); !ok || at.String() != other {
		t.Errorf("IPMI() = %v, %t, want %s", at, ok, other)
	}
}

// The same commands make the same journal, and it holds nothing that was secret.
func TestJournalOfIPMI(t *testing.T) {
	run := func() string {
		l, target := emulated(t, "kg: secret of the key")
		target.KG = []byte("secret of the key")
		for range 2 {
			s := target.session(t)
			name := append([]byte{5}, append([]byte("lab"), make([]byte, 13)...)...)
			password := append([]byte{5, 2}, append([]byte("secret-of-lab"), make([]byte, 3)...)...)
			key := append([]byte{1, 1, 1}, []byte("secret of the key\x00\x00\x00")...)
			for _, r := range []Request{
				GetDeviceID,
				{NetFn: App, Command: 0x45, Data: name}, {NetFn: App, Command: 0x47, Data: password}, {NetFn: App, Command: 0x56, Data: key},
				{NetFn: Chassis, Command: 0x02, Data: []byte{0x01}},
			} {
				if _, err := s.Do(t.Context(), r); err != nil {
					t.Fatalf("%02X/%02X: %v", r.NetFn, r.Command, err)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.Advance(time.Minute)
		}
		entries, _, err := l.Journal().Select(journal.Query{})
		if err != nil {
			t.Fatal(err)
		}
		lines, err := journal.Lines(entries)
		if err != nil {
			t.Fatal(err)
		}
		var audit strings.Builder
		for e := range l.First().BMC().Audit.Entries() {
			fmt.Fprintln(&audit, e)
		}
		for _, text := range []string{string(lines), audit.String()} {
			if !strings.Contains(text, "Set User Password") {
				t.Errorf("who has set a password is not told in\n%s", text)
			}
			if strings.Contains(text, "secret") {
				t.Errorf("a secret is in\n%s", text)
			}
		}
		return string(lines)
	}
	if one, again := run(), run(); one != again {
		t.Errorf("the second run differs:\n%s\nfirst:\n%s", again, one)
	}
}

// A BMC that was spoken with and has no session has no goroutine, and less than
// 4 KB more than one that was not.
func TestIdleBMCsAreSmall(t *testing.T) {
	const n = 300
	r := rackfile.Default(n)
	l := racktest.Start(t, rack.Config{Rack: &r})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	use := func(h *rack.Host) {
		at, _ := h.IPMI()
		user, password := l.Credentials(h)
		s, err := login(t, at.String(), Account{Name: user, Password: password})
		if err != nil {
			t.Fatalf("%s: %v", h.Name(), err)
		}
		for _, r := range []Request{GetDeviceID, {NetFn: Storage, Command: 0x42}} {
			if _, err := s.Do(t.Context(), r); err != nil {
				t.Fatalf("%s: %v", h.Name(), err)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatalf("%s: %v", h.Name(), err)
		}
		s.conn.Close()
	}
	all := l.Hosts()
	for _, h := range all[:n/10] { // what is made once is there
		use(h)
	}
	l.Settle()
	before, goroutines := heap(), runtime.NumGoroutine()
	for _, h := range all[n/10:] {
		use(h)
	}
	l.Settle()
	each := (heap() - before) / (n - n/10)
	t.Logf("%d bytes each", each)
	if each > 4<<10 {
		t.Errorf("a BMC that was spoken with has %d bytes more, want 4096 at most", each)
	}
	if now := runtime.NumGoroutine(); now > goroutines+2 {
		t.Errorf("%d goroutines, and %d before", now, goroutines)
	}
}

// A BMC that is down sends nothing of a console that was open.
func TestNoConsoleOfABMCThatIsDown(t *testing.T) {
	l, target := emulated(t, "")
	c, err := target.session(t).Console(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	changed(t, l, http.MethodPost, "Managers/1/Actions/Manager.Reset", `{"ResetType":"ForceRestart"}`)
	l.Advance(10 * time.Second)
	if l.First().BMC().Life.Serves() {
		t.Fatal("the BMC is up")
	}
	if err := l.First().Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}); err != nil {
		t.Fatal(err)
	}
	l.Advance(10 * time.Second)
	if text, err := c.Read(t.Context(), 500*time.Millisecond); len(text) > 0 {
		t.Errorf("a BMC that is down shows %q, %v", text, err)
	}
}
