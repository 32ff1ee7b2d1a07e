package bmctest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Verb names a method of bmc.Client, or Open.
type Verb string

// The verbs: one per method.
const (
	Open        Verb = "Open"
	ReadSystem  Verb = "System"
	SetPower    Verb = "SetPower"
	SetBoot     Verb = "SetBoot"
	Identify    Verb = "Identify"
	ReadLog     Verb = "Log"
	ClearLog    Verb = "ClearLog"
	ReadSensors Verb = "Sensors"
	ReadMedia   Verb = "Media"
	InsertMedia Verb = "InsertMedia"
	EjectMedia  Verb = "EjectMedia"
)

// Call is one call of a verb, with its argument.
type Call struct {
	Verb  Verb
	Power bmc.PowerAction
	Boot  bmc.Boot
	On    bool // argument of Identify
	Image string
}

// verbs lists all verbs.
var verbs = []Verb{
	Open, ReadSystem, SetPower, SetBoot, Identify, ReadLog, ClearLog, ReadSensors, ReadMedia, InsertMedia, EjectMedia,
}

// Fake is a BMC and its system in memory. It is a bmc.Client itself, and has an
// Open for tests of logins. The zero Fake is off, has no media, accepts every
// account and answers at once. It is safe for concurrent use once its fields are
// set.
type Fake struct {
	// Credentials is the account that Open and its clients accept; the zero value
	// accepts every account.
	Credentials bmc.Credentials
	// Path is the path of the system; Open accepts it and the empty path. If it is
	// "", Open accepts any.
	Path string
	// SelfSigned makes Open require RootCAs or Insecure for an address with TLS.
	SelfSigned bool
	// Slow leaves the power at PoweringOn or PoweringOff until Settle.
	Slow bool
	// Deaf makes the operating system ignore a soft power-off.
	Deaf bool
	// Stuck makes the BMC accept power actions and ignore them.
	Stuck bool
	// NoEvents makes the BMC one without an event service, such as IPMI's.
	NoEvents bool
	// NoMedia makes the BMC one without virtual media, such as IPMI's.
	NoMedia bool
	// HTTPSOnly makes the BMC fetch images by HTTPS only.
	HTTPSOnly bool

	mu       sync.Mutex
	system   bmc.System
	media    bmc.Media
	booted   string // image of the last boot
	log      []bmc.Entry
	logged   int // number of entries so far
	sensors  []bmc.Sensor
	failures map[Verb]*failure
	stall    *stall
	calls    []Call
	firmware *Firmware // nil: no settings and no components
	hardware *bmc.Inventory

	subscriptions []bmc.Subscription
	subscribed    int // number of subscriptions so far
}

type failure struct {
	err  error
	left int // number of calls that will fail; negative for all
}

type stall struct {
	arrived chan struct{}
	resume  chan struct{}
}

var _ bmc.Client = (*Fake)(nil)

// Fail makes every call of a verb fail with err. A nil err ends that.
func (f *Fake) Fail(v Verb, err error) { f.fail(v, err, -1) }

// FailNext makes the next call of a verb fail with err.
func (f *Fake) FailNext(v Verb, err error) { f.fail(v, err, 1) }

func (f *Fake) fail(v Verb, err error, calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures == nil {
		f.failures = make(map[Verb]*failure)
	}
	f.failures[v] = &failure{err: err, left: calls}
	if err == nil {
		delete(f.failures, v)
	}
}

// Plug undoes Unplug and every other failure.
func (f *Fake) Plug() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = nil
}

// Unplug makes every verb fail with bmc.ErrUnreachable.
func (f *Fake) Unplug() {
	for _, v := range slices.Concat(verbs, firmwareVerbs, subscriberVerbs, []Verb{ReadInventory}) {
		f.Fail(v, fmt.Errorf("bmctest: %w", bmc.ErrUnreachable))
	}
}

// Stall makes calls block until resume. arrived receives a value with the first
// call.
func (f *Fake) Stall() (arrived <-chan struct{}, resume func()) {
	s := &stall{arrived: make(chan struct{}, 1), resume: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stall = s
	return s.arrived, sync.OnceFunc(func() {
		f.mu.Lock()
		f.stall = nil
		f.mu.Unlock()
		close(s.resume)
	})
}

// Calls returns the calls so far, without failed Opens.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// Forget empties Calls.
func (f *Fake) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

// SetIdentity sets the result of System, except for power, light and boot override.
func (f *Fake) SetIdentity(s bmc.System) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Power, s.Boot, s.Identify = f.system.Power, f.system.Boot, f.system.Identify
	f.system = s
}

