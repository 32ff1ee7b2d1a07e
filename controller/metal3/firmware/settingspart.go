package firmware

import (
	"cmp"
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
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

const (
	// rounds bounds the resets for settings that depend on each other.
	rounds = 5
	// applyLimit bounds how long settings may be pending after the first reset.
	applyLimit = 45 * time.Minute
	// resetAgain is the time after which a restart without effect is repeated. It
	// is longer than any POST that BMCs do not report.
	resetAgain = 15 * time.Minute
	// applyGrace bounds the time from the end of a POST until the BMC shows the
	// settings that the POST has applied.
	applyGrace = time.Minute
)

// Settings is the host.Part for BIOS settings.
type Settings struct{ r *Reconciler }

// Settings returns the host.Part for BIOS settings.
func (r *Reconciler) Settings() *Settings { return &Settings{r} }

var _ host.Servicer = (*Settings)(nil)

// Name implements host.Part.
func (*Settings) Name() string { return "BIOS" }

// settingsAttempt is the progress of an attempt at settings.
type settingsAttempt struct {
	Of    string    `json:"of"`              // digest of the wanted settings
	Round int       `json:"round"`           // counted from 1
	Names []string  `json:"names"`           // settings that differed when the round began
	Reset bool      `json:"reset,omitempty"` // the system was restarted for it, or is about to be
	Began time.Time `json:"began,omitzero"`  // time of the first restart
	At    time.Time `json:"at,omitzero"`     // time of the last restart
	Error string    `json:"error,omitempty"` // reason of a failure
}

// settingsWanted holds the wanted and the present settings of a host.
type settingsWanted struct {
	hfs     *metal3.HostFirmwareSettings // nil if there is none yet
	want    metal3.DesiredSettingsMap
	fields  map[string]string // those of want that a field of spec.firmware asks for, by name
	attempt *settingsAttempt  // nil if nothing is in progress
	bios    bmc.BIOS
	setup   bmc.Setup
	differ  bmc.Settings // values to write to the BMC
	stale   bool         // the specification has not been validated
	bad     string       // error of the specification; "" for none
}

// readWanted reads the specification of a host without its BMC.
func (p *Settings) readWanted(ctx context.Context, h *metal3.BareMetalHost) (*settingsWanted, error) {
	w := &settingsWanted{want: metal3.DesiredSettingsMap{}}
	named, fields, err := vendorFields(h)
	if err != nil {
		w.bad = err.Error()
	}
	maps.Copy(w.want, named)
	w.fields = fields
	var hfs metal3.HostFirmwareSettings
	err = p.r.read.Get(ctx, client.ObjectKeyFromObject(h), &hfs)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		w.stale = len(w.want) > 0 // the attempt is stored in the missing object
		return w, nil
	}
	w.hfs, w.attempt = &hfs, loadAttempt[settingsAttempt](&hfs)
	w.stale = !isObserved(hfs.Status.Conditions, hfs.Generation) && (len(hfs.Spec.Settings) > 0 || len(w.want) > 0)
	if isTrue(hfs.Status.Conditions, valid) {
		for name, v := range hfs.Spec.Settings { // names take precedence over the vendor-independent fields
			w.want[name] = v
			delete(w.fields, name)
		}
	}
	return w, nil
}

// compare reads the present settings.
func (p *Settings) compare(ctx context.Context, w *settingsWanted, c bmc.Client) error {
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
	w.setup, w.differ = s, changedSettings(w.want, w.bios)
	if w.bad == "" {
		w.bad = cmp.Or(w.lackingSettings(), w.lockedFields())
	}
	return nil
}

// digest identifies the wanted settings.
func (w *settingsWanted) digest() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(w.want)) {
		v := w.want[name]
		words = append(words, name+"="+v.String())
	}
	return digest(words...)
}

