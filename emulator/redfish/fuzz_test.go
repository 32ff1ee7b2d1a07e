package redfish

import (
	"encoding/json"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// exchanged is a Rack of one host that tests can replace.
type exchanged struct{ *host }

func (r *exchanged) At(netip.AddrPort) (resource.Host, bool) { return r.host, true }

// target is a URI and method that accept a body.
type target struct {
	method, uri string
	inputs      []resource.Input
}

// targets returns all writable resources, collections that accept POST, and actions, with
// existing IDs in the place of variables.
func targets(t testing.TB, s *Service, h *host) (changes, actions []target) {
	t.Helper()
	at := resource.TakeSnapshot(h)
	for _, r := range resource.Routes(s.tree.Rows, s.tree) {
		for _, uri := range addresses(s, at, r) {
			switch {
			case r.Action != nil:
				actions = append(actions, target{"POST", uri, r.Action.Inputs})
			case r.Patch != nil && !r.Members:
				changes = append(changes, target{"PATCH", uri, r.Patch.Inputs})
			}
			if r.Create != nil && r.Action == nil {
				actions = append(actions, target{"POST", uri, r.Create.Inputs})
			}
		}
	}
	return changes, actions
}

// addresses returns the URIs of a pattern that exist: with the first valid ID for each
// variable.
func addresses(s *Service, at *resource.Snapshot, r *resource.Route) []string {
	uri := r.Pattern
	ids := map[string]string{}
	for _, name := range r.Vars {
		m := &resource.Match{Route: &resource.Route{Row: &resource.Row{DependsOn: resource.AllParts()}, Tree: s.tree}, IDs: ids}
		all := resource.Members[name](m.View(at))
		if len(all) == 0 {
			return nil
		}
		ids[name] = all[0]
		uri = strings.ReplaceAll(uri, "{"+name+"}", all[0])
	}
	if s.tree.Find(&url.URL{Path: uri}) == nil || s.renderer.Representation(s.tree.Find(&url.URL{Path: uri}), at) == nil {
		return nil
	}
	return []string{uri}
}

// fuzzed sends a body and checks that DSP0266 allows the response: its status is never
// 500, and an error has an error response with messages.
func fuzzed(t testing.TB, s *Service, to target, body string) {
	t.Helper()
	w := call(t, s, "admin", to.method, to.uri, body)
	switch {
	case w.Code >= 500 && w.Code != 501 && w.Code != 503 || w.Code < 200:
		t.Fatalf("%s", shape(to.method, to.uri, body, w))
	case w.Code >= 400:
		_, infos := errorOf(t, w)
		for _, i := range infos {
			of := strings.HasPrefix(i.ID, "Base.1.22.Property") || strings.HasPrefix(i.ID, "Base.1.22.ActionParameter")
			if of && (len(i.Related) == 0 || !strings.HasPrefix(i.Related[0], "#/")) && w.Code == 400 {
				t.Errorf("%s: %s names no property", shape(to.method, to.uri, body, w), i.ID)
			}
		}
	case w.Code == 200 && !json.Valid(w.Body.Bytes()):
		t.Fatalf("%s", shape(to.method, to.uri, body, w))
	}
}

// spoiled are values that hardly any property accepts.
var spoiled = []string{
	`null`, `true`, `0`, `-1`, `1e999`, `0.5`, `9223372036854775807`, `""`, `"\u0000"`, `"x y/z%"`, `"` + strings.Repeat("x", 5000) + `"`, `{}`, `[]`, `[null]`, `[{}]`, `[[]]`,
	`{"@odata.id":7}`, `{"@odata.id":"/redfish/v1/Nowhere"}`, `{"":null}`, `[{"@odata.id":"/redfish/v1"},1]`, `{"a":{"b":[{"c":null}]}}`,
}

// TestInvalidInputIsRejectedForEveryProperty sends invalid values for every property and
// parameter of every target, one at a time.
func TestInvalidInputIsRejectedForEveryProperty(t *testing.T) {
	h := newHost(t)
	here := &exchanged{h}
	s, err := New(Config{Rack: here})
	must(t, err)
	changes, actions := targets(t, s, h)
	if len(changes) < 5 || len(actions) < 5 {
		t.Fatalf("%d things can be changed, %d carried out", len(changes), len(actions))
	}
	sent := 0
	for _, to := range append(changes, actions...) {
		here.host = newHost(t) // an accepted body must not affect the next
		for _, body := range []string{``, `{`, `[]`, `null`, `7`, `{}`, `{"":1}`, `{"Nothing":1}`, `{"@odata.id":1}`, `{"@Redfish.Nothing":{}}`, "{\"\xff\":1}"} {
			fuzzed(t, s, to, body)
		}
		var spoil func(inputs []resource.Input, before, after string)
		spoil = func(inputs []resource.Input, before, after string) {
			for _, in := range inputs {
				for _, value := range spoiled {
					fuzzed(t, s, to, before+strconv.Quote(in.Name)+":"+value+after)
					sent++
				}
				switch {
				case in.Kind == resource.Group:
					spoil(in.Of, before+strconv.Quote(in.Name)+`:{`, `}`+after)
				case in.Kind == resource.Array && in.Of[0].Kind == resource.Group:
					spoil(in.Of[0].Of, before+strconv.Quote(in.Name)+`:[{`, `}]`+after)
				}
			}
		}
		spoil(to.inputs, "{", "}")
	}
	t.Logf("%d bodies were sent to %d targets", sent, len(changes)+len(actions))
}

// completeBody returns a body with every input, in the order of the inputs.
func completeBody(inputs []resource.Input, v resource.View) string {
	var b strings.Builder
	for i, in := range inputs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(in.Name) + ":" + example(in, v))
	}
	return "{" + b.String() + "}"
}

