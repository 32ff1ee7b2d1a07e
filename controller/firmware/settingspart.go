package firmware

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host"
	"github.com/metalab-dev/metalab/controller/host/phase"
)

const (
	// rounds is how many resets settings may take that unlock each other.
	rounds = 5
	// applyLimit is how long settings may wait from the first reset on.
	applyLimit = 45 * time.Minute
	// resetAgain is after how long a start that did nothing is repeated. The
	// longest POSTs of which BMCs tell nothing take less.
	resetAgain = 15 * time.Minute
	// applyGrace is how long a BMC may take to show what a POST has applied.
	applyGrace = time.Minute
)

// Settings is the part of a host that its BIOS settings are.
type Settings struct{ r *Reconciler }

// Settings is the part for BIOS settings.
func (r *Reconciler) Settings() *Settings { return &Settings{r} }

var _ host.Servicer = (*Settings)(nil)

// Name implements host.Part.
func (*Settings) Name() string { return "BIOS" }

// settingsAttempt is how far an attempt at settings is.
type settingsAttempt struct {
	Of    string    `json:"of"`              // what is wanted
	Round int       `json:"round"`           // from 1
	Names []string  `json:"names"`           // of the settings that differed when the round began
	Reset bool      `json:"reset,omitempty"` // the system was started for it, or is about to be
	Began time.Time `json:"began,omitzero"`  // when it was for the first time
	At    time.Time `json:"at,omitzero"`     // and when for the last
	Error string    `json:"error,omitempty"` // why it has failed
}

// wish is what a host's settings shall be, and are.
type wish struct {
	hfs    *metal3.HostFirmwareSettings // nil: there is none yet
	want   metal3.DesiredSettingsMap
	at     *settingsAttempt // nil: nothing is under way
	bios   bmc.BIOS
	setup  bmc.Setup
	differ bmc.Settings // as the BMC takes them
	stale  bool         // what is wanted has not been validated
	bad    string       // why it cannot be had at all
}

// look reads what is wanted of a host, without its server.
func (p *Settings) look(ctx context.Context, h *metal3.BareMetalHost) (*wish, error) {
	w := &wish{want: metal3.DesiredSettingsMap{}}
	named, err := fields(h)
	if err != nil {
		w.bad = err.Error()
	}
	maps.Copy(w.want, named)
	var hfs metal3.HostFirmwareSettings
	err = p.r.read.Get(ctx, client.ObjectKeyFromObject(h), &hfs)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		w.stale = len(w.want) > 0 // it holds how far we are
		return w, nil
	}
	w.hfs, w.at = &hfs, load[settingsAttempt](&hfs)
	w.stale = !observed(hfs.Status.Conditions, hfs.Generation) && (len(hfs.Spec.Settings) > 0 || len(w.want) > 0)
	if isTrue(hfs.Status.Conditions, valid) {
		maps.Copy(w.want, hfs.Spec.Settings) // by name beats by the vendor-independent one
	}
	return w, nil
}

// compare reads how the settings are.
func (p *Settings) compare(ctx context.Context, w *wish, c bmc.Client) error {
	s, err := setup(c)
	if err == nil {
		w.bios, err = s.BIOS(ctx)
	}
	if unsupported(err) && len(w.want) > 0 {
		w.bad = err.Error()
		return nil
	}
	if err != nil && !unsupported(err) {
		return err
	}
	w.setup, w.differ = s, differing(w.want, w.bios)
	for _, name := range slices.Sorted(maps.Keys(w.want)) {
		if _, shown := w.bios.Settings[name]; !shown && w.bad == "" {
			w.bad = fmt.Sprintf("setting %s is not in the Status field", name)
		}
	}
	return nil
}

// digest tells what is wanted from what was.
func (w *wish) digest() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(w.want)) {
		v := w.want[name]
		words = append(words, name+"="+v.String())
	}
	return digest(words...)
}

