package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/console"
)

// screen is all that a machine's console remembers.
func (b *bench) screen() string {
	text, _ := b.m.View().Console.Since(0)
	return string(text)
}

// shows fails if the console has not shown these, in this order, from a byte
// on; it returns the end.
func (b *bench) shows(from uint64, want ...string) uint64 {
	b.t.Helper()
	c := b.m.View().Console
	text, _ := c.Since(from)
	rest := string(text)
	for _, w := range want {
		at := strings.Index(rest, w)
		if at < 0 {
			b.t.Fatalf("the console does not show %q; since byte %d it is\n%q", w, from, text)
		}
		rest = rest[at+len(w):]
	}
	return c.End()
}

func (b *bench) typing(s string) string {
	b.t.Helper()
	from := b.m.View().Console.End()
	b.do(TypeText{[]byte(s)})
	text, _ := b.m.View().Console.Since(from)
	return string(text)
}

func fullProfile(p *Profile) {
	p.Manufacturer, p.Model, p.BIOS = "Maker", "Box 1", BIOS{Vendor: "Firm", Version: "1.2", Date: "03/14/2025"}
	p.MemoryMiB, p.Memory = 65536, Memory{Modules: 4, MiB: 16384, Type: "DDR5", Form: "RDIMM", MHz: 4800}
	p.Processors = Processors{Sockets: 2, Cores: 8, Threads: 16, Model: "Chip 9"}
}

func TestConsoleShowsPOSTBootAndShutdown(t *testing.T) {
	b := benchOf(t, fullProfile)
	if v := b.m.View(); v.Console != nil || v.Console.End() != 0 {
		t.Errorf("a machine that was never on has a console: %+v", v.Console)
	}
	b.do(SetLink{NIC: "1"})
	b.do(Reset{Kind: ResetOn})
	if got := b.screen(); got != "" {
		t.Errorf("before POST the console shows %q", got)
	}
	id := b.m.identity
	b.until(Selecting)
	at := b.shows(0, "Firm BIOS 1.2 (03/14/2025)\r\n", "Maker Box 1\r\n", "Serial number "+id.Serial, id.UUID, "F2: set-up",
		"Testing memory: 4 x 16384 MiB DDR5 RDIMM", "Memory: 65536 MiB, no errors", "Processors: 2 x Chip 9, 8 cores and 16 threads each",
		"NIC eno1 "+id.NICs[0].MAC+": link down", "NIC eno2 "+id.NICs[1].MAC+": link up",
		"Bay 0:", id.Storage[0].Drives[0].Serial, "Booting from drive 0")
	b.do(NotBootable{Boot: 1, Source: disk})
	b.do(NotBootable{Boot: 1, Source: Source{Kind: Hdd, Device: "Disk.1"}, Why: "no partition table"})
	at = b.shows(at-2, ": no boot loader\r\n", "Booting from drive 1", ": no partition table\r\n", "Booting from PXE eno1 "+id.NICs[0].MAC+": ")
	b.do(NotBootable{Boot: 1, Source: nic})
	b.do(Loaded{Boot: 1, Source: Source{Kind: Pxe, Device: "2"}, Name: "agent"})
	at = b.shows(at, "no link\r\n", "Booting from PXE eno2", ": ok\r\n", "Loading agent ...\r\n", "[    0.000000] DMI: Maker Box 1, BIOS 1.2")
	b.until(Running)
	at = b.shows(at, "smp: Brought up 2 nodes, 32 CPUs", "agent on node-0", "\r\nnode-0 login: ")
	b.do(Print{Boot: 1, Text: "one\ntwo\r\n"})
	at = b.shows(at, "\r\none\r\ntwo\r\n")
	b.do(Reset{Kind: GracefulShutdown})
	at = b.shows(at, "The system will power off now\r\n")
	b.until(Off)
	at = b.shows(at, "reboot: Power down\r\n")
	if _, err := b.m.Apply(b.now, Print{Boot: 1, Text: "x"}); !errors.Is(err, ErrStale) {
		t.Errorf("Print of a system that is gone = %v, want %v", err, ErrStale)
	}
	if got := b.typing("hello\r"); got != "" {
		t.Errorf("typing at a machine that is off shows %q", got)
	}
	if got := b.m.View().Console.End(); got != at {
		t.Errorf("the console has %d bytes, want %d", got, at)
	}
}