func example(in resource.Input, v resource.View) string {
	switch in.Kind {
	case resource.Group:
		return completeBody(in.Of, v)
	case resource.Array:
		return "[" + example(in.Of[0], v) + "]"
	case resource.Boolean:
		return "true"
	case resource.Integer, resource.Number:
		return strconv.FormatInt(in.Min, 10)
	case resource.Link:
		return `{"@odata.id":"/redfish/v1/Systems/1"}`
	case resource.StringMap, resource.ScalarMap:
		return `{"a":"b"}`
	}
	return `"x"`
}

func fuzzTargets(f *testing.F, pick func(changes, actions []target) []target) {
	h := newHost(f)
	here := &exchanged{h}
	s, err := New(Config{Rack: here})
	must(f, err)
	all := pick(targets(f, s, h))
	for i, to := range all {
		f.Add(uint16(i), completeBody(to.inputs, resource.View{}))
	}
	for _, body := range []string{
		`{"Boot":{"BootSourceOverrideEnabled":"Once"},"X/~":[{}]}`, `{"SessionTimeout":3e1}`, `{"@odata.id":1}`, `{"":{}}`, `{"Boot":{"":null}}`, `[]`, `{"a":1,"a":2}`,
		"{\"\xff\":\"\xff\"}", `{"Name":{"Boot":[[[]]]}}`, `{"ResetType":"Nmi","x":1}`, `{"Image":"https://u:p@[::1]:8/b.iso","Password":"x"}`, `{"Image":"://@"}`, ``, `null`,
	} {
		f.Add(uint16(len(body)), body)
	}
	f.Fuzz(func(t *testing.T, which uint16, body string) {
		before := [2]any{here.Machine(), here.BMC()}
		fuzzed(t, s, all[int(which)%len(all)], body)
		if before != [2]any{here.Machine(), here.BMC()} { // an accepted body must not affect the next
			here.host = newHost(t)
		}
	})
}

// FuzzPatch sends PATCH to every writable resource.
func FuzzPatch(f *testing.F) {
	fuzzTargets(f, func(changes, _ []target) []target { return changes })
}

// FuzzAction sends POST to every action and to every collection that accepts members.
func FuzzAction(f *testing.F) {
	fuzzTargets(f, func(_, actions []target) []target { return actions })
}

func FuzzPath(f *testing.F) {
	for _, path := range []string{"/redfish/v1/", "/redfish/v1/Systems/1/Storage/1/Drives/Disk.0", "/redfish/v1/Systems/1/", "/redfish/v1/%2f", "/redfish/v1/Systems/1?$top", "/{system}"} {
		f.Add(path)
	}
	s := newService(f, newHost(f))
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			t.Skip()
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = u
		r.SetBasicAuth(accounts[0].Name, accounts[0].Password)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != 501 {
			t.Fatalf("%s", shape("GET", path, "", w))
		}
	})
}

// FuzzPush pushes firmware images with update parameters.
func FuzzPush(f *testing.F) {
	part := func(name, body string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"f\"\r\n\r\n" + body + "\r\n"
	}
	image := string(built(f, biosImage))
	for _, body := range []string{
		part("UpdateParameters", `{"Targets":["/redfish/v1/Systems/1"],"ForceUpdate":true}`) + part("UpdateFile", image) + part("OemX", "y") + "--x--\r\n",
		part("UpdateFile", "no image") + part("UpdateParameters", `{"@Redfish.OperationApplyTime":"OnReset","Oem":{"a":1}}`) + "--x--\r\n",
		part("UpdateParameters", `{"Targets":7}`) + "--x--\r\n", part("UpdateParameters", "{}"), "--x--", image, "",
	} {
		f.Add(true, body)
		f.Add(false, body)
	}
	here := &exchanged{newHost(f)}
	s, err := New(Config{Rack: here})
	must(f, err)
	f.Fuzz(func(t *testing.T, plain bool, body string) {
		if len(here.BMC().Tasks.All()) > 0 { // an accepted body must not affect the next
			here.host = newHost(t)
		}
		uri, mime := resource.MultipartPush, "multipart/form-data; boundary=x"
		if plain {
			uri, mime = resource.PlainPush, "application/octet-stream"
		}
		w := call(t, s, "admin", "POST", uri, body, "Content-Type", mime)
		if w.Code >= 500 || w.Code < 202 {
			t.Fatalf("%s", shape("POST", uri, body, w))
		}
		if w.Code >= 400 {
			errorOf(t, w)
		}
	})
}
