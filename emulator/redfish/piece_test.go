package redfish

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func TestABodyInPiecesIsAsOneMadeAtOnce(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	tags := map[string]string{} // what they are of
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
		m := s.find(httptest.NewRequest("GET", sys, nil).URL)
		at := look(h)
		p := s.page(m, at)
		got, want := decode(p.body.whole()), decode(encode(m.object(m.view(at))))
		if got["@odata.etag"] != p.tag() || tags[p.tag()] != "" {
			t.Errorf("%s: the ETag of the body is %v, of the header %s, and before of %q", step.name, got["@odata.etag"], p.tag(), tags[p.tag()])
		}
		tags[p.tag()] = step.name
		delete(got, "@odata.etag")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: made at once (-), in pieces (+):\n%s", step.name, diff)
		}
		if afresh := newService(t, h).page(m, at); afresh.tag() != p.tag() || string(afresh.body.whole()) != string(p.body.whole()) {
			t.Errorf("%s: another service makes another body:\n%s\n%s", step.name, afresh.body.whole(), p.body.whole())
		}
	}
}
