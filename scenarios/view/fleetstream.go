package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// fleetStream is an open event stream of the page of a lab in several processes. It has a
// stream of each shard that runs.
type fleetStream struct {
	f      *fleet
	w      http.ResponseWriter
	host   string // whose page is open; "" for none
	typing bool
	last   string // ID of the last event of the host's shard that the page has

	reading map[string]bool // shards, by name, whose stream is open
	labs    map[string]labState
	tiles   map[int]Tile
	index   map[string]int // indexes of tiles, by host
	dirty   map[int]bool   // tiles that the page does not have
	objects uint64         // version of the objects that the tiles have
	lab     []byte         // body of the last event of the lab
	server  shardEvent     // the last event of the server whose page is open
}

// tiles returns the tiles of an event, with their indices among all servers of the lab.
func (e shardEvent) tiles() (out []Tile, err error) {
	if err := json.Unmarshal(e.data, &out); err != nil {
		return nil, fmt.Errorf("tiles of %s: %w", e.shard.Name, err)
	}
	for i := range out {
		out[i].Index += first(e.shard)
	}
	return out, nil
}

// events streams the changes of all tiles and, with host, all of one server.
func (f *fleet) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := &fleetStream{
		f: f, w: w, host: q.Get("host"), typing: q.Has("console"), last: r.Header.Get("Last-Event-ID"),
		reading: map[string]bool{}, labs: map[string]labState{}, tiles: map[int]Tile{}, index: map[string]int{}, dirty: map[int]bool{},
	}
	if p.host != "" {
		if _, ok := f.shardOf(p.host); !ok {
			http.Error(w, "there is no host "+p.host, http.StatusNotFound)
			return
		}
	}
	f.s.stream(w, func() error { return p.run(r.Context(), func() bool { return f.s.access.admits(r) }) })
}

// run sends events until ctx ends, the page goes or the token is replaced.
func (p *fleetStream) run(ctx context.Context, admitted func() bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	events := make(chan shardEvent)
	tick := p.f.s.c.Clock.NewTicker(pace)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%slowPace == 0 {
			p.follow(ctx, &readers, events)
			if err := p.sendLab(); err != nil {
				return err
			}
		}
		if err := p.sendTiles(); err != nil {
			return err
		}
		if n%tokenPace == tokenPace-1 && !admitted() {
			return nil
		}
		for ticked := false; !ticked; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-tick.C():
				ticked = true
			case e := <-events:
				if err := p.take(e); err != nil {
					return err
				}
			}
		}
	}
}

