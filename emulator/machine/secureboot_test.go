package machine

import (
	"errors"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/fixtures"
)

// generic is a machine of the built-in model.
func genericBench(t *testing.T) *bench {
	t.Helper()
	raw, err := fixtures.Profiles.ReadFile("profiles/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseProfile("profile.yaml", raw)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(p, NewIdentity(1, 0, "node-0", p), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, m: m, now: origin}
}

func TestSecureBootIsPendingUntilTheNextBoot(t *testing.T) {
	b := genericBench(t)
	boot := func() bool {
		if b.m.st.Phase == Off {
			b.do(Reset{Kind: ResetOn})
		} else {
			b.do(Reset{Kind: ForceRestart})
		}
		b.until(Selecting)
		return b.m.View().SecureBoot.Current
	}
	if boot() {
		t.Error("it checks what it boots, and nobody has asked for that")
	}
	b.do(SetSecureBoot{Enable: true})
	if s := b.m.View().SecureBoot; s.Current || !s.Enable {
		t.Errorf("before the next boot: %+v", s)
	}
	if !boot() {
		t.Error("the next boot does not check")
	}
	b.do(ResetKeys{Databases: []string{"PK"}, Delete: true})
	if v := b.m.View(); v.KeyMode() != SetupMode || !v.SecureBoot.Current {
		t.Errorf("without a platform key: %s, current %t", v.KeyMode(), v.SecureBoot.Current)
	}
	if boot() {
		t.Error("a boot without a platform key checks")
	}
	b.do(ResetKeys{Databases: []string{"PK"}})
	if v := b.m.View(); v.KeyMode() != UserMode || !boot() {
		t.Errorf("with the platform key again: %s", v.KeyMode())
	}
}

func TestAddAndRemoveSecureBootKeys(t *testing.T) {
	b := genericBench(t)
	v := b.m.View()
	count := func(db string) int { v := b.m.View(); return len(v.Keys(db)) }
	cert := v.Keys("dbx")[0]
	evs, err := b.m.Apply(b.now, AddKey{Database: "db", Key: SecureKey{DER: cert.DER}})
	if err != nil || len(notes(evs)) != 1 || notes(evs)[0] != event.KeysChanged || count("db") != 3 || count("dbDefault") != 2 {
		t.Fatalf("AddKey = %v, %v; db has %d keys", notes(evs), err, count("db"))
	}
	sum := strings.Repeat("AB", 32)
	b.do(AddKey{Database: "dbx", Key: SecureKey{Type: "EFI_CERT_SHA256_GUID", Text: sum}})
	now := b.m.View()
	keys := now.Keys("dbx")
	last := keys[len(keys)-1]
	if last.Text != strings.ToLower(sum) || last.ID != "101" {
		t.Errorf("the new signature is %+v", last)
	}
	before := b.m.State()
	for _, tt := range []struct {
		do   Command
		want error
	}{
		{AddKey{Database: "db", Key: SecureKey{DER: cert.DER}}, ErrConflict}, {AddKey{Database: "PK", Key: SecureKey{DER: cert.DER}}, ErrConflict},
		{AddKey{Database: "db", Key: SecureKey{DER: []byte("no certificate")}}, ErrUnknown}, {AddKey{Database: "dbDefault", Key: SecureKey{DER: cert.DER}}, ErrUnknown},
		{AddKey{Database: "KEK", Key: SecureKey{Type: "EFI_CERT_SHA256_GUID", Text: sum}}, ErrUnknown},
		{AddKey{Database: "dbx", Key: SecureKey{Type: "EFI_CERT_SHA512_GUID", Text: sum}}, ErrUnknown},
		{AddKey{Database: "db", Key: SecureKey{DER: v.Keys("KEK")[0].DER, Owner: "me"}}, ErrUnknown},
		{RemoveKey{Database: "db", ID: "77"}, ErrUnknown}, {RemoveKey{Database: "dbxDefault", ID: "1"}, ErrUnknown},
	} {
		if _, err := b.m.Apply(b.now, tt.do); !errors.Is(err, tt.want) || b.m.State() != before {
			t.Errorf("%T = %v, want %v and no change", tt.do, err, tt.want)
		}
	}
	b.do(RemoveKey{Database: "dbx", ID: last.ID})
	b.do(ResetKeys{Databases: []string{"PK", "KEK", "db", "dbx"}, Delete: true})
	if n := count("PK") + count("KEK") + count("db") + count("dbx"); n != 0 || count("PKDefault") != 1 {
		t.Errorf("%d keys are left", n)
	}
}
