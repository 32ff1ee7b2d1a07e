package lab

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// Record writes a recording of the lab until ctx or the lab ends: see view.Server.Record.
func (l *Lab) Record(ctx context.Context, r view.Recording) error { return l.view.Record(ctx, r) }

// SnapshotsSuffix is what the directory with the snapshots of a recording has after the name
// of the recording.
const SnapshotsSuffix = ".snapshots"

// recordedSnapshots returns the directory of the recording's snapshots; "" for none.
func (c *Config) recordedSnapshots() string {
	if !c.RecordingSnapshots {
		return ""
	}
	return c.Recording + SnapshotsSuffix
}

// startView serves the lab's page, as soon as the control API answers.
func (l *Lab) startView(ctx context.Context) error {
	listener, err := listenWhereBefore(ctx, l.ports.View, l.cfg.Log)
	if err != nil {
		return fmt.Errorf("the lab's page: %w", err)
	}
	var shards func() []control.Shard
	if l.cfg.Fleet != nil {
		shards = l.cfg.Fleet.Shards
	}
	s, err := view.New(view.Config{
		Rack: l.rack, Shards: shards, Actions: control.NewClient(l.cfg.Dir), Objects: objects{l}, Log: l.cfg.Log, Status: l.info, Metrics: l.metricsHandler(),
	})
	if err != nil {
		listener.Close()
		return err
	}
	l.view = s
	l.ports.View = listener.Addr().String()
	l.mu.Lock()
	l.page = "http://" + l.ports.View
	l.mu.Unlock()
	l.run(func(ctx context.Context) error { return s.Serve(ctx, listener) })
	if l.cfg.Recording == "" {
		return nil
	}
	f, err := os.OpenFile(l.cfg.Recording, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the recording: %w", err)
	}
	z := gzip.NewWriter(f)
	r := view.Recording{To: z, Beside: filepath.Dir(l.cfg.Recording)}
	r.Snapshots = l.cfg.recordedSnapshots()
	l.goroutines.Go(func() {
		if err := errors.Join(s.Record(l.ctx, r), z.Close(), f.Close()); err != nil {
			l.cfg.Log.Warn("the recording is not complete", "err", err)
		}
	})
	return nil
}
