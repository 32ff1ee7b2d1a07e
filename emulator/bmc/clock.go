package bmc

import (
	"fmt"
	"time"
)

// Clock is a BMC's clock. A nil Clock is correct and in UTC.
type Clock struct {
	Offset    time.Duration `json:"offset,omitempty"` // added to lab time
	UTCOffset int           `json:"east,omitempty"`   // minutes that local time is ahead of UTC
	Zone      string        `json:"zone,omitempty"`   // name of the time zone: "Europe/Berlin"
	// OffsetSet means that UTCOffset was set after the local time was.
	OffsetSet bool `json:"zoned,omitempty"`
}

// Skew returns how far the clock is ahead of lab time.
func (c *Clock) Skew() time.Duration {
	if c == nil {
		return 0
	}
	return c.Offset
}

// Local returns a BMC time in its time zone.
func (c *Clock) Local(t time.Time) time.Time {
	if c == nil || c.UTCOffset == 0 {
		return t.UTC()
	}
	return t.In(time.FixedZone("", c.UTCOffset*60))
}

// SetTime sets the BMC's clock. It fails while NTP is in use.
type SetTime struct{ To time.Time }

func (c SetTime) apply(b *BMC, now time.Time) ([]Event, error) {
	if n := b.net(); n.follows() {
		return nil, ErrFollows
	}
	clock := b.forkClock()
	clock.Offset = c.To.Sub(now)
	b.st.Clock = clock
	return nil, nil
}

// SetLocalTime sets the BMC's clock by local time, given as UTC. It fails while
// NTP is in use.
type SetLocalTime struct{ To time.Time }

func (c SetLocalTime) apply(b *BMC, now time.Time) ([]Event, error) {
	if n := b.net(); n.follows() {
		return nil, ErrFollows
	}
	clock := b.forkClock()
	clock.Offset, clock.OffsetSet = c.To.Add(-time.Duration(clock.UTCOffset)*time.Minute).Sub(now), false
	b.st.Clock = clock
	return nil, nil
}

// LocalAsUTC returns the local time at a BMC time, as UTC.
func (c *Clock) LocalAsUTC(t time.Time) time.Time {
	if c == nil {
		return t
	}
	return t.Add(time.Duration(c.UTCOffset) * time.Minute)
}

// SkewClock sets the clock's error.
type SkewClock struct{ By time.Duration }

func (c SkewClock) apply(b *BMC, _ time.Time) ([]Event, error) {
	clock := b.forkClock()
	clock.Offset += c.By
	b.st.Clock = clock
	return nil, nil
}

// maxUTCOffset is the largest UTC offset in minutes (DSP2046,
// Manager.DateTimeLocalOffset).
const maxUTCOffset = 19*60 + 59

// SetZone sets the time zone.
type SetZone struct {
	UTCOffset int // minutes ahead of UTC
	Name      string
	Unsaid    bool // Clock.OffsetSet stays false
}

func (c SetZone) apply(b *BMC, _ time.Time) ([]Event, error) {
	if c.UTCOffset < -maxUTCOffset || c.UTCOffset > maxUTCOffset {
		return nil, fmt.Errorf("bmc: time zone %d minutes east of UTC: must be less than 20 hours", c.UTCOffset)
	}
	clock := b.forkClock()
	clock.UTCOffset, clock.Zone, clock.OffsetSet = c.UTCOffset, c.Name, !c.Unsaid
	b.st.Clock = clock
	return nil, nil
}

// forkClock returns a copy that a step may change, and stores it.
func (b *BMC) forkClock() *Clock {
	if b.st.Clock == nil {
		return new(Clock)
	}
	return new(*b.st.Clock)
}
