package control

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
)

// journal returns the entries of all shards, by the lab's time. The clocks of shards agree
// but for how long each took to start.
func (f *fleet) journal(r *http.Request) (any, error) {
	all, err := each(f.up(), func(s Shard) (out []journal.Entry, err error) {
		err = s.Client.do(r.Context(), http.MethodGet, "/v1/journal?"+r.URL.RawQuery, nil, &out)
		return out, err
	})
	if err != nil {
		return nil, err
	}
	out := slices.Concat(all...)
	slices.SortStableFunc(out, func(a, b journal.Entry) int { return a.At.Compare(b.At) })
	if last, err := strconv.Atoi(r.URL.Query().Get("last")); err == nil && last > 0 && last < len(out) {
		out = out[len(out)-last:]
	}
	if out == nil {
		out = []journal.Entry{} // [] in JSON
	}
	return out, nil
}

// followJournal sends the entries of all shards as they come, until the client leaves or
// every shard has ended.
func (f *fleet) followJournal(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	var mu sync.Mutex // held while a line is written
	send := func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := w.Write(line); err != nil || control.Flush() != nil {
			cancel()
		}
	}
	var bodies []*bufio.Reader
	for _, s := range f.up() {
		body, err := s.Client.open(ctx, http.MethodGet, "/v1/journal/follow?"+r.URL.RawQuery, nil)
		if err != nil {
			f.answer(w, nil, fmt.Errorf("%s: %w", s.Name, err))
			return
		}
		defer body.Close()
		bodies = append(bodies, bufio.NewReader(body))
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if control.Flush() != nil {
		return
	}
	var all sync.WaitGroup
	for _, b := range bodies {
		all.Go(func() {
			for {
				line, err := b.ReadBytes('\n')
				if err != nil {
					return
				}
				send(line)
			}
		})
	}
	all.Wait()
}

// powerAll resets hosts of several shards, those of each with one request.
func (f *fleet) powerAll(w http.ResponseWriter, r *http.Request) {
	var in powerRequest
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := decode(r, &in); err != nil {
		f.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	var mu sync.Mutex // held while a line is written
	send := func(p Powered) {
		mu.Lock()
		defer mu.Unlock()
		if err := lines.Encode(p); err != nil {
			f.c.Log.Debug("client gone", "err", err)
		}
	}
	rest := in.Hosts
	var all sync.WaitGroup
	for _, s := range f.c.Shards() {
		var mine, others []string
		for _, name := range rest {
			if f.has(s, name) {
				mine = append(mine, name)
			} else {
				others = append(others, name)
			}
		}
		rest = others
		if len(mine) > 0 {
			all.Go(func() { s.power(r.Context(), mine, in.Reset, send) })
		}
	}
	for _, name := range rest {
		send(Powered{Name: name, Error: "there is no host " + name})
	}
	all.Wait()
}

// power resets hosts of a shard, and calls send for each.
func (s Shard) power(ctx context.Context, hosts []string, reset string, send func(Powered)) {
	err, answered := s.running(), map[string]bool{}
	if err == nil {
		err = s.Client.PowerAll(ctx, hosts, reset, func(p Powered) {
			answered[p.Name] = true
			send(p)
		})
	}
	for _, name := range hosts {
		if err != nil && !answered[name] {
			send(Powered{Name: name, Error: err.Error()})
		}
	}
}

// SnapshotOf returns where the snapshot of a shard is in that of its lab.
func SnapshotOf(dir, shard string) string { return filepath.Join(dir, shard) }

// saveSnapshot makes each shard that runs save itself to a directory of its own.
func (f *fleet) saveSnapshot(w http.ResponseWriter, r *http.Request) {
	var in snapshotRequest
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	err := decode(r, &in)
	switch {
	case err != nil:
	case !filepath.IsAbs(in.To):
		err = &Refused{http.StatusBadRequest, fmt.Sprintf("%q: name an absolute path", in.To)}
	case filepath.Ext(in.To) == ".tar":
		err = &Refused{http.StatusBadRequest, fmt.Sprintf("%s: name a directory: the snapshot of a lab in shards has one snapshot for each", in.To)}
	}
	var shards []Shard
	for _, s := range f.c.Shards() {
		switch {
		case s.Client != nil && s.Dir == "":
			err = &Refused{http.StatusBadRequest, s.Name + " is on another computer: take a snapshot of its volume"}
		case s.Client != nil:
			shards = append(shards, s)
		case s.Off != ScaledIn && err == nil:
			err = s.running()
		}
	}
	if err != nil {
		f.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	all, err := each(shards, func(s Shard) (snapshot.Info, error) {
		return s.Client.SaveSnapshot(r.Context(), SnapshotOf(in.To, s.Name), nil)
	})
	line := snapshotProgress{}
	if err != nil {
		line.Error = err.Error()
	} else if len(all) > 0 {
		info := all[0]
		for _, i := range all[1:] {
			info.Hosts += i.Hosts
		}
		line.Info = &info
	}
	if err := out.Encode(line); err != nil {
		f.c.Log.Debug("client gone", "err", err)
	}
}

// metrics serves the metrics of all shards, each with the label shard.
func (f *fleet) metrics(w http.ResponseWriter, r *http.Request) {
	all, err := each(f.up(), func(s Shard) ([]*dto.MetricFamily, error) {
		body, err := s.Client.open(r.Context(), http.MethodGet, "/metrics", nil)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		parser := expfmt.NewTextParser(model.UTF8Validation)
		byName, err := parser.TextToMetricFamilies(body)
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		var out []*dto.MetricFamily
		name, value := "shard", s.Name
		for _, family := range byName { // gathered sorts them
			for _, m := range family.Metric {
				m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &value})
			}
			out = append(out, family)
		}
		return out, nil
	})
	if err != nil {
		f.answer(w, nil, err)
		return
	}
	promhttp.HandlerFor(families(all), promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// families are metrics by shard, as a prometheus.Gatherer.
type families [][]*dto.MetricFamily

// Gather implements prometheus.Gatherer.
func (all families) Gather() ([]*dto.MetricFamily, error) {
	byName := map[string]*dto.MetricFamily{}
	var out []*dto.MetricFamily
	for _, some := range all {
		for _, family := range some {
			if first := byName[family.GetName()]; first != nil {
				first.Metric = append(first.Metric, family.Metric...)
				continue
			}
			byName[family.GetName()] = family
			out = append(out, family)
		}
	}
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int {
		if a.GetName() < b.GetName() {
			return -1
		}
		return 1
	})
	return out, nil
}
