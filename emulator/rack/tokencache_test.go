package rack

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
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
		t.Error("a prefix of a token finds a session")
	}
	l.clock.Advance(life/2 + time.Second)
	if _, ok := h.Resume("two"); ok {
		t.Error("an unused session has not timed out")
	}
	if s := h.BMC().Sessions; len(s) != 1 || s[0].ID != "1" {
		t.Errorf("sessions %+v, want the one that was used", s)
	}
	if _, ok := h.Resume("one"); !ok {
		t.Error("a used session has timed out")
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.CloseSession{ID: "1"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := h.Resume("one"); ok {
		t.Error("a closed session is found")
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
		t.Errorf("%d tokens are cached, want %d at most", n, maxCachedTokens)
	}
}

// BenchmarkResumeDuringWrites measures how long a request waits for its session
// while another client changes the same host, with the cache and without it. With
// Fsync, a change holds the host's lock until it is on disk.
func BenchmarkResumeDuringWrites(b *testing.B) {
	for _, way := range []string{"cache", "lock"} {
		b.Run(way, func(b *testing.B) {
			l, err := Open(b.Context(), Config{Dir: b.TempDir(), Clock: clock.NewVirtual(origin), Listen: "lo:0", Fsync: true})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			h := l.hosts[0]
			admin, _ := h.Admin()
			if _, err := h.ApplyBMC(b.Context(), bmc.OpenSession{Account: admin, Token: "token"}); err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(b.Context())
			var writer sync.WaitGroup
			defer writer.Wait()
			defer stop()
			writer.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					o := machine.Override{Enabled: machine.Once, Target: machine.SourceKinds[i%4], Mode: machine.UEFI}
					if err := h.Apply(context.WithoutCancel(ctx), machine.SetOverride{Override: o}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			for b.Loop() {
				if way == "lock" {
					h.tokens.Store(nil)
				}
				if _, ok := h.Resume("token"); !ok {
					b.Fatal("no session")
				}
			}
		})
	}
}
