package redfish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/idrac"
	"github.com/metalab-dev/metalab/emulator/dialect/openbmc"
	"github.com/metalab-dev/metalab/emulator/dialect/supermicro"
	"github.com/metalab-dev/metalab/emulator/dialect/xcc"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// vendorPush is a server of a vendor to which clients push images.
type vendorPush struct {
	*bench
	multipart, plain string // URIs that the UpdateService shows; "": it has none
	image            []byte // of the server's BIOS
}

func newVendorPush(t *testing.T, d *dialect.Record, profile string) *vendorPush {
	t.Helper()
	s, h := newVendorHost(t, d, profile)
	p := &vendorPush{bench: &bench{t: t, h: h, s: s}}
	var updates map[string]any // iLO 4 has none
	must(t, json.Unmarshal(call(t, s, "admin", "GET", resource.UpdateService, "").Body.Bytes(), &updates))
	p.multipart, _ = updates["MultipartHttpPushUri"].(string)
	p.plain, _ = updates["HttpPushUri"].(string)
	identity := h.machine.View().Identity
	p.image = built(t, firmware.Image{Kind: firmware.KindBIOS, Vendor: identity.Manufacturer, Model: identity.Model, Version: "9.9.9"})
	return p
}

func (p *vendorPush) parameters(s string) form {
	return form{"UpdateParameters", "application/json", "", []byte(s)}
}

func (p *vendorPush) file() form {
	return form{"UpdateFile", "application/octet-stream", "bios.img", p.image}
}

// pushes sends parts, and returns the status and the messages of the response.
func (p *vendorPush) pushes(forms ...form) (status int, said string) {
	p.t.Helper()
	kind, body := encodeForms(p.t, forms...)
	w := push(p.t, p.bench, kind, body, p.multipart)
	return w.Code, p.messagesOf(w.Body.Bytes())
}

func (p *vendorPush) messagesOf(body []byte) string {
	var o map[string]any
	if len(body) > 0 {
		must(p.t, json.Unmarshal(body, &o))
	}
	if said := strings.Join(messages(o), "; "); said != "" {
		return said
	}
	return string(body) // iDRAC 8 has an object in the place of the list
}

// keepsNothing fails if a push that was refused has left an image or a task.
func (p *vendorPush) keepsNothing(of string) {
	p.t.Helper()
	if len(p.h.images.stored) > 0 || len(p.h.BMC().Tasks.All()) > 0 {
		p.t.Errorf("%s: %d images and %d tasks are left", of, len(p.h.images.stored), len(p.h.BMC().Tasks.All()))
	}
	p.h.images.stored = nil
}

// TestEveryDialectRefusesABrokenPush pushes to the URIs that each vendor's UpdateService
// shows: what is refused is refused with a message and leaves nothing, and the parts of a
// whole push may come in any order (DSP0266, "Multipart HTTP push updates").
func TestEveryDialectRefusesABrokenPush(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.record.Name, func(t *testing.T) {
			p := newVendorPush(t, v.record, v.profiles[0])
			if p.plain != "" {
				if w := push(t, p.bench, "application/octet-stream", nil, p.plain); w.Code != http.StatusBadRequest || w.Body.Len() == 0 {
					t.Errorf("an empty body: %d %s, want 400 with a message", w.Code, w.Body)
				}
				p.keepsNothing("an empty body")
			}
			if p.multipart == "" {
				return
			}
			for name, forms := range map[string][]form{
				"nothing":                          nil,
				"parameters alone":                 {p.parameters(`{}`)},
				"an empty file":                    {p.parameters(`{}`), {"UpdateFile", "application/octet-stream", "bios.img", nil}},
				"parameters that are no JSON":      {p.parameters(`{`), p.file()},
				"parameters that are no object":    {p.parameters(`7`), p.file()},
				"an unknown parameter":             {p.parameters(`{"Colour":"red"}`), p.file()},
				"an unknown target":                {p.parameters(`{"Targets":["/redfish/v1/Fans/1"]}`), p.file()},
				"an unknown target after the file": {p.file(), p.parameters(`{"Targets":["/redfish/v1/Fans/1"]}`)},
				"Targets of another type":          {p.parameters(`{"Targets":true}`), p.file()},
				"an unknown apply time":            {p.parameters(`{"@Redfish.OperationApplyTime":"Soon"}`), p.file()},
			} {
				if status, said := p.pushes(forms...); status != http.StatusBadRequest || said == "" {
					t.Errorf("%s: %d %q, want 400 with a message", name, status, said)
				}
				p.keepsNothing(name)
			}
			kind, body := encodeForms(t, p.parameters(`{}`), p.file())
			for _, cut := range []int{len(body), len(body) / 2, len("--\r\n")} { // the last leaves a boundary behind which there could be a part
				if w := push(t, p.bench, kind, body[:len(body)-cut], p.multipart); w.Code != http.StatusBadRequest {
					t.Errorf("a body that ends %d bytes early: %d %s, want 400", cut, w.Code, w.Body)
				}
				p.keepsNothing(fmt.Sprintf("a body that ends %d bytes early", cut))
			}
			if status, said := p.pushes(p.file(), p.parameters(`{}`)); status != http.StatusAccepted {
				t.Errorf("UpdateFile before UpdateParameters: %d %s, want 202", status, said)
			}
		})
	}
}