// Look implements host.Part.
func (p *Settings) Look(ctx context.Context, s host.Server) (phase.PartState, string, error) {
	h := s.Host
	w, err := p.look(ctx, h)
	if err != nil {
		return "", "", err
	}
	fieldsChanged := !equality.Semantic.DeepEqual(h.Spec.Firmware, h.Status.Provisioning.Firmware) //nolint:staticcheck // the specification has it
	asked := w.hfs != nil && changed(w.hfs.Status.Conditions)
	switch {
	case w.stale:
		return phase.PartStale, "", nil
	case fieldsChanged && w.bad != "":
		return phase.PartFailed, w.bad, nil
	case fieldsChanged:
		return phase.PartWanted, "", nil
	case idle(h) && (asked || w.at != nil):
		return phase.PartWanted, "", nil
	case idle(h), len(w.want) == 0 && w.at == nil && !asked:
		return phase.PartSettled, "", nil
	}
	if err := p.compare(ctx, w, s.Client); err != nil {
		return "", "", err
	}
	switch {
	case w.at != nil && w.at.Error != "" && w.at.Of == w.digest():
		return phase.PartFailed, w.at.Error, nil
	case w.bad != "" && len(w.want) > 0:
		return phase.PartFailed, w.bad, nil
	case w.at == nil && len(w.differ) == 0 && !asked:
		return phase.PartSettled, "", nil
	case w.at == nil && len(w.differ) > 0, w.at != nil && w.at.Of != w.digest():
		return phase.PartWanted, "", nil
	}
	return phase.PartRunning, "", nil
}

// Begin implements host.Part: the fields of the specification are kept in the
// status, as upstream did.
func (p *Settings) Begin(h *metal3.BareMetalHost) {
	h.Status.Provisioning.Firmware = h.Spec.Firmware.DeepCopy() //nolint:staticcheck // the specification has it
}

// Forget implements host.Part.
func (p *Settings) Forget(h *metal3.BareMetalHost) {
	h.Status.Provisioning.Firmware = nil
}

// Due implements host.Servicer (B-220).
func (p *Settings) Due(ctx context.Context, h *metal3.BareMetalHost) (bool, error) {
	policy, err := p.r.policy(ctx, h)
	return policy.FirmwareSettings == metal3.HostUpdatePolicyOnReboot, err
}

// Carry implements host.Part.
func (p *Settings) Carry(ctx context.Context, s host.Server) error {
	w, err := p.look(ctx, s.Host)
	if err != nil || w.hfs == nil || w.bad != "" {
		return err
	}
	if err := p.compare(ctx, w, s.Client); err != nil || w.bad != "" {
		return err
	}
	if s.System.POST { // what it applies is not to be seen, and not to be interrupted
		return nil
	}
	if w.at != nil && w.at.Of != w.digest() {
		if err := p.withdraw(ctx, w); err != nil {
			return err
		}
	}
	if len(w.differ) == 0 {
		return p.settle(ctx, s, w)
	}
	if w.at == nil || w.at.Error != "" || w.at.Of != w.digest() {
		w.at = &settingsAttempt{Of: w.digest(), Round: 1, Names: slices.Sorted(maps.Keys(w.differ))}
		if err := p.r.save(ctx, w.hfs, w.at); err != nil {
			return err
		}
	}
	if !w.at.Reset {
		return p.write(ctx, s, w)
	}
	return p.verify(ctx, s, w)
}

// settle ends an attempt whose settings are all as wanted: first the status says
// so, then the attempt goes.
func (p *Settings) settle(ctx context.Context, s host.Server, w *wish) error {
	if err := p.r.refreshSettings(ctx, s.Host, w.hfs, s.Client); err != nil {
		return err
	}
	if w.at == nil {
		return nil
	}
	return p.r.save(ctx, w.hfs, nil)
}

// withdraw takes back what an attempt at something else has left waiting.
func (p *Settings) withdraw(ctx context.Context, w *wish) error {
	pending, err := w.setup.PendingBIOS(ctx)
	if unsupported(err) {
		return nil
	}
	if err != nil {
		return err
	}
	back := bmc.Settings{}
	for _, name := range w.at.Names {
		_, waits := pending[name]
		_, wanted := w.want[name]
		if waits && !wanted {
			back[name] = w.bios.Settings[name]
		}
	}
	if len(back) == 0 {
		return nil
	}
	err = w.setup.SetBIOS(ctx, back)
	if errors.Is(err, bmc.ErrPending) {
		return nil // they are applied, and changed after that
	}
	return err
}