// Observe implements host.Part.
func (p *Settings) Observe(ctx context.Context, s host.Server) (phase.PartState, string, error) {
	h := s.Host
	w, err := p.readWanted(ctx, h)
	if err != nil {
		return "", "", err
	}
	fieldsChanged := !equality.Semantic.DeepEqual(h.Spec.Firmware, h.Status.Provisioning.Firmware) //nolint:staticcheck // the specification has it
	asked := w.hfs != nil && isChangePending(w.hfs.Status.Conditions)
	switch {
	case w.stale:
		return phase.PartStale, "", nil
	case fieldsChanged && w.bad != "":
		return phase.PartImpossible, w.bad, nil
	case fieldsChanged && (isIdle(h) || len(w.want) == 0):
		return phase.PartWanted, "", nil
	case isIdle(h) && (asked || w.attempt != nil):
		return phase.PartWanted, "", nil
	case isIdle(h), len(w.want) == 0 && w.attempt == nil && !asked:
		return phase.PartSettled, "", nil
	}
	if err := p.compare(ctx, w, s.Client); err != nil {
		return "", "", err
	}
	switch {
	case w.attempt != nil && w.attempt.Error != "" && w.attempt.Of == w.digest():
		return phase.PartFailed, w.attempt.Error, nil
	case w.bad != "" && len(w.want) > 0 && w.setup != nil && len(w.bios.Settings) == 0:
		return phase.PartFailed, w.bad, nil // the BMC may show its settings later
	case w.bad != "" && len(w.want) > 0:
		return phase.PartImpossible, w.bad, nil
	case fieldsChanged: // after the impossible settings: those are not begun again (B-53)
		return phase.PartWanted, "", nil
	case w.attempt == nil && len(w.differ) == 0 && !asked:
		return phase.PartSettled, "", nil
	case w.attempt == nil && len(w.differ) > 0, w.attempt != nil && w.attempt.Of != w.digest():
		return phase.PartWanted, "", nil
	}
	return phase.PartRunning, "", nil
}

// Begin implements host.Part. It copies the fields of the specification to the
// status, as upstream did.
func (p *Settings) Begin(h *metal3.BareMetalHost) {
	h.Status.Provisioning.Firmware = h.Spec.Firmware.DeepCopy() //nolint:staticcheck // the specification has it
}

// Reset implements host.Part.
func (p *Settings) Reset(h *metal3.BareMetalHost) {
	h.Status.Provisioning.Firmware = nil
}

// Due implements host.Servicer (B-220).
func (p *Settings) Due(ctx context.Context, h *metal3.BareMetalHost) (bool, error) {
	policy, err := p.r.policy(ctx, h)
	return policy.FirmwareSettings == metal3.HostUpdatePolicyOnReboot, err
}

// Step implements host.Part.
func (p *Settings) Step(ctx context.Context, s host.Server) error {
	w, err := p.readWanted(ctx, s.Host)
	if err != nil || w.hfs == nil || w.bad != "" {
		return err
	}
	if err := p.compare(ctx, w, s.Client); err != nil || w.bad != "" {
		return err
	}
	if s.System.POST { // a POST must not be interrupted, and its results do not show yet
		return nil
	}
	if w.attempt != nil && w.attempt.Of != w.digest() {
		if err := p.withdrawPending(ctx, w); err != nil {
			return err
		}
	}
	if len(w.differ) == 0 {
		return p.finishAttempt(ctx, s, w)
	}
	if w.attempt == nil || w.attempt.Error != "" || w.attempt.Of != w.digest() {
		w.attempt = &settingsAttempt{Of: w.digest(), Round: 1, Names: slices.Sorted(maps.Keys(w.differ))}
		if err := p.r.saveAttempt(ctx, w.hfs, w.attempt); err != nil {
			return err
		}
	}
	if !w.attempt.Reset {
		return p.write(ctx, s, w)
	}
	return p.verify(ctx, s, w)
}

// finishAttempt ends a successful attempt: it updates the status first and then
// removes the attempt.
func (p *Settings) finishAttempt(ctx context.Context, s host.Server, w *settingsWanted) error {
	if err := p.r.refreshSettings(ctx, s.Host, w.hfs, s.Client); err != nil {
		return err
	}
	if w.attempt == nil {
		return nil
	}
	return p.r.saveAttempt(ctx, w.hfs, nil)
}

// withdrawPending reverts pending settings of an attempt at something else.
func (p *Settings) withdrawPending(ctx context.Context, w *settingsWanted) error {
	pending, err := w.setup.PendingBIOS(ctx)
	if unsupported(err) {
		return nil
	}
	if err != nil {
		return err
	}
	back := bmc.Settings{}
	for _, name := range w.attempt.Names {
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
		return nil // they were applied and changed afterwards
	}
	return err
}

