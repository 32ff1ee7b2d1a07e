package rack

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Any two parts of a host's state that differ are stored.
func TestEveryChangedPartIsStored(t *testing.T) {
	for _, p := range parts() {
		for _, beside := range parts() {
			var before, after hostState
			want := map[string]bool{}
			for _, p := range []partField{p, beside} {
				at := reflect.ValueOf(&after).Elem().FieldByIndex(p.at)
				at.Set(reflect.New(at.Type().Elem()))
				want["h/"+p.key] = true
			}
			got := map[string]bool{}
			for _, put := range after.changedParts("h", &before) {
				got[put.Key] = true
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s and %s (-want +got):\n%s", p.key, beside.key, d)
			}
		}
	}
}

// An entry added to a log of thousands stores one entry, and all of them are there
// after a restart.
func TestLogIsStoredByTheEntry(t *testing.T) {
	l := open(t, Config{})
	h := l.hosts[0]
	const most = 2000 // entries in a log of the generic dialect
	write := func() (puts int) {
		t.Helper()
		h.mu.Lock()
		defer h.mu.Unlock()
		st := h.begin()
		st.machine = append(st.machine, event.Note{At: st.now, Kind: event.PowerOn, Args: []string{"x"}})
		if err := h.commit(st); err != nil {
			t.Fatal(err)
		}
		return len(st.is.changedParts(h.Name(), &st.was))
	}
	for range most + 300 {
		if n := write(); n > 3 { // the head, the new entry and the dropped one
			t.Fatalf("an entry more is stored with %d values", n)
		}
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.RemoveEntry{Log: bmc.EventLog, ID: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.ResolveEntry{Log: bmc.EventLog, ID: 1001, Resolved: true}); err != nil {
		t.Fatal(err)
	}
	want := h.BMC().Log
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), Config{Dir: l.dir, Clock: clock.NewVirtual(l.clock.Now()), Listen: "lo:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := l.hosts[0].BMC().Log
	var a, b []bmc.Entry
	for e := range want.Entries() {
		a = append(a, *e)
	}
	for e := range got.Entries() {
		b = append(b, *e)
	}
	if d := cmp.Diff(a, b); d != "" || got.Len() != most-1 || got.Next != want.Next {
		t.Errorf("%d entries, next %d; (-before +after):\n%s", got.Len(), got.Next, d)
	}
	if _, err := l.hosts[0].ApplyBMC(t.Context(), bmc.ClearLog{Log: bmc.EventLog}); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := l.store.Each("host", func(key string, _ []byte) error {
		if len(key) > len("node-0/bmc.log/") && key[:len("node-0/bmc.log/")] == "node-0/bmc.log/" {
			n++
		}
		return nil
	}); err != nil || n != 0 {
		t.Errorf("%d entries of a cleared log are stored, %v", n, err)
	}
}