// TestDialectsNamePartsInTheirRegistry shows the messages of each class of dialects: those
// whose Base registry has MissingOrMalformedPart (1.13) and older ones, XCC, which answers as
// to an action, and OpenBMC, which asks for the file alone.
func TestDialectsNamePartsInTheirRegistry(t *testing.T) {
	type row struct {
		name  string
		forms func(p *vendorPush) []form
		want  string
	}
	noFile := func(p *vendorPush) []form { return []form{p.parameters(`{}`)} }
	noParameters := func(p *vendorPush) []form { return []form{p.file()} }
	twice := func(p *vendorPush) []form { return []form{p.parameters(`{}`), p.file(), p.file()} }
	unknownPart := func(p *vendorPush) []form {
		return []form{p.parameters(`{}`), p.file(), {"Colour", "text/plain", "", nil}}
	}
	with := func(parameters string) func(p *vendorPush) []form {
		return func(p *vendorPush) []form { return []form{p.parameters(parameters), p.file()} }
	}
	for _, tt := range []struct {
		d       *dialect.Record
		profile string
		rows    []row
	}{
		{&idrac.Ten, "dell-r770", []row{
			{"no file", noFile, "400 MissingOrMalformedPart; PropertyMissing UpdateFile"},
			{"no parameters", noParameters, "400 MissingOrMalformedPart; PropertyMissing UpdateParameters"},
		}},
		{&idrac.Nine, "dell-r640", []row{ // Base 1.12
			{"no file", noFile, "400 PropertyMissing UpdateFile"},
			{"no parameters", noParameters, "400 PropertyMissing UpdateParameters"},
		}},
		{&xcc.First, "lenovo-sr650-v2", []row{
			{"no file", noFile, "400 ActionParameterMissing UpdateService.MultipartHttpPush UpdateFile"},
			{"no parameters", noParameters, "400 ActionParameterMissing UpdateService.MultipartHttpPush UpdateParameters"},
			{"two files", twice, "400 ActionParameterDuplicate UpdateService.MultipartHttpPush UpdateFile"},
			{"another part", unknownPart, "400 ActionParameterUnknown UpdateService.MultipartHttpPush Colour"},
			{"no object", with(`[]`), "400 ActionParameterValueTypeError [] UpdateParameters UpdateService.MultipartHttpPush"},
			{"another type", with(`{"Targets":7}`), "400 ActionParameterValueTypeError 7 Targets UpdateService.MultipartHttpPush"},
		}},
		{&openbmc.Record, "openbmc-tiogapass", []row{
			{"no file", noFile, "400 MissingOrMalformedPart; PropertyMissing UpdateFile"},
			{"an apply time that bmcweb lacks", with(`{"@Redfish.OperationApplyTime":"OnStartUpdateRequest"}`), "400 PropertyValueNotInList @Redfish.OperationApplyTime OnStartUpdateRequest"},
			{"a parameter that bmcweb lacks", with(`{"ForceUpdate":true}`), "400 PropertyUnknown ForceUpdate"},
			{"two targets", with(`{"Targets":["/redfish/v1/Managers/bmc","/redfish/v1/Managers/bmc"]}`), "400 PropertyValueFormatError [/redfish/v1/Managers/bmc /redfish/v1/Managers/bmc] Targets"},
			{"no parameters", noParameters, "202 "},
			{"another part", unknownPart, "202 "},
		}},
		{&supermicro.X13, "supermicro-621c", []row{
			{"what fwupd sends", with(`{"Targets":["/redfish/v1/Systems/1/Bios"],"@Redfish.OperationApplyTime":"OnStartUpdateRequest",` +
				`"Oem":{"Supermicro":{"BIOS":{"PreserveME":true,"PreserveNVRAM":true,"PreserveSMBIOS":true,"BackupBIOS":false}}}}`), "202 "},
			{"another vendor's parameter", with(`{"Oem":{"Acme":{}}}`), "400 PropertyUnknown Acme"},
		}},
	} {
		p := newVendorPush(t, tt.d, tt.profile)
		for _, r := range tt.rows {
			status, said := p.pushes(r.forms(p)...)
			if got := fmt.Sprint(status, " ", said); !strings.HasPrefix(got, r.want) {
				t.Errorf("%s, %s: %s, want %s", tt.d.Name, r.name, got, r.want)
			}
		}
	}
	p := newVendorPush(t, &openbmc.Record, "openbmc-tiogapass")
	if w := push(t, p.bench, "application/gzip", p.image, p.plain); w.Code != http.StatusBadRequest {
		t.Errorf("a push of application/gzip to OpenBMC: %d %s, want 400", w.Code, w.Body)
	}
}

