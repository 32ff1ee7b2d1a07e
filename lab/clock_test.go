package lab

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// A driver that waits an hour within a reconcile does not keep the lab's time from
// jumping there; what it does afterwards is work in flight again.
func TestTimeJumpsWhileADriverWaits(t *testing.T) {
	c := clock.NewJumping(time.Unix(0, 0))
	ctx := patience.Within(t, time.Minute)
	go func() { _ = c.Run(ctx) }()
	leave := c.Enter()
	began := c.Now()
	timer := driverClock{labClock{c}}.NewTimer(time.Hour)
	select {
	case <-timer.C():
	case <-ctx.Done():
		t.Fatal("the hour does not pass")
	}
	timer.Stop()
	if c.Since(began) < time.Hour {
		t.Errorf("it waited %s", c.Since(began))
	}
	stopped := driverClock{labClock{c}}.NewTimer(time.Hour)
	if !stopped.Stop() || stopped.Stop() {
		t.Error("a timer is stopped once")
	}
	short := patience.Within(t, 10*time.Millisecond)
	if c.Settle(short) == nil {
		t.Error("the pass is not in flight any more")
	}
	leave()
	if err := c.Settle(ctx); err != nil {
		t.Errorf("after the pass something is still in flight: %v", err)
	}
}
