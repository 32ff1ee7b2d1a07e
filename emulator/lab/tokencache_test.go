package lab

import (
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func TestCachedTokenNeedsNoHostLock(t *testing.T) {
	l := open(t, Config{})
	h := l.hosts[0]
	admin, _ := h.Admin()
	for _, token := range []string{"one", "two"} {
		if _, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: admin, Token: token}); err != nil {
			t.Fatal(err)
		}
	}
	for _, token := range []string{"one", "two"} {
		if s, ok := h.Resume(token); !ok || s.User != admin.Name {
			t.Fatalf("Resume(%s) = %+v, %v", token, s, ok)
		}
	}
	life := h.BMC().SessionTimeout
	l.clock.Advance(life / 2)

	h.mu.Lock() // as a long step does
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if s, ok := h.Resume("one"); !ok || s.ID != "1" {
					t.Errorf("Resume(one) = %+v, %v", s, ok)
				}
			}
		})
	}
	all.Wait()
	h.mu.Unlock()

	if _, ok := h.Resume("on"); ok {
		t.Error("part of a token stands for a session")
	}
	l.clock.Advance(life/2 + time.Second)
	if _, ok := h.Resume("two"); ok {
		t.Error("a session that was not used lives on")
	}
	if s := h.BMC().Sessions; len(s) != 1 || s[0].ID != "1" {
		t.Errorf("sessions %+v, want the one that was used", s)
	}
	if _, ok := h.Resume("one"); !ok {
		t.Error("a session that was used has ended")
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.CloseSession{ID: "1"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := h.Resume("one"); ok {
		t.Error("a session lives on that was closed")
	}
}

func TestTokensBeyondTheCacheAreFound(t *testing.T) {
	l := open(t, Config{})
	h := l.hosts[0]
	admin, _ := h.Admin()
	var tokens []string
	for i := range h.Dialect().BMC.Sessions {
		tokens = append(tokens, string(rune('A'+i)))
		if _, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: admin, Token: tokens[i]}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for _, token := range tokens {
			if _, ok := h.Resume(token); !ok {
				t.Errorf("Resume(%s) = false", token)
			}
		}
	}
	if n := len(h.tokens.Load().all); n > maxCachedTokens {
		t.Errorf("%d tokens are remembered, want %d at most", n, maxCachedTokens)
	}
}
