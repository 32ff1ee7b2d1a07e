package rack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// fastClocks are clocks whose lab time outruns real time, and pauses of a client, in
// lab time.
var fastClocks = []struct {
	name  string
	clock func() *clock.Clock
	pause time.Duration
}{
	{"60x", func() *clock.Clock { return clock.NewScaled(racktest.Origin, 60) }, 75 * time.Second},
	{"36000x", func() *clock.Clock { return clock.NewScaled(racktest.Origin, 36_000) }, 2 * time.Hour},
	{"max", func() *clock.Clock { return clock.NewJumping(racktest.Origin) }, 2 * time.Hour},
}

// `ipmitool shell` keeps its session while its user thinks, in a lab of any speed. A
// session without a packet for 60 s ends (IPMI v2.0 rev 1.1, §6.12.15).
func TestIpmitoolShellKeepsItsSessionInAFastLab(t *testing.T) {
	prerequisites.Need(t, "ipmitool")
	for _, tt := range fastClocks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // ipmitool tries for ten seconds to reach a session that has ended
			r := rackfile.Default(1)
			r.Accounts = []rackfile.Account{{Name: "ADMIN", Password: "ADMIN", Role: "Administrator"}}
			l := racktest.Start(t, rack.Config{Rack: &r, Clock: tt.clock()})
			at, _ := l.First().IPMI()
			ctx, cancel := context.WithTimeout(t.Context(), patience.Of(30*time.Second))
			shell := exec.CommandContext(ctx, "ipmitool", "-I", "lanplus", "-H", at.Addr().String(), "-p", fmt.Sprint(at.Port()),
				"-U", "ADMIN", "-P", "ADMIN", "shell")
			in, err := shell.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, printed := io.Pipe()
			shell.Stdout, shell.Stderr = printed, printed
			if err := shell.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			defer func() {
				go func() { _, _ = io.Copy(io.Discard, out) }()
				cancel() // it does not end with its input
				_ = shell.Wait()
				printed.Close()
			}()
			powered := func() bool {
				_, _ = fmt.Fprintln(in, "power status") // a client that has ended prints nothing, either
				for lines.Scan() {
					switch line := lines.Text(); {
					case strings.Contains(line, "Chassis Power is off"):
						return true
					case strings.Contains(line, "Unable to get"):
						return false
					}
				}
				return false
			}
			if !powered() {
				t.Fatal("the shell does not show the power")
			}
			if err := l.Clock().Sleep(ctx, tt.pause); err != nil {
				t.Fatal(err)
			}
			if !powered() {
				t.Errorf("the session has ended in a pause of %v of the lab's time", tt.pause)
			}
			l.Clock().Advance(61 * time.Second)
			if powered() {
				t.Error("the session has outlasted Advance(61s)")
			}
		})
	}
}

// A token works after a pause, and a locked account is locked, in a lab of any
// speed. At max, the other hosts make its time jump.
func TestRedfishSessionAndLockOutlastAPauseInAFastLab(t *testing.T) {
	for _, tt := range fastClocks {
		if tt.pause < 31*time.Minute {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			r := rackfile.Default(2)
			l := racktest.Start(t, rack.Config{Rack: &r, Clock: tt.clock()})
			h, other := l.Hosts()[0], l.Hosts()[1]
			user, password := l.Credentials(h)
			login := func() *http.Response {
				body := fmt.Sprintf(`{"UserName":%q,"Password":%q}`, user, password)
				resp, err := l.Client.Post(h.URL()+"/redfish/v1/SessionService/Sessions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				return resp
			}
			token := login().Header.Get("X-Auth-Token")
			status := func() int {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+systemPath, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Auth-Token", token)
				resp, err := l.Client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				return resp.StatusCode
			}
			policy, right := h.BMC().Policy, password
			password = "wrong"
			for range policy.LockoutThreshold {
				login()
			}
			if password = right; !h.BMC().LoginFailures.Locked("1") {
				t.Fatalf("the account is not locked after %d wrong passwords", policy.LockoutThreshold)
			}
			began := l.Clock().Now()
			apply(t, other, machine.Reset{Kind: machine.ResetOn})
			if err := l.Clock().Sleep(t.Context(), tt.pause); err != nil {
				t.Fatal(err)
			}
			if got := status(); got != http.StatusOK {
				t.Errorf("after a pause of %v of the lab's time the token of a session of %v gets %d", l.Clock().Since(began), h.BMC().SessionTimeout, got)
			}
			if got := login().StatusCode; got != http.StatusUnauthorized {
				t.Errorf("after a pause of %v of the lab's time an account that is locked for %v gets %d", l.Clock().Since(began), policy.LockoutDuration, got)
			}
			l.Clock().Advance(31 * time.Minute)
			for h.BMC().LoginFailures.Locked("1") || len(h.BMC().Sessions) > 0 { // both end by themselves
				if err := l.Clock().Sleep(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
			}
			if got := status(); got != http.StatusUnauthorized {
				t.Errorf("after Advance(31m) the token gets %d", got)
			}
			if got := login().StatusCode; got != http.StatusCreated {
				t.Errorf("after Advance(31m) a login gets %d", got)
			}
		})
	}
}
