package rack

import (
	"context"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// A value that cannot be read would be a server in its delivery state, or a rack
// without its faults: the rack does not start, and says which value it is.
func TestOpenReportsAStoredValueThatItCannotRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		put  store.Put
		want string // in the error
	}{
		{"a part of a host", store.Put{Kind: store.Hosts, Key: "node-0/" + parts()[0].key, Value: "x"}, "host node-0/" + parts()[0].key + ": "},
		{"a part of the last host", store.Put{Kind: store.Hosts, Key: "node-1/" + parts()[len(parts())-1].key, Value: "x"}, "host node-1/"},
		{"an entry of a log", store.Put{Kind: store.Hosts, Key: "node-0/bmc.log/0", Value: "x"}, "host node-0/bmc.log/0: "},
		{"a host of an older release", store.Put{Kind: store.Hosts, Key: "node-0", Value: "x"}, "host node-0: was stored by an older release"},
		{"the rack", store.Put{Kind: store.Meta, Key: metaKey, Value: "x"}, "lab rack: "},
		{"the quirks", store.Put{Kind: store.Meta, Key: quirksKey, Value: "x"}, "lab quirks: "},
		{"the faults", store.Put{Kind: store.Meta, Key: "faults", Value: "x"}, "lab faults: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := open(t, Config{Rack: new(rackfile.Default(2))})
			h := l.hosts[0]
			h.mu.Lock()
			st := h.begin()
			st.machine = append(st.machine, event.Note{At: st.now, Kind: event.PowerOn, Args: []string{"x"}}) // its log has an entry
			err := h.commit(st)
			h.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			err = withClosedRack(t.Context(), l.dir, nil, func(s *store.Store) error {
				return s.Save(l.clock.Now(), tt.put)
			})
			if err != nil {
				t.Fatal(err)
			}
			again, err := Open(t.Context(), Config{Dir: l.dir, Clock: clock.NewVirtual(l.clock.Now()), Listen: "lo:0"})
			if err == nil {
				_ = again.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open() error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Commands on a rack that is stopped report the same.
func TestClosedRackReportsADefinitionThatItCannotRead(t *testing.T) {
	l := open(t, Config{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	err := withClosedRack(t.Context(), l.dir, nil, func(s *store.Store) error {
		return s.Save(l.clock.Now(), store.Put{Kind: store.Meta, Key: metaKey, Value: "x"})
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(context.Context) error{
		"ResetHosts": func(ctx context.Context) error { return ResetHosts(ctx, l.dir) },
		"StoredRack": func(ctx context.Context) error { _, err := StoredRack(ctx, l.dir); return err },
		"SaveSnapshot": func(ctx context.Context) error {
			_, err := SaveSnapshot(ctx, l.dir, t.TempDir()+"/a.tar", nil)
			return err
		},
	} {
		if err := do(t.Context()); err == nil || !strings.Contains(err.Error(), "lab rack: ") {
			t.Errorf("%s: error = %v, want one that names the value", name, err)
		}
	}
}
