package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	labclock "github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/clientclock"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// Labs are the labs of a suite, one for each model and feature: a lab starts in 100 ms, and the
// suite has hundreds of scenarios.
type Labs struct {
	t       testing.TB
	archive fs.FS // DMTF's schemas and profiles; nil: the suite needs none
	mu      sync.Mutex
	labs    map[string]*emulated
}

// NewLabs returns the labs of a suite. They run until its test ends. The archive is that of
// DMTF's schemas and profiles, for the scenarios that ask for it.
func NewLabs(t testing.TB, archive fs.FS) *Labs {
	return &Labs{t: t, archive: archive, labs: map[string]*emulated{}}
}

// emulated is the lab of one server of a model.
type emulated struct {
	t         testing.TB
	lab       *racktest.Rack
	conf      conformance.Config
	media     *media
	starts    *starts
	baselines map[string]map[string]conformance.Result // by level and checks
}

// of returns the lab of a model for a feature: features that restart servers do
// not disturb the others.
func (l *Labs) of(profile, feature string) *emulated {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := profile + " " + feature
	if e := l.labs[key]; e != nil {
		return e
	}
	r := rackfile.Default(1)
	r.Hosts[0].Profile = profile
	e := &emulated{t: l.t, media: newMedia(l.t), baselines: map[string]map[string]conformance.Result{}}
	e.starts = &starts{heard: make(chan machine.Source, 64), ctx: l.t.Context()}
	c := labclock.NewJumping(time.Now().UTC().Truncate(time.Second))
	e.lab = racktest.Start(l.t, rack.Config{Rack: &r, Clock: c, Events: e.starts.answer})
	h := e.lab.First()
	user, password := e.lab.Credentials(h)
	e.conf = conformance.Config{
		URL: h.URL(), Username: user, Password: password, CAs: e.lab.CAs(), Clock: clientclock.New(c), Rate: 1e6,
		Serial: h.Machine().Identity.Serial, LoseData: true,
	}
	e.conf.Media, e.conf.Boot, e.conf.DHCP, e.conf.Soak = e.media, e, e, 30*time.Minute
	var err error
	if e.media.firmware, err = firmwareOf("2.3.1"); err == nil {
		e.conf.Firmware, err = e.media.URL("http", firmwareName)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if at, ok := h.IPMI(); ok {
		e.conf.IPMI = at.String()
	}
	l.labs[key] = e
	return e
}

// journal opens a journal of writes, which the test removes.
func (e *emulated) journal() (*conformance.Journal, error) {
	return conformance.OpenJournal(filepath.Join(e.t.TempDir(), "restore.jsonl"))
}

// starts lets a server boot the first source that it tries, and tells which that
// was. A source of UEFI HTTP is fetched first.
type starts struct {
	ctx   context.Context
	heard chan machine.Source
	blank atomic.Bool // nothing that the server tries is bootable
}

func (s *starts) answer(h *rack.Host, ev machine.Event) {
	try, ok := ev.(machine.BootAttempted)
	if !ok {
		return
	}
	if try.Source.URI != "" {
		req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, try.Source.URI, nil)
		if err == nil {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}
	select {
	case s.heard <- try.Source:
	default: // nobody listens
	}
	if s.blank.Load() {
		_ = h.Apply(s.ctx, machine.NotBootable{Boot: try.Boot, Source: try.Source}) // as below
		return
	}
	_ = h.Apply(s.ctx, machine.Loaded{Boot: try.Boot, Source: try.Source, Name: "test"}) // fails when the server restarts meanwhile
}

// errSilent means that the server has booted something else.
var errSilent = errors.New("the server has booted another source")

// Image is conformance.BootMedia: the image phones home when the server boots
// virtual media with a medium in it.
func (e *emulated) Image(_ context.Context, scheme string) (string, func(context.Context) (conformance.BootReport, error), error) {
	url, err := e.media.URL(scheme, "boot.iso")
	e.drain()
	return url, func(ctx context.Context) (conformance.BootReport, error) {
		if err := e.boots(ctx, func(s machine.Source) bool {
			return (s.Kind == machine.Cd || s.Kind == machine.UsbCd) && s.Device == ""
		}); err != nil {
			<-ctx.Done() // an image that is not booted is silent
			return conformance.BootReport{}, err
		}
		var r conformance.BootReport
		for _, d := range e.lab.First().Drives() {
			r.Disks = append(r.Disks, conformance.Disk{Serial: d.Serial, WWN: d.WWN})
		}
		return r, nil
	}, err
}

func (e *emulated) drain() {
	for {
		select {
		case <-e.starts.heard:
		default:
			return
		}
	}
}

// boots waits for the next boot, and returns nil when it is the wanted one.
func (e *emulated) boots(ctx context.Context, wanted func(machine.Source) bool) error {
	select {
	case s := <-e.starts.heard:
		if wanted(s) {
			return nil
		}
		return fmt.Errorf("%w: %s %s", errSilent, s.Kind, s.Device)
	case <-ctx.Done():
		return ctx.Err()
	}
}