// SetSensors sets the result of Sensors.
func (f *Fake) SetSensors(s ...bmc.Sensor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sensors = s
}

// Record adds an entry to the log and gives it an ID.
func (f *Fake) Record(e bmc.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logged++
	e.ID = strconv.Itoa(f.logged)
	f.log = append(f.log, e)
}

// Press changes the power like the button on the front panel.
func (f *Fake) Press(p bmc.Power) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.system.Power = p
	f.boot(p)
}

// Lose empties the virtual CD drive, as a reset of the BMC does.
func (f *Fake) Lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.media = bmc.Media{}
}

// Booted returns the image that the system booted last; "" if it booted from
// another device.
func (f *Fake) Booted() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.booted
}

// Stick sets Stuck.
func (f *Fake) Stick(stuck bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Stuck = stuck
}

// Settle lets a Slow system reach its power state.
func (f *Fake) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.system.Power {
	case bmc.PoweringOn:
		f.system.Power = bmc.On
	case bmc.PoweringOff:
		f.system.Power = bmc.Off
	}
}

// Now returns the state of the system and its drive, without failures and stalls.
func (f *Fake) Now() (bmc.System, bmc.Media) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view(), f.media
}

// SetCredentials changes the account of the BMC.
func (f *Fake) SetCredentials(c bmc.Credentials) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Credentials = c
}

// Open implements bmc.Open.
func (f *Fake) Open(ctx context.Context, c bmc.Config) (bmc.Client, error) {
	if err := f.enter(ctx, Call{Verb: Open}); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	switch {
	case f.SelfSigned && c.Address.TLS && !c.Insecure && c.RootCAs == nil:
		return nil, fmt.Errorf("bmctest: %w", bmc.ErrUntrusted)
	case !f.accepts(c.Credentials):
		return nil, fmt.Errorf("bmctest: %w", bmc.ErrUnauthorized)
	case f.Path != "" && c.Address.Path != "" && c.Address.Path != f.Path:
		return nil, fmt.Errorf("bmctest: %w: %s", bmc.ErrNoSystem, c.Address.Path)
	}
	f.calls = append(f.calls, Call{Verb: Open})
	return &login{fake: f, credentials: c.Credentials}, nil
}

func (f *Fake) accepts(c bmc.Credentials) bool {
	return f.Credentials == bmc.Credentials{} || f.Credentials == c
}

// enter waits while the BMC is stalled, and fails if the verb is set to fail. On
// success it returns with mu held and has recorded the call; it does not record an
// Open, which may yet fail.
func (f *Fake) enter(ctx context.Context, call Call) error {
	f.mu.Lock()
	for f.stall != nil {
		s := f.stall
		f.mu.Unlock()
		select {
		case s.arrived <- struct{}{}:
		default:
		}
		select {
		case <-s.resume:
		case <-ctx.Done():
			return fmt.Errorf("bmctest: %w", ctx.Err())
		}
		f.mu.Lock()
	}
	if err := ctx.Err(); err != nil {
		f.mu.Unlock()
		return fmt.Errorf("bmctest: %w", err)
	}
	if call.Verb != Open {
		f.calls = append(f.calls, call)
	}
	if fail := f.failures[call.Verb]; fail != nil && fail.left != 0 {
		fail.left--
		f.mu.Unlock()
		return fail.err
	}
	return nil
}

func (f *Fake) view() bmc.System {
	s := f.system
	if s.ID == "" {
		s.ID = "fake"
	}
	if s.Power == "" {
		s.Power = bmc.Off
	}
	return s
}

// System implements bmc.Client.
func (f *Fake) System(ctx context.Context) (bmc.System, error) {
	if err := f.enter(ctx, Call{Verb: ReadSystem}); err != nil {
		return bmc.System{}, err
	}
	defer f.mu.Unlock()
	return f.view(), nil
}

// boot starts the system and uses up an override for one boot.
func (f *Fake) boot(p bmc.Power) {
	if p != bmc.On && p != bmc.PoweringOn {
		return
	}
	f.booted = ""
	if f.system.Boot.Device == bmc.BootCD {
		f.booted = f.media.Image
	}
	if !f.system.Boot.Persistent {
		f.system.Boot = bmc.Boot{Mode: f.system.Boot.Mode}
	}
	if f.firmware != nil && (p == bmc.On || p == bmc.PoweringOn) {
		f.firmware.boot()
	}
}