// follow opens the streams of the shards that run and have none. The servers of the others are
// offline.
func (p *fleetStream) follow(ctx context.Context, readers *sync.WaitGroup, to chan<- shardEvent) {
	send := func(e shardEvent) error {
		select {
		case to <- e:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, s := range p.f.s.c.Shards() {
		switch {
		case p.reading[s.Name]:
		case s.Client == nil:
			p.put(absent(s)...)
		default:
			p.reading[s.Name] = true
			q, last := url.Values{}, ""
			if p.of(s) {
				q.Set("host", p.host)
				if p.typing {
					q.Set("console", "1")
				}
				last = p.lastOf(s)
			}
			readers.Go(func() {
				if err := readEvents(ctx, s, q, last, send); ctx.Err() == nil {
					p.f.s.c.Log.Debug("the events of a shard have ended", "shard", s.Name, "err", err)
				}
				_ = send(shardEvent{shard: s, ended: true}) // it fails when nobody listens any more
			})
		}
	}
}

// of reports whether a shard has the host whose page is open.
func (p *fleetStream) of(s control.Shard) bool {
	if p.host == "" {
		return false
	}
	owner, ok := p.f.shardOf(p.host)
	return ok && owner.Name == s.Name
}

// lastOf returns the ID of the last event of a shard's stream that the page has. Its version of
// the tiles is 0, with which the shard sends all of them: the stream needs them itself.
func (p *fleetStream) lastOf(s control.Shard) string {
	id, ok := strings.CutPrefix(p.last, s.Name+"~")
	parts := strings.Split(id, ".")
	if !ok || len(parts) != 3 {
		return ""
	}
	parts[1] = "0"
	return strings.Join(parts, ".")
}

// take takes an event of a shard.
func (p *fleetStream) take(e shardEvent) error {
	if e.ended { // follow opens it again
		delete(p.reading, e.shard.Name)
		delete(p.labs, e.shard.Name)
		p.put(absent(e.shard)...)
		return nil
	}
	switch e.kind {
	case "lab":
		var state labState
		if err := json.Unmarshal(e.data, &state); err != nil {
			return fmt.Errorf("%s: %w", e.shard.Name, err)
		}
		p.labs[e.shard.Name] = state
		if p.lab != nil { // the page has one, and gets the next at its pace
			return nil
		}
		return p.sendLab()
	case "tiles":
		tiles, err := e.tiles()
		p.put(tiles...)
		return err
	case "server":
		p.server = e
		return p.sendServer()
	}
	return p.pass(e)
}

// sendServer sends the server whose page is open, with its object.
func (p *fleetStream) sendServer() error {
	e := p.server
	var all map[string]json.RawMessage
	err := json.Unmarshal(e.data, &all)
	if err == nil {
		o, steps := p.f.object(p.host)
		for name, v := range map[string]any{"object": o, "history": steps} {
			if all[name], err = json.Marshal(v); err != nil {
				break
			}
		}
	}
	if err == nil {
		e.data, err = json.Marshal(all)
	}
	if err != nil {
		return fmt.Errorf("server %s: %w", p.host, err)
	}
	return p.pass(e)
}

// pass sends an event of a shard.
func (p *fleetStream) pass(e shardEvent) error {
	if e.id != "" {
		p.last = e.shard.Name + "~" + e.id
	}
	if err := p.write(e.kind, e.data); err != nil {
		return err
	}
	return p.flush()
}

// put takes tiles.
func (p *fleetStream) put(tiles ...Tile) {
	for _, t := range tiles {
		t = p.f.withObject(t)
		p.index[t.Name] = t.Index
		if was, ok := p.tiles[t.Index]; !ok || was != t {
			p.tiles[t.Index], p.dirty[t.Index] = t, true
		}
	}
}

// sendTiles sends the tiles that the page does not have.
func (p *fleetStream) sendTiles() error {
	hosts, n := p.f.changedSince(p.objects)
	p.objects = n
	for _, name := range hosts {
		if i, ok := p.index[name]; ok {
			p.put(p.tiles[i])
		}
		if name == p.host && p.server.kind != "" {
			if err := p.sendServer(); err != nil {
				return err
			}
		}
	}
	if len(p.dirty) == 0 {
		return nil
	}
	var out []Tile
	for _, i := range slices.Sorted(maps.Keys(p.dirty)) {
		out = append(out, p.tiles[i])
	}
	clear(p.dirty)
	b, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("tiles: %w", err)
	}
	if err := p.write("tiles", b); err != nil {
		return err
	}
	return p.flush()
}

// sendLab sends the state of the lab, when it has changed and a shard has told its time.
func (p *fleetStream) sendLab() error {
	var all labState
	for _, s := range p.f.s.c.Shards() {
		all.Hosts += s.Rack.Len()
		state, ok := p.labs[s.Name]
		if !ok {
			continue
		}
		if all.Time.IsZero() {
			all.Time, all.Speed = state.Time, state.Speed
		}
		if all.Storage == "" && state.Storage != "" {
			all.Storage = s.Name + ": " + state.Storage
		}
		all.Faults += state.Faults // a rule for several shards counts in each
	}
	if all.Time.IsZero() {
		return nil
	}
	st := p.f.s.c.Status()
	all.Name, all.Kube, all.Version, all.Images, all.SecureImages = p.f.name(), st.Kubeconfig != "", control.Version(), st.Images, st.SecureImages
	b, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if bytes.Equal(b, p.lab) {
		return nil
	}
	p.lab = b
	if err := p.write("lab", b); err != nil {
		return err
	}
	return p.flush()
}

// write writes an event. Its ID is that of the host's shard, so that the console goes on where
// it was cut off.
func (p *fleetStream) write(kind string, b []byte) error {
	_, err := fmt.Fprintf(p.w, "id: %s\nevent: %s\ndata: %s\n\n", p.last, kind, b)
	return err
}

func (p *fleetStream) flush() error { return http.NewResponseController(p.w).Flush() }
