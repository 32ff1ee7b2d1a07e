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
func (w *World) Record(ctx context.Context, r view.Recording) error { return w.view.Record(ctx, r) }

// SnapshotsSuffix is what the directory with the snapshots of a recording has after the name
// of the recording.
const SnapshotsSuffix = ".snapshots"

// startView serves the lab's page, as soon as the control API answers.
func (w *World) startView(ctx context.Context) error {
	l, err := listenWhereBefore(ctx, w.ports.View, w.cfg.Log)
	if err != nil {
		return fmt.Errorf("world: the lab's page: %w", err)
	}
	var shards func() []control.Shard
	if w.cfg.Fleet != nil {
		shards = w.cfg.Fleet.Shards
	}
	s, err := view.New(view.Config{
		Lab: w.lab, Shards: shards, Actions: control.NewClient(w.cfg.Dir), Objects: objects{w}, Log: w.cfg.Log, Status: w.info, Metrics: w.metricsHandler(),
	})
	if err != nil {
		l.Close()
		return err
	}
	w.view = s
	w.ports.View = l.Addr().String()
	w.mu.Lock()
	w.page = "http://" + w.ports.View
	w.mu.Unlock()
	w.run(func(ctx context.Context) error { return s.Serve(ctx, l) })
	if w.cfg.Recording == "" {
		return nil
	}
	f, err := os.OpenFile(w.cfg.Recording, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("world: the recording: %w", err)
	}
	z := gzip.NewWriter(f)
	r := view.Recording{To: z, Beside: filepath.Dir(w.cfg.Recording)}
	if w.cfg.RecordingSnapshots {
		r.Snapshots = w.cfg.Recording + SnapshotsSuffix
	}
	w.goroutines.Go(func() {
		if err := errors.Join(s.Record(w.ctx, r), z.Close(), f.Close()); err != nil {
			w.cfg.Log.Warn("the recording is not complete", "err", err)
		}
	})
	return nil
}
