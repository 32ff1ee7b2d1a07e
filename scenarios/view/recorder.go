package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/exchange"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
)

// Bounds of a recording, and its pace in real time.
const (
	recordingPace = 50 * time.Millisecond
	flushPace     = 20        // in recordingPace
	maxRecording  = 256 << 20 // bytes of its lines
	maxUnrecorded = 10_000    // exchanges and hosts that wait to be written
)

// Line is a line of a recording: something that was so, or happened, at a time of the lab.
// The kinds are those of the page's events; a line "server" has the fields that have changed
// of the server that it names, "objects" its Kubernetes objects, "console" the output of its serial console, "snapshot" is a Moment, and
// "end" ends a recording that has become too large.
type Line struct {
	At   time.Time       `json:"at"`
	Kind string          `json:"kind"`
	Host string          `json:"host,omitempty"`
	Data json.RawMessage `json:"data"`
}

// recorder writes a recording.
type recorder struct {
	s      *Server
	to     io.Writer
	beside string // directory
	bytes  int

	version uint64                                // version of the tiles that are written
	looked  uint64                                // number of the look whose servers are written
	fields  map[string]map[string]json.RawMessage // fields of servers, as written
	console map[string]uint64                     // number of the next byte of each server's console
	mark    journal.Mark
	state   []byte // state of the lab, as written

	mu        sync.Mutex
	exchanges []exchange.Exchange
	hosts     []string // whose objects have changed
	moments   []Moment
	lost      int // exchanges, objects and snapshots beyond the bounds
}

// Recording is how a lab is recorded.
type Recording struct {
	To io.Writer
	// Beside is the directory that the names of snapshots in the recording are relative to.
	Beside string
	// Snapshots is a directory that gets a snapshot of the lab at the beginning and at the end
	// of the recording; "" for none. Snapshots have all secrets of the lab.
	Snapshots string
}

// errRecordingFull ends a recording that has reached its bound.
var errRecordingFull = errors.New("the recording has reached its bound")

// flusher is a writer that buffers, as a gzip.Writer does.
type flusher interface{ Flush() error }

// Record writes what happens in the lab as lines of JSON until ctx ends or the recording
// reaches its bound: states of servers and objects, the journal, and the bodies of requests
// without secrets. Snapshots that are saved meanwhile are named in it. A lab is recorded to
// one writer at a time.
func (s *Server) Record(ctx context.Context, o Recording) error {
	to := o.To
	r := &recorder{s: s, to: to, beside: o.Beside, fields: map[string]map[string]json.RawMessage{}, console: map[string]uint64{}}
	defer s.c.Rack.WatchRequests(r.keepExchange)()
	defer s.c.Rack.WatchSnapshots(r.keepMoment)()
	if err := o.prepare(); err != nil {
		return err
	}
	s.save(ctx, o, startSnapshot)
	s.rack.follow(r.keepObject)
	defer s.rack.follow(nil)
	s.watchObjects()
	tick := s.c.Clock.NewTicker(recordingPace)
	defer tick.Stop()
	for n := 0; ; n++ {
		err := r.write(ctx)
		if f, ok := to.(flusher); ok && err == nil && n%flushPace == 0 { // a killed lab loses about a second
			err = f.Flush()
		}
		switch {
		case errors.Is(err, errRecordingFull):
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			ctx := context.WithoutCancel(ctx)
			if err := r.write(ctx); err != nil { // the objects as they are at the snapshot
				return err
			}
			s.save(ctx, o, endSnapshot)
			return r.write(ctx)
		case <-tick.C():
		}
	}
}

func (r *recorder) keepExchange(x exchange.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.exchanges) >= maxUnrecorded {
		r.lost++
		return
	}
	r.exchanges = append(r.exchanges, x)
}

func (r *recorder) keepObject(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.hosts) >= maxUnrecorded {
		r.lost++
		return
	}
	r.hosts = append(r.hosts, host)
}

// write writes the changes since its last call.
func (r *recorder) write(ctx context.Context) error {
	now := r.s.c.Rack.Clock().Now().UTC()
	state, err := json.Marshal(r.s.labState())
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	if !bytes.Equal(state, r.state) {
		r.state = state
		if err := r.line(now, "lab", "", r.s.labState()); err != nil {
			return err
		}
	}
	if tiles, version := r.s.rack.changes(r.version); len(tiles) > 0 {
		r.version = version
		if err := r.line(now, "tiles", "", tiles); err != nil {
			return err
		}
	}
	hosts, looked := r.s.rack.touched(r.looked)
	r.looked = looked
	for _, h := range hosts {
		if err := r.server(now, h); err != nil {
			return err
		}
		if err := r.output(now, h); err != nil {
			return err
		}
	}
	entries, mark, err := r.s.c.Rack.Journal().Select(journal.Query{After: r.mark})
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	r.mark = mark
	if len(entries) > 0 {
		if err := r.line(now, "journal", "", entries); err != nil {
			return err
		}
	}
	r.mu.Lock()
	exchanges, changed, moments := r.exchanges, r.hosts, r.moments
	r.exchanges, r.hosts, r.moments = nil, nil, nil
	r.mu.Unlock()
	for _, m := range moments {
		if err := r.line(m.At, momentKind, "", m); err != nil {
			return err
		}
	}
	if len(exchanges) > 0 {
		if err := r.line(now, "exchanges", "", exchanges); err != nil {
			return err
		}
	}
	return r.objects(ctx, changed)
}

// objects writes the objects of hosts, each once, at the time after they were read: a snapshot
// of that time or later is of the same state or a later one.
func (r *recorder) objects(ctx context.Context, hosts []string) error {
	written := map[string]bool{}
	for _, host := range hosts {
		if written[host] || r.s.c.Objects == nil {
			continue
		}
		written[host] = true
		all, err := r.s.c.Objects.Describe(ctx, host)
		if err != nil {
			r.s.c.Log.Debug("objects not recorded", "host", host, "err", err)
			continue
		}
		now := r.s.c.Rack.Clock().Now().UTC()
		if err := r.line(now, "objects", host, append([]Described{}, all...)); err != nil {
			return err
		}
	}
	return nil
}

// server writes the fields of a server that have changed.
func (r *recorder) server(now time.Time, h *rack.Host) error {
	b, err := json.Marshal(r.s.serverOf(h))
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	was := r.fields[h.Name()]
	r.fields[h.Name()] = fields
	changed := map[string]json.RawMessage{}
	for name, value := range fields {
		if !bytes.Equal(value, was[name]) {
			changed[name] = value
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return r.line(now, "server", h.Name(), changed)
}

// output writes the output of a server's serial console.
func (r *recorder) output(now time.Time, h *rack.Host) error {
	text, at := h.Machine().Console.Since(r.console[h.Name()])
	if len(text) == 0 {
		return nil
	}
	r.console[h.Name()] = at + uint64(len(text))
	return r.line(now, "console", h.Name(), map[string]any{"at": at, "text": text})
}

// line writes a line, or the end when there is no room.
func (r *recorder) line(at time.Time, kind, host string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	b, err := json.Marshal(Line{At: at, Kind: kind, Host: host, Data: data})
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	full := r.bytes+len(b) > maxRecording
	if full {
		if b, err = json.Marshal(Line{At: at, Kind: "end", Data: json.RawMessage(fmt.Sprint(maxRecording))}); err != nil {
			return fmt.Errorf("recording: %w", err)
		}
	}
	r.bytes += len(b) + 1
	if _, err := r.to.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	if full {
		return errRecordingFull
	}
	return nil
}
