package bmc

import (
	"fmt"
	"time"
)

// Clock is what a BMC takes the time for. A nil Clock is right, and in UTC.
type Clock struct {
	Offset    time.Duration `json:"offset,omitempty"` // to the lab's time
	UTCOffset int           `json:"east,omitempty"`   // minutes that local time is ahead of UTC
	Zone      string        `json:"zone,omitempty"`   // name of the time zone: "Europe/Berlin"
	// Zoned says that East was set after the time was set by what a clock on the
	// wall shows.
	OffsetSet bool `json:"zoned,omitempty"`
}

// Skew is how far the clock is ahead of the lab's time.
func (c *Clock) Skew() time.Duration {
	if c == nil {
		return 0
	}
	return c.Offset
}

// Local is a time of the BMC as its clock shows it.
func (c *Clock) Local(t time.Time) time.Time {
	if c == nil || c.UTCOffset == 0 {
		return t.UTC()
	}
	return t.In(time.FixedZone("", c.UTCOffset*60))
}

// SetTime sets the BMC's clock. While it follows time servers it cannot be set.
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

// SetLocalTime sets the BMC's clock by what a clock on the wall shows where it is,
// taken for UTC. As SetTime otherwise.
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

// LocalAsUTC is what a clock on the wall shows at a time of the BMC, taken for UTC.
func (c *Clock) LocalAsUTC(t time.Time) time.Time {
	if c == nil {
		return t
	}
	return t.Add(time.Duration(c.UTCOffset) * time.Minute)
}

// SkewClock puts the BMC's clock off by a duration, for better or worse.
type SkewClock struct{ By time.Duration }

func (c SkewClock) apply(b *BMC, _ time.Time) ([]Event, error) {
	clock := b.forkClock()
	clock.Offset += c.By
	b.st.Clock = clock
	return nil, nil
}

// maxEast is how far local time can be off (DSP2046,
// Manager.DateTimeLocalOffset), in minutes.
const maxEast = 19*60 + 59

// SetZone sets what the BMC's local time is.
type SetZone struct {
	UTCOffset int // minutes ahead of UTC
	Name      string
	Unsaid    bool // Clock.Zoned is not to be
}

func (c SetZone) apply(b *BMC, _ time.Time) ([]Event, error) {
	if c.UTCOffset < -maxEast || c.UTCOffset > maxEast {
		return nil, fmt.Errorf("bmc: time zone %d minutes east of UTC: must be less than 20 hours", c.UTCOffset)
	}
	clock := b.forkClock()
	clock.UTCOffset, clock.Zone, clock.OffsetSet = c.UTCOffset, c.Name, !c.Unsaid
	b.st.Clock = clock
	return nil, nil
}

// forkClock is a copy of the clock that a step may write and put in place.
func (b *BMC) forkClock() *Clock {
	if b.st.Clock == nil {
		return new(Clock)
	}
	return new(*b.st.Clock)
}
