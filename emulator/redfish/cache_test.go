package redfish

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// mutations are changes of a host, which it may reject.
var mutations = []func(h *host, r *rand.Rand) error{
	func(h *host, r *rand.Rand) error {
		all := h.d.ResetTypes
		return h.Apply(context.Background(), machine.Reset{Kind: all[r.IntN(len(all))]})
	},
	func(h *host, r *rand.Rand) error {
		enabled := []machine.Enabled{machine.Once, machine.Continuous}[r.IntN(2)]
		return h.Apply(context.Background(), machine.SetOverride{Override: machine.Override{
			Enabled: enabled, Target: h.d.BootTargets[r.IntN(len(h.d.BootTargets))], Mode: machine.UEFI,
		}})
	},
	func(h *host, r *rand.Rand) error {
		return h.Apply(context.Background(), machine.SetAsset{Asset: machine.Asset{
			Tag: []string{"", "one", `two "2"`}[r.IntN(3)], HostName: []string{"", "a", "b.example.com"}[r.IntN(3)], IndicatorLED: machine.IndicatorLit,
		}})
	},
	func(h *host, r *rand.Rand) error { h.pass(time.Duration(1+r.IntN(600)) * time.Second); return nil },
	func(h *host, r *rand.Rand) error {
		hot := 20 + 30*r.Float64()
		return h.Apply(context.Background(), machine.Thermal{Command: thermal.SetAmbient{Celsius: &hot}})
	},
	func(h *host, r *rand.Rand) error {
		return h.Apply(context.Background(), machine.SetSecureBoot{Enable: r.IntN(2) == 0})
	},
	func(h *host, r *rand.Rand) error {
		return h.Apply(context.Background(), machine.SetWatchdog{Enabled: r.IntN(2) == 0, Action: machine.WatchdogReset})
	},
	func(h *host, r *rand.Rand) error {
		all := h.machine.View().Identity.NICs
		return h.Apply(context.Background(), machine.SetLink{NIC: all[r.IntN(len(all))].ID, Up: r.IntN(2) == 0})
	},
	func(h *host, r *rand.Rand) error {
		model := h.machine.View().Profile.Firmware.Model
		if model == nil {
			return nil
		}
		all := model.Registry().Attributes
		for range 20 {
			if a := all[r.IntN(len(all))]; !a.ReadOnly && len(a.Values) > 0 {
				return h.Apply(context.Background(), machine.Firmware{Command: setting(a.Name, a.Values[r.IntN(len(a.Values))].Name)})
			}
		}
		return nil
	},
	func(h *host, r *rand.Rand) error {
		for _, c := range h.machine.View().Storage.Controllers() {
			if c.RAID != nil && r.IntN(2) == 0 {
				return h.Apply(context.Background(), machine.Storage{Command: storage.CreateVolume{Controller: c.ID, Type: storage.RAID1}})
			}
		}
		return nil
	},
	func(h *host, r *rand.Rand) error {
		_, err := h.ApplyBMC(context.Background(), bmc.InsertMedia{Slot: h.d.BMC.Slots[r.IntN(len(h.d.BMC.Slots))].ID, Image: "https://images.test/a/live.iso"})
		return err
	},
	func(h *host, r *rand.Rand) error {
		_, err := h.ApplyBMC(context.Background(), bmc.EjectMedia{Slot: h.d.BMC.Slots[r.IntN(len(h.d.BMC.Slots))].ID})
		return err
	},
	func(h *host, r *rand.Rand) error {
		_, err := h.ApplyBMC(context.Background(), bmc.OpenSession{Account: accounts[r.IntN(2)], Token: "t" + time.Duration(r.Int64()).String(), From: "192.0.2.9"})
		return err
	},
	func(h *host, r *rand.Rand) error {
		name, password, role := "u"+string(rune('a'+r.IntN(26))), "Secret-9-of-it", accounts[0].Role
		_, err := h.ApplyBMC(context.Background(), bmc.CreateAccount{AccountChange: bmc.AccountChange{Name: &name, Password: &password, Role: &role}})
		return err
	},
	func(h *host, r *rand.Rand) error {
		_, err := h.ApplyBMC(context.Background(), bmc.OpenTask{Name: "work", User: "admin"})
		return err
	},
	func(h *host, r *rand.Rand) error {
		values := map[string]any{}
		for _, shape := range h.d.Presentation.Transforms {
			for _, set := range shape.Set {
				if name, is := strings.CutPrefix(set.From, "="); is {
					values[name] = []any{"Enabled", "Disabled", nil}[r.IntN(3)]
				}
			}
		}
		_, err := h.ApplyBMC(context.Background(), bmc.SetOEMValues{Values: values})
		return err
	},
}