func TestConsoleWhenNoSourceIsBootable(t *testing.T) {
	b := newBench(t)
	b.do(SetRetry{Retry: RetryAttempts, Attempts: 1})
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	b.tried()
	at := b.shows(0, "Nothing to boot from. Attempt 2 follows")
	b.until(Selecting)
	b.tried()
	b.shows(at, "Nothing to boot from. Enter: restart")
	b.do(TypeText{[]byte("x\r")})
	if got := b.m.st.Phase; got != POST {
		t.Errorf("after Enter: %s, want %s", got, POST)
	}
}

func TestPOSTKeysSelectSetupAndNetworkBoot(t *testing.T) {
	for _, seq := range []string{"\x1bOQ", "\x1b2", "x\x1b[12~", "\x7f"} {
		b := newBench(t)
		b.do(Reset{Kind: ResetOn})
		b.next()
		for _, c := range []byte(seq) { // byte by byte, as a slow line brings it
			b.do(TypeText{[]byte{c}})
		}
		b.until(InSetup)
		b.shows(0, "Set-up follows", "Set-up of")
		b.do(TypeText{[]byte("\x1b[21~")})
		b.until(Selecting)
		if got := *b.m.View().CurrentSource; got != disk {
			t.Errorf("%q: after set-up %v is tried, want %v", seq, got, disk)
		}
	}
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.next()
	b.do(TypeText{[]byte("\x1b[24~")})
	b.until(Selecting)
	if got := b.tried(); len(got) != 4 || got[0] != nic {
		t.Errorf("after F12 these are tried: %v, want the NICs first", got)
	}
	b.do(Reset{Kind: ForceRestart})
	b.until(Selecting)
	if got := *b.m.View().CurrentSource; got != disk {
		t.Errorf("the boot after that tries %v, want %v", got, disk)
	}
}

