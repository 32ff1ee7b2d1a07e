package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Change is a write, with what takes it back.
type Change struct {
	Request
	// Level is the effect of the write on the server; the run's level must allow it.
	// Empty: reversible.
	Level Level
	// Undo takes the write back, in this order. A write without is one that
	// needs none, such as one that the BMC must refuse; what the destructive level
	// loses cannot be taken back.
	Undo []Undo
}

// Undo is a request that takes a write back. It must be harmless when it is sent
// twice, or when the write never reached the BMC.
type Undo struct {
	Method string          `json:"method"`
	URI    string          `json:"uri,omitempty"` // empty: the Location of the write's response, or what Find finds
	Body   json.RawMessage `json:"body,omitempty"`
	// Otherwise are bodies to send in turn when the BMC refuses the first.
	Otherwise []json.RawMessage `json:"otherwise,omitempty"`
	Match     bool              `json:"match,omitempty"` // sends the resource's present ETag in If-Match
	Find      *Lookup           `json:"find,omitempty"`
	// State is the state after the request: it is sent only while the resource shows
	// something else, and again when the BMC refuses it for the moment.
	State *State `json:"state,omitempty"`
	IPMI  []byte `json:"ipmi,omitempty"` // network function, command and data, in place of a request
}

// Lookup names a created resource whose Location was lost in a crash: the member of
// a collection with a property of a value.
type Lookup struct {
	Collection string `json:"collection"`
	Property   string `json:"property"`
	Value      string `json:"value"`
}

// State is a property of a resource and its value.
type State struct {
	Resource string `json:"resource"`
	Property string `json:"property"` // a path, such as Oem/Acme/Mode
	Value    string `json:"value"`
}