// TestEveryDialectRefusesABrokenSimpleUpdate sends the actions that download an image, the
// standard's and the vendors', requests that no BMC can carry out: each is refused with a
// message and begins no task; an empty image ends in TaskState Exception.
func TestEveryDialectRefusesABrokenSimpleUpdate(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.record.Name, func(t *testing.T) {
			p := newVendorPush(t, v.record, v.profiles[0])
			targets := 0
			simple := func(uri, image string, more map[string]string) {
				targets++
				bodies := map[string]string{
					"no body": "", "no parameter": `{}`, "no JSON": `{`, "another type": `{"` + image + `":7}`, "no URI": `{"` + image + `":""}`,
					"another parameter": `{"` + image + `":"http://images.test/bios.img","Colour":"red"}`,
				}
				for name, parameter := range more {
					bodies[name] = `{"` + image + `":"http://images.test/bios.img",` + parameter + `}`
				}
				for name, body := range bodies {
					if w := call(t, p.s, "admin", "POST", uri, body); w.Code != http.StatusBadRequest || w.Body.Len() == 0 {
						t.Errorf("POST %s, %s: %d %s, want 400 with a message", uri, name, w.Code, w.Body)
					}
					p.keepsNothing(name)
				}
			}
			if w := call(t, p.s, "admin", "OPTIONS", simpleURI, ""); w.Code < 300 {
				simple(simpleURI, "ImageURI", map[string]string{
					"an unknown target":     `"Targets":["/redfish/v1/Fans/1"]`,
					"a target of no URI":    `"Targets":[7]`,
					"an unknown apply time": `"@Redfish.OperationApplyTime":"Soon"`,
					"an unknown protocol":   `"TransferProtocol":"AVIAN"`,
				})
				p.h.images.remote = map[string][]byte{"http://images.test/empty": {}}
				w := call(t, p.s, "admin", "POST", simpleURI, `{"ImageURI":"http://images.test/empty"}`)
				p.h.pass(time.Minute)
				if got := p.h.BMC().Tasks.All(); len(got) != 1 || got[0].State != bmc.TaskException {
					t.Errorf("SimpleUpdate of an empty image: %d, tasks %+v, want one that failed", w.Code, got)
				}
				p = newVendorPush(t, v.record, v.profiles[0])
			}
			for _, a := range v.record.OEM.Actions {
				for _, parameter := range a.Parameters {
					if parameter.Name == "ImageURI" || parameter.Name == "FirmwareURI" {
						at := strings.ReplaceAll(a.ResourceURI, "{manager}", v.record.ManagerID)
						to := "/Actions/Oem/"
						if slices.ContainsFunc(v.record.OEM.Resources, func(r dialect.Resource) bool { return r.URI == a.ResourceURI }) {
							to = "/Actions/"
						}
						simple(at+cmp.Or(a.Target, to+a.Name), parameter.Name, nil)
					}
				}
			}
			if targets == 0 {
				t.Error("no action downloads an image")
			}
		})
	}
}