// SetPower implements bmc.Client.
func (f *Fake) SetPower(ctx context.Context, a bmc.PowerAction) error {
	if err := f.enter(ctx, Call{Verb: SetPower, Power: a}); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if f.Stuck {
		return nil
	}
	was := f.view().Power
	off := was == bmc.Off || was == bmc.PoweringOff
	to, via := bmc.On, bmc.PoweringOn
	switch {
	case a == bmc.PowerOn && !off, a == bmc.PowerSoftOff && (off || f.Deaf), a == bmc.PowerOff && was == bmc.Off:
		return nil
	case a == bmc.PowerOff:
		to, via = bmc.Off, bmc.Off
	case a == bmc.PowerSoftOff:
		to, via = bmc.Off, bmc.PoweringOff
	case a != bmc.PowerOn && a != bmc.PowerReset && a != bmc.PowerCycle:
		return fmt.Errorf("bmctest: power %q: %w", a, bmc.ErrUnsupported)
	}
	f.system.Power = to
	if f.Slow {
		f.system.Power = via
	}
	f.boot(to)
	return nil
}

// SetBoot implements bmc.Client.
func (f *Fake) SetBoot(ctx context.Context, b bmc.Boot) error {
	if err := f.enter(ctx, Call{Verb: SetBoot, Boot: b}); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if b.Mode == bmc.BootModeAny {
		b.Mode = f.system.Boot.Mode
	}
	if b.Mode == bmc.UEFISecure {
		b.Mode = bmc.UEFI
	}
	if b.Device == bmc.BootNone {
		b.Persistent = false
	}
	f.system.Boot = b
	return nil
}

// Identify implements bmc.Client.
func (f *Fake) Identify(ctx context.Context, on bool) error {
	if err := f.enter(ctx, Call{Verb: Identify, On: on}); err != nil {
		return err
	}
	defer f.mu.Unlock()
	f.system.Identify = on
	return nil
}

// Log implements bmc.Client.
func (f *Fake) Log(ctx context.Context) ([]bmc.Entry, error) {
	if err := f.enter(ctx, Call{Verb: ReadLog}); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return slices.Clone(f.log), nil
}

// ClearLog implements bmc.Client.
func (f *Fake) ClearLog(ctx context.Context) error {
	if err := f.enter(ctx, Call{Verb: ClearLog}); err != nil {
		return err
	}
	defer f.mu.Unlock()
	f.log = nil
	return nil
}

// Sensors implements bmc.Client.
func (f *Fake) Sensors(ctx context.Context) ([]bmc.Sensor, error) {
	if err := f.enter(ctx, Call{Verb: ReadSensors}); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return slices.Clone(f.sensors), nil
}

// Media implements bmc.Client.
func (f *Fake) Media(ctx context.Context) (bmc.Media, error) {
	if err := f.enter(ctx, Call{Verb: ReadMedia}); err != nil {
		return bmc.Media{}, err
	}
	defer f.mu.Unlock()
	return f.media, f.drive(ReadMedia)
}

// InsertMedia implements bmc.Client.
func (f *Fake) InsertMedia(ctx context.Context, urls ...string) error {
	url := f.takes(urls)
	if err := f.enter(ctx, Call{Verb: InsertMedia, Image: url}); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if err := f.drive(InsertMedia); err != nil {
		return err
	}
	if url == "" {
		return fmt.Errorf("bmctest: %w", &bmc.UnsupportedError{Verb: string(InsertMedia), Why: "it fetches by HTTPS alone"})
	}
	f.media = bmc.Media{Image: url, Inserted: true}
	return nil
}

// EjectMedia implements bmc.Client.
func (f *Fake) EjectMedia(ctx context.Context) error {
	if err := f.enter(ctx, Call{Verb: EjectMedia}); err != nil {
		return err
	}
	defer f.mu.Unlock()
	f.media = bmc.Media{}
	return f.drive(EjectMedia)
}

// takes returns the first URL that the BMC can fetch; "" if there is none.
func (f *Fake) takes(urls []string) string {
	for _, url := range urls {
		if !f.HTTPSOnly || strings.HasPrefix(url, "https:") {
			return url
		}
	}
	return ""
}

func (f *Fake) drive(v Verb) error {
	if f.NoMedia {
		return fmt.Errorf("bmctest: %w", &bmc.UnsupportedError{Verb: string(v), Why: "it has no virtual media"})
	}
	return nil
}

// Close implements bmc.Client.
func (f *Fake) Close() {}