// TestCachedRepresentationsEqualFreshOnes compares each body of every model, after each
// of many changes, with the body that a service with an empty cache renders.
func TestCachedRepresentationsEqualFreshOnes(t *testing.T) {
	standard := vendors[0]
	standard.record, standard.profiles = &generic.Record, []string{"generic"}
	for _, vendor := range append(slices.Clone(vendors), standard) {
		profiles := vendor.profiles
		if raced {
			profiles = profiles[:1]
		}
		for _, profile := range profiles {
			t.Run(profile, func(t *testing.T) {
				s, h := newVendorHost(t, vendor.record, profile)
				r := rand.New(rand.NewPCG(7, uint64(len(profile))))
				taken, compared := map[int]bool{}, 0
				for round := range 6 {
					must(t, h.Apply(t.Context(), machine.SetAsset{Asset: machine.Asset{HostName: []string{"x", "y"}[round%2]}})) // other resources show it
					for range 4 {
						if i := r.IntN(len(mutations)); mutations[i](h, r) == nil {
							taken[i] = true
						}
					}
					compared += compareWithUncached(t, s, h)
					if t.Failed() {
						return
					}
				}
				if len(taken) < 6 || compared < 500 {
					t.Errorf("%d kinds of changes were taken, %d bodies compared: too few to tell", len(taken), compared)
				}
			})
		}
	}
}

// compareWithUncached compares all bodies that clients can reach with those of a
// service that has cached nothing, and returns how many there are.
func compareWithUncached(t *testing.T, s *Service, h *host) (compared int) {
	t.Helper()
	other := newFresh(t, h)
	at := resource.TakeSnapshot(h)
	matches := map[string]*resource.Match{}
	todo, seen := []string{"/redfish/v1/"}, map[string]bool{"/redfish/v1/": true}
	for len(todo) > 0 {
		x := &request{s: s, host: h, vendor: s.vendors.Of(h.Dialect()), r: httptest.NewRequest("GET", todo[0], nil)}
		todo = todo[1:]
		m := x.route(x.r.URL)
		if m == nil || m.Action != nil {
			continue
		}
		matches[m.URI] = m
		p := s.renderer.Representation(m, at)
		if p == nil || p.MediaType != resource.JSON {
			continue
		}
		for _, part := range strings.Split(string(p.Body), `"@odata.id":"`)[1:] {
			link, _, _ := strings.Cut(part, `"`)
			link, _, _ = strings.Cut(link, "#")
			if !seen[link] {
				seen[link] = true
				todo = append(todo, link)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(matches)) {
		m := matches[name]
		p := s.renderer.Representation(m, at)
		if p == nil || p.MediaType != resource.JSON || len(p.Body) == 0 || m.Raw != nil {
			continue
		}
		want := other.renderer.Representation(m, at)
		if !bytes.Equal(p.Body, want.Body) || p.Tag() != want.Tag() {
			t.Errorf("%s: cached %s %s\nrendered %s %s", name, p.Tag(), p.Body, want.Tag(), want.Body)
			return compared
		}
		// A body assembled from fragments equals one rendered in one piece.
		got, plain := resource.Decode(p.Body), resource.Decode(other.renderer.Render(m, at).Body)
		delete(got, "@odata.etag")
		delete(plain, "@odata.etag")
		if diff := cmp.Diff(plain, got); diff != "" {
			t.Errorf("%s: rendered (-), cached (+):\n%s", name, diff)
			return compared
		}
		compared++
	}
	return compared
}

// TestEachSystemChangeHasDistinctETag also checks that a representation does not depend
// on the one before.
func TestEachSystemChangeHasDistinctETag(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	tags := map[string]string{} // by ETag: the change that led to it
	for _, step := range []struct {
		name string
		do   machine.Command
	}{
		{"new", nil},
		{"override", machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.Cd, Mode: machine.UEFI}}},
		{"label", machine.SetAsset{Asset: machine.Asset{Tag: "R2D2", IndicatorLED: machine.IndicatorLit}}},
		{"boot order", machine.SetHTTPBoot{URI: "https://boot.example/x.efi"}},
		{"policy", machine.SetPowerPolicy{PowerPolicy: machine.PowerPolicy{Restore: machine.AlwaysOn}}},
		{"on", machine.Reset{Kind: machine.ResetOn}},
	} {
		if step.do != nil {
			must(t, h.Apply(t.Context(), step.do))
		}
		m := s.tree.Find(httptest.NewRequest("GET", sys, nil).URL)
		at := resource.TakeSnapshot(h)
		p := s.renderer.Representation(m, at)
		got, want := resource.Decode(p.Body), resource.NormalizeObject(m.Object(m.View(at)))
		if got["@odata.etag"] != p.Tag() || tags[p.Tag()] != "" {
			t.Errorf("%s: the ETag of the body is %v, of the header %s, and before of %q", step.name, got["@odata.etag"], p.Tag(), tags[p.Tag()])
		}
		tags[p.Tag()] = step.name
		delete(got, "@odata.etag")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the object (-), the body (+):\n%s", step.name, diff)
		}
		if other := newService(t, h).renderer.Representation(m, at); other.Tag() != p.Tag() || !bytes.Equal(other.Body, p.Body) {
			t.Errorf("%s: another service renders another body:\n%s\n%s", step.name, other.Body, p.Body)
		}
	}
}

// newFresh returns another service of a host, with an empty cache.
func newFresh(t *testing.T, h *host) *Service {
	t.Helper()
	s, err := New(Config{Rack: rack{h}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.CloseStreams)
	return s
}