// Entry is a line of restore.jsonl. A write has up to three: what will be sent,
// how the BMC answered, and that the write was taken back.
type Entry struct {
	Write    int       `json:"write"` // number, from 1
	Time     time.Time `json:"time"`
	Check    string    `json:"check,omitempty"`
	Method   string    `json:"method,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Undo     []Undo    `json:"undo,omitempty"`
	Status   int       `json:"status,omitempty"`
	Location string    `json:"location,omitempty"`
	Restored bool      `json:"restored,omitempty"`
	Problem  string    `json:"problem,omitempty"` // why it could not be taken back
}

// Journal records writes before they are sent, in a file that outlives a crash.
// It holds no secrets.
type Journal struct {
	mu    sync.Mutex
	file  io.Writer
	sync  func() error
	next  int
	open  []Entry // writes to take back, in the order in which they were sent
	close func() error
}

// OpenJournal opens the journal of a file, which need not exist. Writes of an
// earlier run that were not taken back are among its Open ones.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: f, sync: f.Sync, close: f.Close}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			if !lines.Scan() { // a crash cut the last line: its write was not sent
				break
			}
			f.Close()
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		j.apply(e)
	}
	if err := lines.Err(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// JournalFile is the name of the journal of writes in the folder of a run.
const JournalFile = "restore.jsonl"

// OpenFolder opens the journal of a new run in its folder, which is made. It is a Refusal
// while writes of an earlier run wait to be taken back.
func OpenFolder(folder string) (*Journal, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, JournalFile)
	j, err := OpenJournal(path)
	if err != nil {
		return nil, err
	}
	if n := len(j.Open()); n > 0 {
		return nil, errors.Join(&Refusal{Text: fmt.Sprintf("%s has %d writes of an earlier run that were not taken back: run labctl conformance restore first", path, n)}, j.Close())
	}
	return j, nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.close() }

// Open returns the writes that were not taken back, in the order in which they
// were sent.
func (j *Journal) Open() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.open)
}

// apply follows an entry.
func (j *Journal) apply(e Entry) {
	j.next = max(j.next, e.Write)
	i := slices.IndexFunc(j.open, func(o Entry) bool { return o.Write == e.Write })
	switch {
	case i < 0 && len(e.Undo) > 0:
		j.open = append(j.open, e)
	case i < 0:
	case e.Restored:
		j.open = slices.Delete(j.open, i, i+1)
	default:
		j.open[i].Status, j.open[i].Location = e.Status, e.Location
	}
}

// append writes an entry and waits until it is on disk.
func (j *Journal) append(e Entry) (Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Write == 0 {
		e.Write = j.next + 1
	}
	line, err := json.Marshal(e)
	if err != nil {
		return e, err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return e, err
	}
	if err := j.sync(); err != nil {
		return e, err
	}
	j.apply(e)
	return e, nil
}

// Change journals a write and sends it. Any status is a response. The run takes
// the write back when the check ends, unless Restore has done so.
func (r *Run) Change(ctx context.Context, c Change) (*Response, error) {
	if c.Level == "" {
		c.Level = Reversible
	}
	if !r.level.Allows(c.Level) {
		return nil, fmt.Errorf("%s %s: %w: it needs --level %s", c.Method, c.URI, ErrLevel, c.Level)
	}
	if c.Level.Allows(Disruptive) && r.bmc.dry == nil && !r.bmc.sure {
		if err := r.confirm(ctx); err != nil {
			return nil, err
		}
	}
	r.bmc.login(ctx, r)
	r.Forget()
	if r.bmc.dry != nil {
		return r.roundTrip(ctx, c.Request)
	}
	e, err := r.journal().append(Entry{Time: r.Now().UTC(), Check: r.check, Method: c.Method, URI: c.URI, Undo: c.Undo})
	if err != nil {
		return nil, err
	}
	resp, err := r.roundTrip(ctx, c.Request)
	if err != nil {
		return nil, err // whether it reached the BMC is unknown: it stays open
	}
	_, err = r.journal().append(Entry{Write: e.Write, Time: r.Now().UTC(), Status: resp.Status, Location: resp.Header.Get("Location")})
	return resp, err
}

func (r *Run) journal() *Journal { return r.bmc.conf.Journal }

// Restore takes back the check's writes so far, the last write first, and
// returns the writes that the BMC did not let it take back.
func (r *Run) Restore(ctx context.Context) error {
	if r.bmc.dry != nil || r.journal() == nil {
		return nil
	}
	var all error
	open := r.journal().Open()
	for _, e := range slices.Backward(open) {
		if r.check != "" && e.Check != r.check {
			continue
		}
		done := Entry{Write: e.Write, Time: r.Now().UTC(), Restored: true}
		if err := r.undo(ctx, e); err != nil {
			done.Restored, done.Problem = false, err.Error()
			all = errors.Join(all, fmt.Errorf("write %d of %s, %s %s: %w", e.Write, e.Check, e.Method, e.URI, err))
			done.Status, done.Location = e.Status, e.Location
		}
		if _, err := r.journal().append(done); err != nil {
			all = errors.Join(all, err)
		}
	}
	if len(open) > 0 {
		r.Forget()
	}
	return all
}

// restore is Restore after the check, for which an end of ctx is no obstacle.
func (r *Run) restore(ctx context.Context) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	_ = r.Restore(last) // what stays open is in the journal, and the run reports it
}

// undo takes one write back.
func (r *Run) undo(ctx context.Context, e Entry) error {
	if e.Status >= 400 {
		return nil // the BMC refused the write
	}
	for _, u := range e.Undo {
		if len(u.IPMI) > 0 {
			if err := r.undoIPMI(ctx, u.IPMI); err != nil {
				return err
			}
			continue
		}
		if u.State != nil {
			if err := r.bring(ctx, u); err != nil {
				return err
			}
			continue
		}
		uri, err := r.target(ctx, e, u)
		if err != nil {
			return err
		}
		if uri == "" {
			continue // it was never created, or is gone
		}
		r.bmc.login(ctx, r)
		resp, err := r.take(ctx, u, uri)
		if err != nil {
			return err
		}
		gone := u.Method == http.MethodDelete && (resp.Status == http.StatusNotFound || resp.Status == http.StatusGone)
		if resp.Status >= 400 && !gone {
			return fmt.Errorf("%s %s: %s", u.Method, uri, resp.Problem())
		}
	}
	return nil
}

// take sends an undo: its bodies in turn, and with each the forms of the ETag,
// until the BMC accepts one.
func (r *Run) take(ctx context.Context, u Undo, uri string) (resp *Response, err error) {
	bodies := append([]json.RawMessage{u.Body}, u.Otherwise...)
	if u.Method == http.MethodPatch { // some BMCs refuse a change to the present value
		rest := r.differing(ctx, uri, u.Body)
		if rest == nil {
			return &Response{URI: uri, Status: http.StatusNoContent}, nil
		}
		bodies = append(bodies, rest)
	}
	for _, body := range bodies {
		headers := []http.Header{nil}
		switch {
		case u.Match:
			headers = r.matches(ctx, uri)
		case u.Method == http.MethodDelete: // some BMCs want the ETag here, too
			headers = append(headers, r.matches(ctx, uri)...)
		}
		for _, h := range headers {
			q := Request{Method: u.Method, URI: uri, Header: h}
			if len(body) > 0 {
				q.Body = []byte(body)
			}
			if resp, err = r.roundTrip(ctx, q); err != nil || resp.Status < 400 {
				return resp, err
			}
			if resp.Status != http.StatusPreconditionFailed && resp.Status != http.StatusPreconditionRequired {
				break
			}
		}
	}
	return resp, nil
}

// differing returns what of a body the resource does not show already, or nil.
func (r *Run) differing(ctx context.Context, uri string, body json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var want any
	v, _, err := r.Get(ctx, uri)
	if err != nil || d.Decode(&want) != nil {
		return body
	}
	rest := difference(v.Raw(), want)
	if rest == nil {
		return nil
	}
	return jsonBody(rest)
}

// difference returns the properties of want that a decoded value does not have, or
// nil.
func difference(is, want any) any {
	object, ok := want.(map[string]any)
	if !ok {
		if reflect.DeepEqual(is, want) {
			return nil
		}
		return [1]any{want}
	}
	has, _ := is.(map[string]any)
	rest := map[string]any{}
	for name, w := range object {
		v, there := has[name]
		switch d := difference(v, w).(type) {
		case [1]any:
			rest[name] = d[0]
		case nil:
			if !there {
				rest[name] = w
			}
		default:
			rest[name] = d
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// target returns the URI of an undo, or nothing when its resource does not exist.
func (r *Run) target(ctx context.Context, e Entry, u Undo) (string, error) {
	switch {
	case u.URI != "":
		return u.URI, nil
	case e.Location != "":
		return e.Location, nil
	case u.Find == nil:
		return "", nil
	}
	r.Forget()
	members, err := r.Members(ctx, u.Find.Collection)
	if err != nil {
		return "", err
	}
	for _, m := range members {
		v, err := r.Page(ctx, m)
		if err != nil {
			continue
		}
		if v.At(u.Find.Property).TextOr("") == u.Find.Value {
			return m, nil
		}
	}
	return "", nil
}

// RestoreAll takes back what runs before have left in the journal.
func (b *BMC) RestoreAll(ctx context.Context) error {
	r := b.run(Check{})
	defer r.close()
	defer b.logout(context.WithoutCancel(ctx), r)
	return r.Restore(ctx)
}

// jsonBody encodes the body of an Undo.
func jsonBody(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(b)
}