func TestLoginPrompt(t *testing.T) {
	const prompt = "node-0 login: "
	tests := []struct{ name, in, want string }{
		{"nobody is known", "root\rsecret\r", "root\r\nPassword: \r\n\r\nLogin incorrect\r\n" + prompt},
		{"line feeds", "root\nsecret\n", "root\r\nPassword: \r\n\r\nLogin incorrect\r\n" + prompt},
		{"both", "root\r\nsecret\r\n", "root\r\nPassword: \r\n\r\nLogin incorrect\r\n" + prompt},
		{"no name", "\r", "\r\n" + prompt},
		{"backspace", "rx\x7foo\b\b\x7fab", "rx\b \boo\b \b\b \b\b \bab"},
		{"backspace of nothing", "\x7f\x7f", ""},
		{"backspace of a long character", "é\x7fe", "é\b \be"},
		{"kill", "abc\x15d", "abc\b \b\b \b\b \bd"},
		{"control characters", "a\x1b[A\x7f\x7f\x7f", "a^[[A\b \b\b \b\b \b\b \b"},
		{"interrupt", "abc\x03", "abc^C\r\n\r\n" + prompt},
		{"end of file", "\x04", "\r\n\r\n" + prompt},
		{"no end of file in a line", "a\x04b", "ab"},
		{"a password is not shown", "a\rb\x7f\x7fc", "a\r\nPassword: "},
		{"a line that is too long", strings.Repeat("x", console.MaxLine) + "yz", strings.Repeat("x", console.MaxLine) + "\a\a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t).running()
			if got := b.typing(tt.in); got != tt.want {
				t.Errorf("typing %q shows %q, want %q", tt.in, got, tt.want)
			}
			bytewise := newBench(t).running()
			var got string
			for i := range len(tt.in) {
				got += bytewise.typing(tt.in[i : i+1])
			}
			if got != tt.want {
				t.Errorf("typing %q byte by byte shows %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestLogin(t *testing.T) {
	b := newBench(t).running()
	if _, err := b.m.Apply(b.now, AddLogin{Boot: 9, Name: "core", Password: "x"}); !errors.Is(err, ErrStale) {
		t.Errorf("AddLogin of another boot = %v, want %v", err, ErrStale)
	}
	for _, bad := range []AddLogin{{Boot: 1, Password: "x"}, {Boot: 1, Name: "a b", Password: "x"}, {Boot: 1, Name: "a"}} {
		if _, err := b.m.Apply(b.now, bad); !errors.Is(err, ErrUnknown) {
			t.Errorf("%+v = %v, want %v", bad, err, ErrUnknown)
		}
	}
	b.do(AddLogin{Boot: 1, Name: "core", Password: "secret"})
	if raw, err := json.Marshal(b.m.State()); err != nil || bytes.Contains(raw, []byte("secret")) {
		t.Errorf("the state holds the password: %s, %v", raw, err)
	}
	if got := b.typing("core\rSecret\r"); !strings.Contains(got, "Login incorrect") {
		t.Errorf("a wrong password shows %q", got)
	}
	const sh = "core@node-0:~$ "
	if got, want := b.typing("core\rsecret\rwhoami\rhostname\r\recho a  b\rls\r\x03"), "core\r\nPassword: \r\n"+sh+"whoami\r\ncore\r\n"+sh+
		"hostname\r\nnode-0\r\n"+sh+"\r\n"+sh+"echo a  b\r\na b\r\n"+sh+"ls\r\nsh: ls: not found\r\n"+sh+"^C\r\n"+sh; got != want {
		t.Errorf("a login shows\n%q, want\n%q", got, want)
	}
	b.do(Reset{Kind: Pause})
	b.do(Reset{Kind: Resume})
	if got := b.typing("whoami\r"); !strings.Contains(got, "core\r\n") {
		t.Errorf("after a pause: %q", got)
	}
	if got, want := b.typing("\x04"), "logout\r\n\r\nnode-0 login: "; got != want {
		t.Errorf("^D shows %q, want %q", got, want)
	}
	b.typing("core\rsecret\rreboot\r")
	if got := b.m.st.Phase; got != Stopping {
		t.Fatalf("after reboot: %s, want %s", got, Stopping)
	}
	at := b.shows(0, "The system will restart now")
	b.until(Selecting)
	b.shows(at, "reboot: Restarting system")
	if got := b.m.View().Reset.Cause; got != CauseSystem {
		t.Errorf("the cause of the start is %s, want %s", got, CauseSystem)
	}
	b.load(disk)
	if got := b.typing("core\rsecret\r"); !strings.Contains(got, "Login incorrect") {
		t.Errorf("the next system knows the account: %q", got)
	}
}

func TestCrashPrintsKernelPanic(t *testing.T) {
	b := benchOf(t, func(p *Profile) { p.OS.PanicOnNMI = true })
	b.running()
	b.now = b.now.Add(90 * time.Second)
	b.do(Reset{Kind: Nmi})
	at := b.shows(0, "\r\n[  115.000000] Kernel panic - not syncing: NMI: Not continuing\r\n", "---[ end Kernel panic")
	if got := b.typing("x\r"); got != "" {
		t.Errorf("a crashed system shows %q", got)
	}
	b.do(Reset{Kind: ForceRestart})
	b.until(Selecting)
	b.load(disk)
	b.do(Crash{})
	b.shows(at, "Kernel panic - not syncing: Fatal exception")
}

func TestBreakStartsSysRq(t *testing.T) {
	tests := []struct {
		key   string
		shows string
		phase Phase
	}{
		{"b", "sysrq: Resetting", POST},
		{"o", "sysrq: Power Off", Cutting},
		{"c", "sysrq: Trigger a crash", Crashed},
		{"s", "sysrq: Emergency Sync", Running},
		{"?", "sysrq: HELP", Running},
	}
	for _, tt := range tests {
		b := newBench(t).running()
		b.do(Break{})
		if got := b.typing(tt.key); !strings.Contains(got, tt.shows) || b.m.st.Phase != tt.phase {
			t.Errorf("break, %s: %s and %q, want %s and %q", tt.key, b.m.st.Phase, got, tt.phase, tt.shows)
		}
	}
	b := newBench(t).running()
	b.do(Break{})
	b.now = b.now.Add(time.Minute)
	if got := b.typing("b"); got != "b" {
		t.Errorf("long after a break b shows %q", got)
	}
}

func TestPrintLongerThanTheConsoleIsRefused(t *testing.T) {
	b := newBench(t).running()
	if _, err := b.m.Apply(b.now, Print{Boot: 1, Text: strings.Repeat("x", console.Size+1)}); !errors.Is(err, ErrUnknown) {
		t.Errorf("Print of too much = %v, want %v", err, ErrUnknown)
	}
	was := b.m.View().Console
	b.do(Print{Boot: 1})
	if b.m.View().Console != was {
		t.Error("printing nothing changed the console")
	}
}

func TestTypingWhileNothingListensChangesNothing(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	was := b.m.View().Console
	b.do(TypeText{[]byte("hello\r")})
	b.do(Break{})
	if b.m.View().Console != was {
		t.Errorf("the console changed: %q", b.screen())
	}
}
