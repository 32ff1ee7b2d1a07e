package lab

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// maxPasses bounds the tokens that a host remembers; more sessions than that
// are looked for in the BMC.
const maxPasses = 16

// passes are tokens that were shown to a BMC, with the sessions that they stand
// for. They spare the requests of a session the lock of the host, and a digest of
// the token: what a BMC keeps of it is no more than that. It is immutable, and
// lives as long as the lab does.
type passes struct {
	of    *bmc.Logins // sessions that were open; when others are, all of it is void
	until time.Time   // when one of them may have ended by itself
	all   []pass      // latest first
}

type pass struct {
	token   string
	session bmc.Session
}

// Resume finds the session that a token stands for, and counts as its use.
func (h *Host) Resume(token string) (bmc.Session, bool) {
	now := h.Now()
	if p := h.passes.Load(); p != nil && p.of == h.BMC().Logins && now.Before(p.until) {
		for i := range p.all {
			if x := &p.all[i]; subtle.ConstantTimeCompare([]byte(x.token), []byte(token)) == 1 && x.session.Use(now) {
				return x.session, true
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now = h.Now()
	overdue := due(h.bmc, now)
	s, ok := h.bmc.Resume(now, token)
	if overdue {
		h.show()
	}
	if ok {
		h.pass(token, s)
	}
	return s, ok
}

// pass remembers a token. It holds h.mu.
func (h *Host) pass(token string, s bmc.Session) {
	p := &passes{of: h.BMC().Logins, until: h.bmc.SessionsDue(), all: []pass{{token, s}}}
	if old := h.passes.Load(); old != nil && old.of == p.of {
		for _, x := range old.all[:min(len(old.all), maxPasses-1)] {
			if x.token != token {
				p.all = append(p.all, x)
			}
		}
	}
	p.all = slices.Clip(p.all)
	h.passes.Store(p)
}
