package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// apiRequest is a request to the control API.
type apiRequest struct {
	*http.Request
	s    *Server
	rack *rack.Rack
	host *rack.Host // the host that {host} in the path names
}

// route is a path of the API and its handler.
type route struct {
	pattern string
	do      func(c *apiRequest) (any, error)
}

// routes are the paths of the API that answer with JSON.
var routes = []route{
	{"GET /v1/status", func(c *apiRequest) (any, error) { return c.s.status(), nil }},
	{"POST /v1/down", down},
	{"GET /v1/rack", func(c *apiRequest) (any, error) { return c.rack.Definition(), nil }},
	{"GET /v1/hosts", func(c *apiRequest) (any, error) { return Hosts(c.rack), nil }},
	{"GET /v1/hosts/{host}", func(c *apiRequest) (any, error) { return c.detail(), nil }},
	{"POST /v1/hosts/{host}/power", reset},
	{"POST /v1/hosts/{host}/reset", resetToProfile},
	{"POST /v1/hosts/{host}/system/reset", resetSystem},
	{"POST /v1/hosts/{host}/boot", boot},
	{"POST /v1/hosts/{host}/bmc/reset", resetBMC},
	{"POST /v1/hosts/{host}/bmc/selftest", selfTest},
	{"POST /v1/hosts/{host}/console/break", sendBreak},
	{"GET /v1/hosts/{host}/disks", func(c *apiRequest) (any, error) { return DisksOf(c.host), nil }},
	{"POST /v1/hosts/{host}/disks/{disk}/pull", pullDisk},
	{"POST /v1/hosts/{host}/disks/{disk}/insert", insertDisk},
	{"POST /v1/hosts/{host}/disks/{disk}/fail", failDisk},
	{"POST /v1/hosts/{host}/volumes", createVolume},
	{"DELETE /v1/hosts/{host}/volumes/{controller}/{volume}", deleteVolume},
	{"GET /v1/hosts/{host}/media", func(c *apiRequest) (any, error) { return media(c.host.BMC()), nil }},
	{"POST /v1/hosts/{host}/media/{slot}/insert", insert},
	{"POST /v1/hosts/{host}/media/{slot}/eject", eject},
	{"GET /v1/hosts/{host}/files", files},
	{"GET /v1/hosts/{host}/files/changes", fileChanges},
	{"GET /v1/hosts/{host}/log/{book}", readLog},
	{"DELETE /v1/hosts/{host}/log/{book}", clearLog},
	{"GET /v1/hosts/{host}/quirks", quirksOf},
	{"PUT /v1/hosts/{host}/quirks", setQuirks},
	{"GET /v1/faults", func(c *apiRequest) (any, error) { return c.rack.Faults(), nil }},
	{"POST /v1/faults", addFaults},
	{"DELETE /v1/faults/{id}", removeFault},
	{"GET /v1/journal", queryJournal},
}

// statuses maps errors to HTTP statuses. The first match counts; errors without a
// match are 400.
var statuses = []struct {
	err    error
	status int
}{
	{errNotFound, http.StatusNotFound},
	{fault.ErrUnknown, http.StatusNotFound},
	{bmc.ErrNotFound, http.StatusNotFound},
	{errForbidden, http.StatusForbidden},
	{machine.ErrPower, http.StatusConflict},
	{machine.ErrConflict, http.StatusConflict},
	{storage.ErrNotFound, http.StatusNotFound},
	{storage.ErrBusy, http.StatusConflict},
	{storage.ErrState, http.StatusConflict},
	{bmc.ErrDown, http.StatusConflict},
	{bmc.ErrInUse, http.StatusConflict},
	{fault.ErrTaken, http.StatusConflict},
	{bmc.ErrStorageFull, http.StatusInsufficientStorage},
	{fs.ErrNotExist, http.StatusNotFound},
	{syscall.ENOSPC, http.StatusInsufficientStorage},
}

var (
	errNotFound  = errors.New("not found")
	errForbidden = errors.New("forbidden")
)

// refusal is an error of one kind with its own text.
type refusal struct {
	kind error
	text string
}

// Error implements error.
func (e *refusal) Error() string { return e.text }

