package redfish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	redfishevent "github.com/metalab-dev/metalab/emulator/redfish/event"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/fixtures"
)

// accounts are the accounts of every BMC under test: one per role, and a disabled one.
var accounts = []bmc.Account{
	{ID: "1", Name: "admin", Password: "adm-secret-1", Role: bmc.Administrator, Enabled: true},
	{ID: "2", Name: "operator", Password: "op-secret-2", Role: bmc.Operator, Enabled: true},
	{ID: "3", Name: "reader", Password: "read-secret-3", Role: bmc.ReadOnly, Enabled: true},
	{ID: "4", Name: "gone", Password: "gone-secret-4", Role: bmc.Administrator},
}

// host is a Host with a real machine and a real BMC. Its clock advances only when a test
// says so.
type host struct {
	audits   bool // whether requests are audited: a walk of the log must not write into it
	mu       sync.Mutex
	d        *dialect.Record
	now      time.Time
	machine  *machine.Machine
	bmc      *bmc.BMC
	mv       *machine.View
	bv       *bmc.View
	fail     error                   // error of every Apply
	fetch    func() error            // result of fetching an image; nil: success
	boots    bool                    // the first boot source holds an operating system
	service  *Service                // whose Notify gets each change; nil: none
	posted   []redfishevent.Delivery // by it
	images   images
	carrying sync.WaitGroup // tasks that run in the background
	clock    *clock.Clock   // that counts those as work in flight; nil: none
}

func newHost(t testing.TB) *host {
	t.Helper()
	return newHostOf(t, "generic")
}