// write asks the BMC for the settings, and resets the system for them. Those
// that the BMC refuses may be taken once others are applied.
func (p *Settings) write(ctx context.Context, s host.Server, w *wish) error {
	pending, err := w.setup.PendingBIOS(ctx)
	if err != nil {
		return err
	}
	ask := bmc.Settings{}
	for name, v := range w.differ {
		if waits, ok := pending[name]; !ok || waits != v {
			ask[name] = v
		}
	}
	if len(ask) > 0 {
		err := w.setup.SetBIOS(ctx, ask)
		refused := new(bmc.SettingsError)
		if errors.As(err, &refused) {
			for _, name := range refused.Names() {
				delete(ask, name)
			}
			if len(ask) == 0 && len(waiting(w.differ, pending)) == 0 {
				return p.fail(ctx, w, refused)
			}
			err = nil
			if len(ask) > 0 {
				err = w.setup.SetBIOS(ctx, ask)
			}
		}
		if errors.As(err, &refused) {
			return p.fail(ctx, w, refused)
		}
		if errors.Is(err, bmc.ErrPending) {
			w.at.Names, err = nil, nil // what this round applies is something else
		}
		if err != nil {
			return err
		}
	}
	return p.start(ctx, s, w)
}

// start starts the system anew.
func (p *Settings) start(ctx context.Context, s host.Server, w *wish) error {
	return startAnew(ctx, s.Client, s.System, func() error {
		now := p.r.Clock.Now().UTC()
		if !w.at.Reset {
			w.at.Began = now
		}
		w.at.Reset, w.at.At = true, now
		return p.r.save(ctx, w.hfs, w.at)
	})
}

// waiting are the settings that wait for a reset as wanted.
func waiting(want, pending bmc.Settings) []string {
	var out []string
	for name, v := range want {
		if is, ok := pending[name]; ok && is == v {
			out = append(out, name)
		}
	}
	return out
}

// verify looks at what a reset has brought about.
func (p *Settings) verify(ctx context.Context, s host.Server, w *wish) error {
	pending, err := w.setup.PendingBIOS(ctx)
	if err != nil {
		return err
	}
	since := p.r.Clock.Since(w.at.At)
	switch {
	case len(waiting(w.differ, pending)) > 0:
		switch {
		case p.r.Clock.Since(w.at.Began) > applyLimit:
			return p.fail(ctx, w, nil)
		case s.System.Power == bmc.Off, since > resetAgain:
			return p.start(ctx, s, w)
		}
		return nil
	case since < applyGrace:
		return nil
	case w.at.Round >= rounds || slices.Equal(w.at.Names, slices.Sorted(maps.Keys(w.differ))):
		return p.fail(ctx, w, nil)
	}
	w.at.Round, w.at.Reset, w.at.Names = w.at.Round+1, false, slices.Sorted(maps.Keys(w.differ))
	if err := p.r.save(ctx, w.hfs, w.at); err != nil {
		return err
	}
	return p.write(ctx, s, w)
}

// fail ends an attempt, and tells attribute by attribute what is not as wanted.
func (p *Settings) fail(ctx context.Context, w *wish, refused *bmc.SettingsError) error {
	var told []string
	for _, name := range slices.Sorted(maps.Keys(w.differ)) {
		one := fmt.Sprintf("%s is %s, not %s", name, text(w.bios.Settings[name]), text(w.differ[name]))
		why := w.bios.Failed[name]
		if refused != nil && refused.Refused[name] != "" {
			why = refused.Refused[name]
		}
		if why != "" {
			one += " (" + why + ")"
		}
		told = append(told, one)
	}
	w.at.Error = "BIOS settings not applied: " + strings.Join(told, "; ")
	return p.r.save(ctx, w.hfs, w.at)
}