// Unwrap returns the kind.
func (e *refusal) Unwrap() error { return e.kind }

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, r.do) })
	}
	mux.HandleFunc("GET /v1/journal/follow", s.followJournal)
	mux.HandleFunc("POST /v1/hosts/{host}/console", s.console)
	mux.HandleFunc("POST /v1/hosts/{host}/exec", s.exec)
	mux.HandleFunc("PUT /v1/hosts/{host}/files", s.putFile)
	mux.HandleFunc("POST /v1/power", s.powerAll)
	mux.HandleFunc("POST /v1/snapshot", s.saveSnapshot)
	mux.Handle("GET /metrics", Metrics(s.c.Rack))
	return mux
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, do func(*apiRequest) (any, error)) {
	c := &apiRequest{Request: r, s: s, rack: s.c.Rack}
	c.Body = http.MaxBytesReader(w, r.Body, maxBody)
	out, err := c.answer(do)
	if err == nil {
		s.answer(w, http.StatusOK, out)
		return
	}
	status := http.StatusBadRequest
	for _, e := range statuses {
		if errors.Is(err, e.err) {
			status = e.status
			break
		}
	}
	s.answer(w, status, errorBody{err.Error()})
}

func hostNames(l *rack.Rack) (names []string) {
	for _, h := range l.Hosts() {
		names = append(names, h.Name())
	}
	return names
}

// noHost says that a rack has no host of a name, and which it has.
func noHost(l *rack.Rack, name string) string {
	return "there is no host " + name + suggest.UseOneOf(name, hostNames(l))
}

func (c *apiRequest) answer(do func(*apiRequest) (any, error)) (any, error) {
	if name := c.PathValue("host"); name != "" {
		var ok bool
		if c.host, ok = c.rack.Host(name); !ok {
			return nil, &refusal{errNotFound, noHost(c.rack, name)}
		}
	}
	if c.Method != http.MethodGet { // the clock waits for the change
		defer c.rack.Clock().Enter()()
	}
	return do(c)
}

// decodeBody decodes the body of a request.
func (c *apiRequest) decodeBody(v any) error {
	dec := json.NewDecoder(c.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the body: %w", err)
	}
	return nil
}

func (s *Server) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.c.Log.Debug("client gone", "err", err)
	}
}

func (s *Server) status() Status {
	var st Status
	if s.c.Info != nil {
		st = s.c.Info()
	}
	r := s.c.Rack.Definition()
	st.PID, st.State, st.Hosts = os.Getpid(), s.c.Rack.Dir(), len(s.c.Rack.Hosts())
	if err := s.c.Rack.Storage(); err != nil {
		st.Storage = err.Error()
	}
	st.Name, st.Seed, st.Time, st.Faults, st.Version = r.Name, r.Seed, s.c.Rack.Clock().Now().UTC(), len(s.c.Rack.Faults()), Version()
	if st.Speed == "" {
		st.Speed = string(r.Speed)
	}
	return st
}

func down(c *apiRequest) (any, error) {
	if c.s.c.Down == nil {
		return nil, &refusal{errForbidden, "this lab belongs to another program, which ends it"}
	}
	st := c.s.status()
	context.AfterFunc(c.Context(), c.s.c.Down) // after the response
	return st, nil
}

// resetRequest is the body of a request to reset a host.
type resetRequest struct {
	Reset string `json:"reset"` // a ResetType of Redfish
}

func reset(c *apiRequest) (any, error) {
	var in resetRequest
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if err := c.host.Power(c.Context(), in.Reset); err != nil {
		return nil, err
	}
	return describe(c.rack, c.host), nil
}

func resetToProfile(c *apiRequest) (any, error) {
	if err := c.host.ResetToProfile(c.Context()); err != nil {
		return nil, err
	}
	return describe(c.rack, c.host), nil
}

func resetSystem(c *apiRequest) (any, error) {
	if c.s.c.ResetSystem == nil {
		return nil, errNoSystems
	}
	if err := c.s.c.ResetSystem(c.Context(), c.host); err != nil {
		return nil, err
	}
	return describe(c.rack, c.host), nil
}

// BMCReset says how to reset a BMC, with the values of Redfish.
type BMCReset struct {
	Kind     string `json:"kind,omitempty"`     // GracefulRestart (the default) or ForceRestart
	Defaults string `json:"defaults,omitempty"` // resets to defaults instead: ResetAll, PreserveNetworkAndUsers, PreserveNetwork
}

func resetBMC(c *apiRequest) (any, error) {
	var in BMCReset
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	var cmd bmc.Command = bmc.Restart{Kind: bmc.ResetKind(cmp.Or(in.Kind, string(bmc.GracefulRestart)))}
	if in.Defaults != "" {
		cmd = bmc.ResetToDefaults{Type: bmc.ResetToDefaultsType(in.Defaults)}
	}
	if _, err := c.host.ApplyBMC(c.Context(), cmd); err != nil {
		return nil, err
	}
	return describe(c.rack, c.host), nil
}