// newHostOf returns a host of a built-in profile.
func newHostOf(t testing.TB, profile string) *host {
	t.Helper()
	raw, err := fixtures.Profiles.ReadFile("profiles/" + profile + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := machine.ParseProfile("profile.yaml", raw)
	if err != nil {
		t.Fatal(err)
	}
	must(t, p.Equip(func(name string) ([]byte, error) { return fixtures.Profiles.ReadFile("registries/" + name + ".yaml") }))
	d := generic.Record
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	m, err := machine.New(p, machine.NewIdentity(7, 0, "node-0", p), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{d: &d, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), machine: m, bmc: bmc.New(&d.BMC, accounts, nil)}
	h.machineChanged()
	h.bmcChanged()
	return h
}

// A change replaces only the view of what has changed.
func (h *host) machineChanged() { v := h.machine.View(); h.mv = &v }
func (h *host) bmcChanged()     { v := h.bmc.View(); h.bv = &v }

// changed ends a step: it publishes the views, then notifies the service.
func (h *host) changed(evs ...bmc.Event) {
	number, listened := h.bmc.NextEvent()
	st := redfishevent.Change{Number: number, At: h.now, WasMachine: h.mv, WasBMC: h.bv, Events: evs}
	h.machineChanged()
	h.bmcChanged()
	if h.service != nil && listened {
		st.Machine, st.BMC = h.mv, h.bv
		h.posted = append(h.posted, h.service.Notify(h, st)...)
	}
}

// hear passes events of the machine on to the BMC.
func (h *host) hear(evs ...event.Event) {
	defer h.locked()()
	h.changed(h.bmc.ObserveMachine(h.now, evs)...)
}

func (h *host) locked() func() { h.mu.Lock(); return h.mu.Unlock }

func (h *host) Dialect() *dialect.Record { return h.d }

func (h *host) Machine() *machine.View { defer h.locked()(); return h.mv }

func (h *host) BMC() *bmc.View { defer h.locked()(); return h.bv }

func (h *host) Now() time.Time { defer h.locked()(); return h.now }

func (h *host) Login(c bmc.Credentials) (bmc.Account, bool) {
	defer h.locked()()
	v := h.bmc.Login(c)
	if v.Record != nil {
		if _, err := h.bmc.Apply(h.now, v.Record); err != nil {
			panic(err)
		}
		h.bmcChanged()
	}
	return v.Account, v.OK
}

func (h *host) Resume(token string) (bmc.Session, bool) {
	defer h.locked()()
	return h.bmc.Resume(h.now, token)
}

func (h *host) Apply(_ context.Context, c machine.Command) error {
	defer h.locked()()
	if h.fail != nil {
		return h.fail
	}
	evs, err := h.machine.Apply(h.now, c)
	h.changed(h.bmc.ObserveMachine(h.now, evs)...)
	return err
}

func (h *host) Begin(_ context.Context, o bmc.OpenTask, c func(string) machine.Command) (bmc.Task, error) {
	defer h.locked()()
	if h.fail != nil {
		return bmc.Task{}, h.fail
	}
	before := h.bmc.State()
	evs, err := h.bmc.Apply(h.now, o)
	if err != nil {
		return bmc.Task{}, err
	}
	job := evs[len(evs)-1].(bmc.TaskOpened).Task
	more, err := h.machine.Apply(h.now, c(job.ID))
	if err != nil {
		h.bmc.Restore(before)
		return bmc.Task{}, err
	}
	h.changed(append(evs, h.bmc.ObserveMachine(h.now, more)...)...)
	return job, nil
}

func (h *host) RunTask(_ context.Context, o bmc.OpenTask, do func(context.Context, string) bmc.CloseTask) (bmc.Task, error) {
	defer h.locked()()
	evs, err := h.bmc.Apply(h.now, o)
	if err != nil {
		return bmc.Task{}, err
	}
	job := evs[len(evs)-1].(bmc.TaskOpened).Task
	if _, err := h.bmc.Apply(h.now, bmc.RunTask{ID: job.ID, Until: o.Until(h.now)}); err != nil {
		return bmc.Task{}, err
	}
	h.bmcChanged()
	leave := func() {}
	if h.clock != nil {
		leave = h.clock.Enter()
	}
	h.carrying.Go(func() {
		defer leave()
		end := do(context.Background(), job.ID)
		end.ID = job.ID
		if _, err := h.ApplyBMC(context.Background(), end); err != nil && !errors.Is(err, bmc.ErrNotFound) { // closed by another
			panic(err)
		}
	})
	return job, nil
}

func (h *host) Cancel(_ context.Context, job string) error {
	defer h.locked()()
	if h.fail != nil {
		return h.fail
	}
	if h.machine.RunsTask(job) {
		evs, err := h.machine.Apply(h.now, machine.StopTask{Task: job})
		h.changed(h.bmc.ObserveMachine(h.now, evs)...)
		if err != nil || !h.machine.RunsTask(job) {
			return err
		}
	}
	evs, err := h.bmc.Apply(h.now, bmc.CancelTask{ID: job})
	h.changed(evs...)
	return err
}

func (h *host) ApplyBMC(_ context.Context, c bmc.Command) ([]bmc.Event, error) {
	defer h.locked()()
	switch c.(type) {
	case bmc.AddAuditRecord, bmc.AmendAuditRecord:
		if !h.audits {
			return nil, nil
		}
	}
	if h.fail != nil {
		return nil, h.fail
	}
	evs, err := h.bmc.Apply(h.now, c)
	for _, ev := range evs {
		wanted, ok := ev.(bmc.MediaRequested)
		if !ok {
			continue
		}
		fetch := h.fetch
		h.changed(evs...)
		h.mu.Unlock() // other requests go on during the fetch
		var failed error
		if fetch != nil {
			failed = fetch()
		}
		h.mu.Lock()
		var answer bmc.Command = bmc.MediaFetched{Slot: wanted.Slot.ID, Fetch: wanted.Slot.Fetch, Size: 1 << 20}
		if failed != nil {
			answer = bmc.MediaFetchFailed{Slot: wanted.Slot.ID, Fetch: wanted.Slot.Fetch}
		}
		evs, err = h.bmc.Apply(h.now, answer)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			h.changed(evs...)
			return nil, failed
		}
	}
	if err == nil {
		h.changed(evs...)
	}
	return evs, err
}

