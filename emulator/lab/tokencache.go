package lab

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// maxCachedTokens bounds the tokens that a host remembers; more sessions than that
// are looked for in the BMC.
const maxCachedTokens = 16

// tokenCache are tokens that were shown to a BMC, with the sessions that they stand
// for. They spare the requests of a session the lock of the host, and a digest of
// the token: what a BMC keeps of it is no more than that. It is immutable, and
// lives as long as the lab does.
type tokenCache struct {
	logins *bmc.Logins   // sessions that were open; when others are, all of it is void
	until  time.Time     // when one of them may have ended by itself
	all    []cachedToken // latest first
}

type cachedToken struct {
	token   string
	session bmc.Session
}

// Resume finds the session that a token stands for, and counts as its use.
func (h *Host) Resume(token string) (bmc.Session, bool) {
	now := h.Now()
	if p := h.tokens.Load(); p != nil && p.logins == h.BMC().Logins && now.Before(p.until) {
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
		h.publish()
	}
	if ok {
		h.cacheToken(token, s)
	}
	return s, ok
}

// cacheToken remembers a token. It holds h.mu.
func (h *Host) cacheToken(token string, s bmc.Session) {
	p := &tokenCache{logins: h.BMC().Logins, until: h.bmc.SessionsDue(), all: []cachedToken{{token, s}}}
	if old := h.tokens.Load(); old != nil && old.logins == p.logins {
		for _, x := range old.all[:min(len(old.all), maxCachedTokens-1)] {
			if x.token != token {
				p.all = append(p.all, x)
			}
		}
	}
	p.all = slices.Clip(p.all)
	h.tokens.Store(p)
}
