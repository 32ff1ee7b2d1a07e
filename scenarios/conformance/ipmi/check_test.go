package ipmi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// A BMC that does nothing wrong passes.
func TestChecksPass(t *testing.T) {
	for name, change := range map[string]func(*fake){
		"as it is":   nil,
		"with a K_g": func(f *fake) { f.kg = []byte("twenty bytes of K_g.") },
		"all suites": func(f *fake) { f.suites = []byte{1, 2, 3, 6, 7, 8, 11, 12, 15, 16, 17} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, target := newFake(t, change)
			target.IncludeSlow, target.Clock = true, &bmctest.Clock{}
			for _, r := range Run(t.Context(), target, Checks()) {
				if r.Verdict != Pass && r.Name != "idle" { // a fake has no time
					t.Errorf("%s: %s: %s", r.Name, r.Verdict, r.Detail)
				}
			}
		})
	}
}

// Each check finds what it is there for.
func TestChecksFail(t *testing.T) {
	for _, tt := range []struct {
		quirk quirk
		check string
	}{
		{"pong of another version", "ping"},
		{"acknowledges", "acknowledgements"},
		{"answers garbage", "garbage"},
		{"always extended", "capabilities"},
		{"another GUID", "GUID"},
		{"open to all", "unknown before login"},
		{"no suites in RMCP+ framing", "suites listed"},
		{"takes every suite", "suites true"},
		{"takes every suite", "suite 0"},
		{"grants nothing", "open: level"},
		{"any level", "open: role"},
		{"long refusals", "open: algorithms"},
		{"half-open for ever", "half open"},
		{"knows sessions by the console's ID", "same console ID"},
		{"long refusals", "RAKP 1: name"},
		{"console of nobody", "RAKP 1: session"},
		{"long refusals", "RAKP 1: name length"},
		{"takes every proof", "RAKP 3: code"},
		{"long refusals", "RAKP 3: session"},
		{"takes every proof", "wrong password"},
		{"forgets what it answered", "retries"},
		{"looks up names only", "lookup"},
		{"forgets K_g", "K_g"},
		{"begins at the top", "level"},
		{"no limits", "level limit"},
		{"never closes", "close"},
		{"another handle", "session info"},
		{"sessions for ever", "idle"},
		{"three sessions", "session limit"},
		{"never makes room", "session limit"},
		{"no window", "duplicate"},
		{"no window", "replay"},
		{"only forward", "order"},
		{"no window", "far ahead"},
		{"dies of far packets", "far ahead"},
		{"moves the window first", "AuthCode"},
		{"takes unsigned packets", "unsigned"},
		{"no pads", "pad"},
		{"no checksums", "checksum"},
		{"any session ID", "wrong session"},
		{"carries out again", "repeated request"},
		{"begins with 1", "first number"},
		{"no privileges", "privileges"},
		{"status of 10 bytes", "answer lengths"},
		{"any length", "request lengths"},
		{"forgets LUNs", "header"},
		{"unoffered types", "v1.5 sessions"},
		{"no password needed", "v1.5 without a password"},
		{"activates once", "v1.5 activation"},
		{"activates for ever", "v1.5 activation"},
		{"no window", "v1.5 packets"},
		{"no AuthCodes of v1.5", "v1.5 packets"},
	} {
		t.Run(string(tt.quirk)+"/"+tt.check, func(t *testing.T) {
			t.Parallel()
			_, target := newFake(t, func(f *fake) {
				f.quirk = tt.quirk
				if tt.quirk == "forgets K_g" {
					f.kg = []byte("twenty bytes of K_g.")
				}
			})
			var check []Check
			for _, c := range Checks() {
				if c.Name == tt.check {
					check = append(check, c)
				}
			}
			if len(check) != 1 {
				t.Fatalf("%d checks are called %q", len(check), tt.check)
			}
			target.IncludeSlow, target.Clock = true, &bmctest.Clock{}
			got := Run(t.Context(), target, check)[0]
			want := Fail
			if got.Severity == Should {
				want = Warn
			}
			if got.Verdict != want {
				t.Errorf("a BMC with %q: %s: %s %s, want %s", tt.quirk, tt.check, got.Verdict, got.Detail, want)
			}
		})
	}
}

// A BMC that is gone is no fault of a BMC's.
func TestNoBMCAtTheAddress(t *testing.T) {
	f, target := newFake(t, nil)
	_ = f.socket.Close()
	target.Timeout, target.Tries = 1e7, 1
	want := map[Verdict]int{Broken: len(Checks())}
	got := map[Verdict]int{}
	for _, r := range Run(t.Context(), target, Checks()) {
		got[r.Verdict]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