// pass advances the clock, from one deadline to the next. Boot sources are not bootable,
// unless h.boots is set.
func (h *host) pass(d time.Duration) {
	defer h.locked()()
	end := h.now.Add(d)
	var events []bmc.Event
	for {
		if at, ok := h.machine.Deadline(); ok && at.Before(end) {
			h.now = at
		} else {
			h.now = end
		}
		events = append(events, h.happen(h.machine.Advance(h.now))...)
		if h.now.Equal(end) {
			break
		}
	}
	h.changed(append(events, h.bmc.Advance(h.now)...)...)
}

// happen simulates the rack's reaction to events.
func (h *host) happen(evs []machine.Event) (events []bmc.Event) {
	for len(evs) > 0 {
		ev := evs[0]
		evs = evs[1:]
		events = append(events, h.bmc.ObserveMachine(h.now, []machine.Event{ev})...)
		if _, ok := ev.(machine.MetricReportReady); ok {
			events = append(events, ev)
		}
		tried, ok := ev.(machine.BootAttempted)
		if !ok {
			continue
		}
		var answer machine.Command = machine.NotBootable{Boot: tried.Boot, Source: tried.Source}
		if h.boots {
			answer = machine.Loaded{Boot: tried.Boot, Source: tried.Source, Name: "disk"}
		}
		more, err := h.machine.Apply(h.now, answer)
		if err != nil {
			panic(err)
		}
		evs = append(evs, more...)
	}
	return events
}

// rack is a Rack of one host, at every address.
type rack struct{ *host }

func (r rack) At(netip.AddrPort) (resource.Host, bool) { return r.host, true }

func newService(t testing.TB, h *host) *Service {
	t.Helper()
	s, err := New(Config{Rack: rack{h}})
	if err != nil {
		t.Fatal(err)
	}
	h.service = s
	t.Cleanup(s.CloseStreams)
	return s
}

// as authenticates a request.
type as string // name of an account; "" for nobody

// call sends one request to a handler. header alternates names and values.
func call(t testing.TB, s http.Handler, who as, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "https://bmc.test"+path, strings.NewReader(body))
	for _, a := range accounts {
		if a.Name == string(who) {
			r.SetBasicAuth(a.Name, a.Password)
		}
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkMessageArgs(t, path+" "+body, w.Body.Bytes())
	return w
}

// emptyText matches an empty text in a body, and an empty value in a query.
var emptyText = regexp.MustCompile(`""|=[& ]`)

// checkMessageArgs fails the test when a message in a response has an argument that is
// empty, or that stands for an empty text although the request has none. Every response
// of the package's tests passes it.
func checkMessageArgs(t testing.TB, sent string, received []byte) {
	t.Helper()
	if !bytes.Contains(received, []byte(`"MessageArgs":[`)) {
		return
	}
	var visit func(v any)
	visit = func(v any) {
		switch x := v.(type) {
		case map[string]any:
			args, _ := x["MessageArgs"].([]any)
			for _, arg := range args {
				if arg == "" || arg == `""` && !emptyText.MatchString(sent) {
					t.Errorf("%v has the argument %q; the request is %s", x["MessageId"], arg, sent)
				}
			}
			for _, below := range x {
				visit(below)
			}
		case []any:
			for _, below := range x {
				visit(below)
			}
		}
	}
	var document any
	if json.Unmarshal(received, &document) == nil {
		visit(document)
	}
}

// shape formats a request and its response for the message of a failed test.
func shape(method, path, body string, w *httptest.ResponseRecorder) string {
	return fmt.Sprintf("%s %s %s = %d %v\n%s", method, path, body, w.Code, w.Header(), w.Body)
}

// get reads a resource as admin.
func get(t testing.TB, s http.Handler, uri string) (body map[string]any, etag string) {
	t.Helper()
	w := call(t, s, "admin", "GET", uri, "")
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 200 {
		t.Fatalf("%v: %s", err, shape("GET", uri, "", w))
	}
	return body, w.Header().Get("ETag")
}
