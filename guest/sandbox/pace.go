package sandbox

import (
	"context"
	"time"
)

// Bounds of how often a service is started, in real time: by Restart=, by a timer, or by another
// unit. A unit may have no start limit, and a clock at max speed jumps over its RestartSec=, so that
// its processes would take this machine from the lab: a start costs some 10 ms of a processor. Five a
// second are as many as systemd's limit allows in ten.
const (
	paceBurst    = startBurst
	paceInterval = time.Second
)

// pace returns when a service may start, or when ctx ends.
func (u *units) pace(ctx context.Context, name string) error {
	u.mu.Lock()
	now := time.Now()
	at, recent := now, u.recent[name]
	if n := len(recent); n >= paceBurst {
		at = later(now, recent[n-paceBurst].Add(paceInterval))
	}
	if u.recent == nil {
		u.recent = map[string][]time.Time{}
	}
	u.recent[name] = append(recent, at)[max(0, len(recent)+1-paceBurst):]
	u.mu.Unlock()
	if at.After(now) {
		return sleep(ctx, at.Sub(now))
	}
	return ctx.Err()
}
