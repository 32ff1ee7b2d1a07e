package bmc

import (
	"testing"
	"time"
)

func TestFailedLoginsBlockTheAddress(t *testing.T) {
	b := newGuarded()
	p := *b.policy()
	p.BlockAfter, p.BlockWithin, p.BlockFor = 3, time.Minute, 10*time.Minute
	do(t, b, origin, SetPolicy{p})
	login := func(at time.Time, password, from string) bool {
		t.Helper()
		b.Advance(at)
		v := b.Login(Credentials{Name: "admin", Password: password, To: ForRedfish, From: from})
		if v.Record != nil {
			do(t, b, at, v.Record)
		}
		return v.OK
	}
	const guesser, other = "192.0.2.7", "192.0.2.8"
	login(origin, "wrong", guesser)
	login(origin.Add(time.Second), "wrong", guesser)
	if !login(origin.Add(2*time.Second), "secret", guesser) {
		t.Fatal("two guesses keep it out")
	}
	for i := range 2 { // a login that passed has it forgotten
		login(origin.Add(time.Duration(3+i)*time.Second), "wrong", guesser)
	}
	if !login(origin.Add(64*time.Second), "secret", other) {
		t.Error("another address is kept out")
	}
	login(origin.Add(64*time.Second), "wrong", guesser) // a minute after the first one
	if b.View().LoginFailures.Blocked(guesser) {
		t.Error("what was long ago counts")
	}
	for i := range 2 {
		login(origin.Add(time.Duration(70+10*i)*time.Second), "wrong", guesser)
	}
	at := origin.Add(80 * time.Second)
	if !b.View().LoginFailures.Blocked(guesser) || login(at, "secret", guesser) {
		t.Fatal("three guesses do not keep it out")
	}
	do(t, b, at, ChangeAccount{ID: "1", AccountChange: AccountChange{Unlock: true}})
	if login(at.Add(10*time.Minute-time.Second), "secret", guesser) || !login(at.Add(10*time.Minute-time.Second), "secret", other) {
		t.Error("it is not the address that is kept out, or not for long enough")
	}
	if !login(at.Add(10*time.Minute), "secret", guesser) {
		t.Error("it is kept out for too long")
	}
}

func TestAddressBlocksAreBounded(t *testing.T) {
	b := newGuarded()
	p := *b.policy()
	p.BlockAfter, p.BlockWithin, p.BlockFor, p.LockoutThreshold = 9, time.Minute, time.Minute, 0
	do(t, b, origin, SetPolicy{p})
	for i := range 3 * maxBlocks {
		b.countAddressFailure(origin, string(rune('a'+i)))
	}
	if got := len(b.st.LoginFailures.ByAddress); got != maxBlocks {
		t.Errorf("it remembers %d addresses, want %d", got, maxBlocks)
	}
}

func TestLockoutDurationGrows(t *testing.T) {
	b := newGuarded()
	p := *b.policy()
	p.LockoutThreshold, p.LockoutDuration, p.LockoutCounterResetAfter, p.MaxLockoutDuration = 2, 10*time.Second, 10*time.Second, 35*time.Second
	do(t, b, origin, SetPolicy{p})
	at := origin
	try(b, at, "admin", "wrong")
	for _, want := range []time.Duration{10, 20, 35, 35} {
		want *= time.Second
		try(b, at, "admin", "wrong")
		if try(b, at.Add(want-time.Second), "admin", "secret").OK {
			t.Errorf("it is locked for less than %s", want)
		}
		at = at.Add(want)
		b.Advance(at)
		if b.View().LoginFailures.Locked("1") {
			t.Fatalf("it is locked for more than %s", want)
		}
	}
	if !try(b, at, "admin", "secret").OK {
		t.Fatal("it stays locked")
	}
	try(b, at, "admin", "wrong")
	try(b, at, "admin", "wrong")
	at = at.Add(10 * time.Second)
	b.Advance(at)
	if b.View().LoginFailures.Locked("1") {
		t.Error("after a login that passed the first lock is not the shortest")
	}
	try(b, at.Add(10*time.Second), "admin", "wrong") // after ForgetAfter
	if b.View().LoginFailures.Locked("1") {
		t.Error("a lock that is long ago counts")
	}
}
