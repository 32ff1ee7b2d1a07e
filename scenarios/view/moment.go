package view

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
)

// momentKind is the kind of the lines that name a snapshot.
const momentKind = "snapshot"

// maxSnapshot bounds the data of a snapshot that a recording makes by itself, in bytes.
const maxSnapshot = 8 << 30

// Moment is a time of a recording of which there is a snapshot: labctl up --from goes on from
// it.
type Moment struct {
	At    time.Time `json:"-"`     // the lab's
	File  string    `json:"file"`  // relative to the recording, or a member of the same zip file; with slashes
	Hosts int       `json:"hosts"` // servers in it
}

// The snapshots that a recording makes by itself.
const (
	startSnapshot = "start.tar"
	endSnapshot   = "end.tar"
)

// prepare makes the directory of the snapshots, without those of an older recording. Without a
// directory it does nothing.
func (o Recording) prepare() error {
	if o.Snapshots == "" {
		return nil
	}
	err := os.MkdirAll(o.Snapshots, 0o700)
	for _, name := range []string{startSnapshot, endSnapshot} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(o.Snapshots, name)))
	}
	if err != nil {
		return fmt.Errorf("the snapshots of the recording: %w", err)
	}
	return nil
}

// save saves a snapshot of the lab, when the recording has some. A recording goes on without
// one that cannot be saved.
func (s *Server) save(ctx context.Context, o Recording, name string) {
	if o.Snapshots == "" {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	to, err := filepath.Abs(filepath.Join(o.Snapshots, name))
	if err == nil {
		_, err = s.c.Rack.SaveSnapshot(ctx, to, func(_, all int64) {
			if all > maxSnapshot {
				cancel(fmt.Errorf("the lab has %s of data, and a recording saves at most %s: labctl snapshot save has no bound", amount(all), amount(maxSnapshot)))
			}
		})
	}
	if err != nil {
		s.c.Log.Warn("the recording has no snapshot of this moment", "file", to, "err", err)
	}
}

// keepMoment takes a snapshot that was saved.
func (r *recorder) keepMoment(to string, info snapshot.Info) {
	name := to
	if dir, err := filepath.Abs(r.beside); err == nil {
		if rel, err := filepath.Rel(dir, to); err == nil {
			name = rel
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.moments) >= maxUnrecorded {
		r.lost++
		return
	}
	r.moments = append(r.moments, Moment{At: info.Time, File: filepath.ToSlash(name), Hosts: info.Hosts})
}

// Moments are the snapshots that a recording names.
type Moments struct {
	First, Last time.Time // begin and end of the recording, in the lab's time
	All         []Moment  // by time
	Shard       bool      // the recording is of a shard of a lab
	file        string
}

// FindMoments reads a recording.
func FindMoments(file string) (Moments, error) {
	m := Moments{file: file}
	err := eachLine(file, func(l Line) error {
		if m.First.IsZero() {
			m.First = l.At
		}
		m.Last = l.At
		if state := (labState{}); l.Kind == "lab" && json.Unmarshal(l.Data, &state) == nil {
			m.Shard = state.Shard
		}
		if l.Kind != momentKind {
			return nil
		}
		at := Moment{At: l.At}
		if err := json.Unmarshal(l.Data, &at); err != nil {
			return fmt.Errorf("%s: a snapshot: %w", file, err)
		}
		m.All = append(m.All, at)
		return nil
	})
	if err != nil {
		return m, err
	}
	if m.First.IsZero() {
		return m, fmt.Errorf("%s is no recording of a lab: labctl up --recording FILE writes one", file)
	}
	slices.SortStableFunc(m.All, func(a, b Moment) int { return a.At.Compare(b.At) })
	return m, nil
}

// eachLine calls do with each complete line of a recording.
func eachLine(file string, do func(Line) error) error {
	in, err := openRecording(file)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewReaderSize(io.LimitReader(in, 2*maxRecording), 1<<20)
	for {
		b, err := lines.ReadBytes('\n')
		if err != nil { // half a line is none
			return nil //nolint:nilerr // the lines before it count
		}
		var l Line
		if err := json.Unmarshal(b, &l); err != nil {
			return fmt.Errorf("%s is no recording of a lab: %w", file, err)
		}
		if err := do(l); err != nil {
			return err
		}
	}
}

// HostObjects are the Kubernetes objects of a host.
type HostObjects struct {
	Host    string      `json:"host"`
	Objects []Described `json:"objects"`
}

// Recorded are the Kubernetes objects of a recorded lab at a time.
type Recorded struct {
	// Images and SecureImages are the URLs at which the lab served images, which objects name;
	// "" in a recording of a release that did not write them.
	Images, SecureImages string
	Hosts                []HostObjects // by name
}

// Objects returns the objects as they were at a snapshot, or shortly before it. They are never
// later: a host that the controllers have brought further than its object says is a lab after
// a crash, and one of which the object says more than the server did is none.
func (m Moments) Objects(x Moment) (Recorded, error) {
	var out Recorded
	hosts := map[string][]Described{}
	err := eachLine(m.file, func(l Line) error {
		if l.At.After(x.At) {
			return nil
		}
		switch l.Kind {
		case "lab":
			var state labState
			if err := json.Unmarshal(l.Data, &state); err != nil {
				return fmt.Errorf("%s: the lab: %w", m.file, err)
			}
			out.Images, out.SecureImages = state.Images, state.SecureImages
		case "objects":
			var all []Described
			if err := json.Unmarshal(l.Data, &all); err != nil {
				return fmt.Errorf("%s: the objects of %s: %w", m.file, l.Host, err)
			}
			hosts[l.Host] = all
		}
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if len(hosts[name]) > 0 { // else they were deleted
			out.Hosts = append(out.Hosts, HostObjects{name, hosts[name]})
		}
	}
	return out, err
}

// timeLayouts are the forms of a time: that of the link of the page, and that of its slider.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"}

// parse returns a time of the recording: the lab's time (RFC 3339, or as the slider shows it),
// or +DURATION since the recording began.
func (m Moments) parse(text string) (time.Time, error) {
	if after, ok := strings.CutPrefix(text, "+"); ok {
		d, err := time.ParseDuration(after)
		if err != nil {
			return time.Time{}, fmt.Errorf("time %q: %w: use a duration since the recording began, such as +1m30s", text, err)
		}
		return m.First.Add(d), nil
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %q: use the lab's time as the slider of labctl view shows it, such as %s, or a duration since the recording began, such as +1m30s", text, m.Last.Format(time.RFC3339))
}

// At returns the latest snapshot at or before a time of the recording; "" means its end. The
// error names the nearest ones when there is none. A time in whole seconds or milliseconds
// includes that one: the slider shows seconds, and the link milliseconds.
func (m Moments) At(text string) (Moment, error) {
	at := m.Last
	if text != "" {
		var err error
		if at, err = m.parse(text); err != nil {
			return Moment{}, err
		}
		for _, unit := range []time.Duration{time.Second, time.Millisecond} {
			if at.Truncate(unit).Equal(at) {
				at = at.Add(unit - 1)
				break
			}
		}
	}
	if len(m.All) == 0 {
		return Moment{}, fmt.Errorf("%s names no snapshot: labctl snapshot save makes one while the lab is recorded, and --recording-snapshots does at the beginning and at the end", m.file)
	}
	for _, x := range slices.Backward(m.All) {
		if !x.At.After(at) || text == "" {
			return x, nil
		}
	}
	var near []string
	for _, x := range m.All[:min(len(m.All), 3)] {
		near = append(near, m.Describe(x))
	}
	return Moment{}, fmt.Errorf("%s has no snapshot at or before %s: the nearest are of %s", m.file, cmp.Or(text, "its end"), strings.Join(near, ", "))
}

// Describe returns the time of a snapshot for people, and how long it is after the beginning of
// the recording.
func (m Moments) Describe(x Moment) string {
	return fmt.Sprintf("%s (+%s)", x.At.UTC().Format(time.RFC3339), max(0, x.At.Sub(m.First)).Round(time.Second))
}

// Open returns the name of a snapshot's file or directory. One in a zip file is copied to a new
// file in a directory. done removes the copy.
func (m Moments) Open(x Moment, dir string) (name string, done func() error, err error) {
	z, err := zip.OpenReader(m.file)
	if err == nil {
		defer z.Close()
		if member, err := z.Open(x.File); err == nil {
			defer member.Close()
			return unpackMember(member, dir)
		}
	}
	name = filepath.FromSlash(x.File)
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(m.file), name)
	}
	if _, err := os.Stat(name); err != nil {
		return "", nil, fmt.Errorf("the snapshot of %s is not there: %w: it is not a part of the recording: copy it to that place, too", m.Describe(x), err)
	}
	return name, func() error { return nil }, nil
}

// unpackMember copies a member of a zip file to a new file in a directory.
func unpackMember(member io.Reader, dir string) (_ string, done func() error, err error) {
	f, err := os.CreateTemp(dir, "snapshot-*.part")
	if err != nil {
		return "", nil, err
	}
	remove := func() error { return os.Remove(f.Name()) }
	_, err = io.Copy(f, member)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, errors.Join(fmt.Errorf("the snapshot in the recording: %w", err), remove())
	}
	return f.Name(), remove, nil
}
