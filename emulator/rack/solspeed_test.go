package rack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestSOLInFastLab shows that a console follows its client's time in a lab that is faster than
// real time (§15, F8): no output is lost, and neither the session nor a break ends before the
// client can act.
func TestSOLInFastLab(t *testing.T) {
	for _, tt := range []struct {
		name  string
		clock *clock.Clock
	}{{"60x", clock.NewScaled(racktest.Origin, 60)}, {"max", clock.NewJumping(racktest.Origin)}} {
		t.Run(tt.name, func(t *testing.T) {
			var d diary
			l := racktest.Start(t, rack.Config{Events: d.event, Clock: tt.clock})
			h := l.First()
			c := converse(t, "ipmitool", ipmitool(t, l, h, "sol", "activate")...)
			c.expect("[SOL Session operational.")
			power(t, h, machine.ResetOn)
			c.expect("Serial number " + h.Machine().Identity.Serial)
			c.expect("login: ")
			for i := range 1000 { // more than the console remembers
				apply(t, h, machine.Print{Boot: 1, Text: fmt.Sprintf("line %d\n", i)})
			}
			for i := range 1000 {
				c.expect(fmt.Sprintf("line %d\r\n", i))
			}
			power(t, h, machine.ForceRestart)
			c.expect("Serial number "+h.Machine().Identity.Serial, "Booting from drive 0", "login: ")
			c.say("root\r")
			c.expect("Password: ")
			c.say("~B")
			c.expect("[send break]")
			if err := l.Clock().Sleep(t.Context(), 30*time.Second); err != nil { // of the lab; the client is fast
				t.Fatal(err)
			}
			c.say("s")
			c.expect("sysrq: Emergency Sync")
			c.say("\r~.")
			if got := c.wait(); !strings.Contains(got, "terminated ipmitool") {
				t.Errorf("at the end it printed %q", got)
			}
		})
	}
}
