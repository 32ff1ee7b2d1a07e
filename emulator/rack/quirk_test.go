package rack_test

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/fixtures"
)

func openQuirky(t *testing.T, dir string, texts ...string) (*rack.Rack, error) {
	t.Helper()
	r := rackfile.Default(2)
	r.Hosts[0].Quirks = texts
	l, err := rack.Open(t.Context(), rack.Config{Dir: dir, Rack: &r, Clock: clock.NewVirtual(clock.Wall()), Profiles: fixtures.Profiles, Listen: "lo:0"})
	return l, err
}

func texts(h *rack.Host) string {
	var out []string
	for _, s := range h.Quirks() {
		out = append(out, s.String())
	}
	return strings.Join(out, ", ")
}

func TestQuirksOfARackAndSetAtRunTime(t *testing.T) {
	dir := t.TempDir()
	l, err := openQuirky(t, dir, "vmedia-strict-payload", "power-settle-409 for=30s")
	if err != nil {
		t.Fatal(err)
	}
	a, b := l.Hosts()[0], l.Hosts()[1]
	if a.Dialect() != b.Dialect() || len(a.Dialect().Presentation.RejectRules) != 2 {
		t.Errorf("hosts of a group do not share a record of two rules")
	}
	if err := a.SetQuirks([]quirk.Setting{{ID: "no-sessions"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.SetQuirks(nil); err != nil {
		t.Fatal(err)
	}
	if err := a.SetQuirks([]quirk.Setting{{ID: "none-such"}}); err == nil || !strings.Contains(err.Error(), "none-such") {
		t.Errorf("a quirk that there is not: %v", err)
	}
	if err := a.SetQuirks([]quirk.Setting{{ID: "no-sessions"}, {ID: "no-sessions"}}); err == nil {
		t.Error("a quirk twice is taken")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = openQuirky(t, dir, "vmedia-strict-payload", "power-settle-409 for=30s"); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := texts(l.Hosts()[0]); got != "no-sessions" {
		t.Errorf("after a restart the first host has %q", got)
	}
	if got := texts(l.Hosts()[1]); got != "" || len(l.Hosts()[1].Dialect().Presentation.RejectRules) != 0 {
		t.Errorf("after a restart the second host has %q", got)
	}
}

func TestOpenRefusesAWrongQuirk(t *testing.T) {
	_, err := openQuirky(t, t.TempDir(), "vmedia-strict-payload", "none-such")
	if err == nil || !strings.Contains(err.Error(), "hosts[0].quirks[1]") || !strings.Contains(err.Error(), "none-such") {
		t.Errorf("%v, want the field and the name", err)
	}
}
