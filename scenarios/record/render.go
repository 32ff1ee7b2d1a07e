package record

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/scenarios/capture"
)

// renderStart is the lab time at which a rendering starts.
var renderStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// render serves a model with a dialect, in the power state of the server, and
// captures it. The differences from the server's capture are what the dialect
// still lacks.
func render(ctx context.Context, p *machine.Profile, registry []byte, f *file.File, on bool) (_ *capture.Capture, err error) {
	r := &Recording{Name: p.Name, Registry: registry}
	served := *p
	served.Dialect = f.Name
	if r.Profile, err = yamlfile.Write(&served); err != nil {
		return nil, err
	}
	if r.Dialect, err = file.Format(f); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "metalab-record-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	def := rackfile.Default(1)
	def.Hosts[0].Profile = p.Name
	now := clock.NewVirtual(renderStart)
	l, err := rack.Open(ctx, rack.Config{Dir: dir, Rack: &def, Clock: now, Profiles: r.Files(), Listen: "lo:0"})
	if err != nil {
		return nil, fmt.Errorf("the derived model is not valid: %w", err)
	}
	defer l.Close()
	serving, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = now.Run(serving) })
	running.Go(func() { _ = l.Serve(serving) })
	defer running.Wait()
	defer stop()
	h := l.Hosts()[0]
	if on {
		if err := h.Apply(ctx, machine.Reset{Kind: machine.ResetOn}); err != nil {
			return nil, err
		}
	}
	if err := now.Walk(ctx, 5*time.Minute); err != nil {
		return nil, err
	}
	admin, _ := h.Admin()
	c, err := capture.Take(ctx, capture.Config{URL: h.URL(), Username: admin.Name, Password: admin.Password, CAs: l.CAs(), Parallel: 2, MaxRequests: 20000})
	if err != nil {
		return nil, err
	}
	c.Scrub()
	return c, nil
}

// expandIDs replaces {system}, {manager} and {chassis} in a pattern by the
// record's IDs.
func expandIDs(text string, r *dialect.Record) string { return idReplacer(r).Replace(text) }