// SelfTest is the result of a BMC's self-test (IPMI v2.0 rev 1.1, §20.4).
type SelfTest struct {
	Result byte `json:"result"` // 0x55: no error
	Detail byte `json:"detail,omitempty"`
}

func selfTest(c *apiRequest) (any, error) {
	var in SelfTest
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	_, err := c.host.ApplyBMC(c.Context(), bmc.SetSelfTest{To: &bmc.SelfTest{Result: in.Result, Detail: in.Detail}})
	if err != nil {
		return nil, err
	}
	return describe(c.rack, c.host), nil
}

// boot sets the boot override. One without a target removes it.
func boot(c *apiRequest) (any, error) {
	var in Override
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	was := c.host.Machine().Override
	o := machine.Override{Enabled: machine.Enabled(in.Enabled), Target: machine.SourceKind(in.Target), Mode: machine.Mode(in.Mode)}
	if o.Mode == "" {
		o.Mode = was.Mode
	}
	switch {
	case in.Target == "" || o.Target == machine.None:
		o.Target, o.Enabled = machine.None, machine.Disabled
	case o.Enabled == "":
		o.Enabled = machine.Once
	}
	all := machine.Transaction{machine.SetOverride{Override: o}}
	if in.URI != "" {
		all = append(all, machine.SetHTTPBoot{URI: in.URI})
	}
	if in.Order != "" {
		order, err := optionsOf(c.host.Machine(), strings.Split(in.Order, ","))
		if err != nil {
			return nil, err
		}
		all = append(all, machine.SetBootOrder{Order: order})
	}
	if err := c.host.Apply(c.Context(), all); err != nil {
		return nil, err
	}
	return c.detail(), nil
}

// detail returns all details of the host.
func (c *apiRequest) detail() Detail {
	d := DetailOf(c.rack, c.host)
	if c.s.c.SystemOf != nil {
		d.System = c.s.c.SystemOf(c.host)
	}
	return d
}

// optionsOf returns the IDs of the boot options of some kinds, in the order of the kinds.
func optionsOf(v *machine.View, kinds []string) (ids []string, err error) {
	for _, k := range kinds {
		n := len(ids)
		for _, o := range v.BootOptions() {
			if string(o.Kind) == k && !slices.Contains(ids, o.ID) {
				ids = append(ids, o.ID)
			}
		}
		if len(ids) == n {
			return nil, fmt.Errorf("%w: order: the server has no boot option of the kind %q", machine.ErrUnknown, k)
		}
	}
	return ids, nil
}

// Image is an image to insert into a slot of virtual media.
type Image struct {
	URL            string `json:"url"`
	WriteProtected bool   `json:"writeProtected"`
	User           string `json:"user,omitempty"` // for the image's server
	Password       string `json:"password,omitempty"`
}

func insert(c *apiRequest) (any, error) {
	var in Image
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	_, err := c.host.ApplyBMC(c.Context(), bmc.InsertMedia{
		Slot: c.PathValue("slot"), Image: in.URL, WriteProtected: in.WriteProtected, User: in.User, Password: in.Password,
	})
	if err != nil {
		return nil, err
	}
	return media(c.host.BMC()), nil
}

func eject(c *apiRequest) (any, error) {
	if _, err := c.host.ApplyBMC(c.Context(), bmc.EjectMedia{Slot: c.PathValue("slot")}); err != nil {
		return nil, err
	}
	return media(c.host.BMC()), nil
}

// bmcLogs returns the logs of a BMC by name.
var bmcLogs = map[bmc.LogName]func(*bmc.View) *bmc.Log{
	bmc.EventLog: func(v *bmc.View) *bmc.Log { return v.Log },
	bmc.AuditLog: func(v *bmc.View) *bmc.Log { return v.Audit },
}

func readLog(c *apiRequest) (any, error) {
	of := bmcLogs[bmc.LogName(c.PathValue("book"))]
	if of == nil {
		return nil, &refusal{errNotFound, fmt.Sprintf("there is no log %s: use %s or %s", c.PathValue("book"), bmc.EventLog, bmc.AuditLog)}
	}
	return logEntries(of(c.host.BMC())), nil
}

func clearLog(c *apiRequest) (any, error) {
	if _, err := c.host.ApplyBMC(c.Context(), bmc.ClearLog{Log: bmc.LogName(c.PathValue("book"))}); err != nil {
		return nil, err
	}
	return readLog(c)
}