// write writes the settings and resets the system to apply them. The BMC may
// accept settings that it refuses once others are applied.
func (p *Settings) write(ctx context.Context, s host.Server, w *settingsWanted) error {
	pending, err := w.setup.PendingBIOS(ctx)
	if err != nil {
		return err
	}
	ask := w.missing(pending)
	if len(ask) > 0 {
		err := w.setup.SetBIOS(ctx, ask)
		refused := new(bmc.SettingsError)
		if errors.As(err, &refused) {
			for _, name := range refused.Names() {
				delete(ask, name)
			}
			if len(ask) == 0 && len(w.pendingAsWanted(pending)) == 0 {
				return p.failAttempt(ctx, w, refused)
			}
			err = nil
			if len(ask) > 0 {
				err = w.setup.SetBIOS(ctx, ask)
			}
		}
		if errors.As(err, &refused) {
			return p.failAttempt(ctx, w, refused)
		}
		if errors.Is(err, bmc.ErrPending) {
			w.attempt.Names, err = nil, nil // this round applies other settings
		}
		if err != nil {
			return err
		}
	}
	return p.start(ctx, s, w)
}

// start restarts the system.
func (p *Settings) start(ctx context.Context, s host.Server, w *settingsWanted) error {
	return advanceRestart(ctx, s.Client, s.System, func() error {
		now := p.r.Clock.Now().UTC()
		if !w.attempt.Reset {
			w.attempt.Began = now
		}
		w.attempt.Reset, w.attempt.At = true, now
		return p.r.saveAttempt(ctx, w.hfs, w.attempt)
	})
}

// missing returns the settings that the BMC must be asked for. Settings that others
// determine are left out, since BMCs refuse them: they follow when the others are applied.
func (w *settingsWanted) missing(pending bmc.Settings) bmc.Settings {
	ask, follow := bmc.Settings{}, bmc.Settings{}
	rules := w.bios.Registry.Rules(settled(w.want, w.bios))
	for name, v := range w.differ {
		if waits, ok := pending[name]; ok && w.same(name, waits, v) {
			continue
		}
		if _, forced := rules.Forced(name); forced && rules.Attribute(name).ReadOnly {
			follow[name] = v
			continue
		}
		ask[name] = v
	}
	if len(ask) == 0 && len(w.pendingAsWanted(pending)) == 0 {
		return follow // nothing is there that they could follow: the BMC shall say why
	}
	return ask
}

// same reports whether two values of a setting are the same by its type.
func (w *settingsWanted) same(name string, x, y any) bool {
	return bmc.SameValue(w.bios.Registry.Attribute(name), x, y)
}

// pendingAsWanted returns the names of the pending settings that have the wanted
// value.
func (w *settingsWanted) pendingAsWanted(pending bmc.Settings) []string {
	var out []string
	for name, v := range w.differ {
		if value, ok := pending[name]; ok && w.same(name, value, v) {
			out = append(out, name)
		}
	}
	return out
}

// verify reads the result of a reset.
func (p *Settings) verify(ctx context.Context, s host.Server, w *settingsWanted) error {
	pending, err := w.setup.PendingBIOS(ctx)
	if err != nil {
		return err
	}
	since := p.r.Clock.Since(w.attempt.At)
	switch {
	case len(w.pendingAsWanted(pending)) > 0:
		switch {
		case p.r.Clock.Since(w.attempt.Began) > applyLimit:
			return p.failAttempt(ctx, w, nil)
		case s.System.Power == bmc.Off, since > resetAgain:
			return p.start(ctx, s, w)
		}
		return nil
	case since < applyGrace:
		return nil
	case w.attempt.Round >= rounds || slices.Equal(w.attempt.Names, slices.Sorted(maps.Keys(w.differ))):
		return p.failAttempt(ctx, w, nil)
	}
	w.attempt.Round, w.attempt.Reset, w.attempt.Names = w.attempt.Round+1, false, slices.Sorted(maps.Keys(w.differ))
	if err := p.r.saveAttempt(ctx, w.hfs, w.attempt); err != nil {
		return err
	}
	return p.write(ctx, s, w)
}

// failAttempt ends an attempt, and reports each attribute that is not as wanted.
func (p *Settings) failAttempt(ctx context.Context, w *settingsWanted, refused *bmc.SettingsError) error {
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(w.differ)) {
		one := fmt.Sprintf("%s is %s, not %s", w.called(name), bmc.FormatValue(w.bios.Settings[name]), bmc.FormatValue(w.differ[name]))
		why := w.bios.Failed[name]
		if refused != nil && refused.Refused[name] != "" {
			why = refused.Refused[name]
		}
		if why != "" {
			one += " (" + why + ")"
		}
		reasons = append(reasons, one)
	}
	w.attempt.Error = "BIOS settings not applied: " + strings.Join(reasons, "; ")
	return p.r.saveAttempt(ctx, w.hfs, w.attempt)
}
