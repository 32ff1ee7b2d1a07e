package view

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// server is all that the page of a server shows, except the parts with events of their own.
type server struct {
	Detail   control.Detail     `json:"detail"` // without the password
	Disks    control.Disks      `json:"disks"`
	BIOS     bios               `json:"bios"`
	Firmware []component        `json:"firmware"`
	Log      []control.LogEntry `json:"log"` // the latest entries
	Faults   []fault.Listed     `json:"faults"`
	Quirks   []string           `json:"quirks"`
	Object   Object             `json:"object"`
	History  []Step             `json:"history"` // steps of the object
	Health   string             `json:"health"`
}

// bios are the BIOS attributes of a server.
type bios struct {
	Attributes []attribute `json:"attributes"` // in force
	Pending    []attribute `json:"pending"`    // for the next reset
	Applied    []attribute `json:"applied"`    // last
	AppliedAt  string      `json:"appliedAt,omitempty"`
}

// attribute is a BIOS attribute and its value.
type attribute struct {
	Name  string         `json:"name"`
	Value firmware.Value `json:"value"`
}

// component is a component of the firmware.
type component struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Staged  string `json:"staged,omitempty"`
	Broken  bool   `json:"broken,omitempty"`
	Update  string `json:"update,omitempty"` // ID of the update in progress
}

// maxLog is how many entries of the event log a server's page shows.
const maxLog = 100

// serverOf returns the data of a host's page.
func (s *Server) serverOf(h *rack.Host) server {
	v := h.Machine()
	out := server{
		Detail: control.DetailOf(s.c.Rack, h), Disks: control.DisksOf(h), Log: control.EventsOf(h),
		Health: string(health(v)), Faults: []fault.Listed{}, Quirks: []string{}, Firmware: []component{},
		BIOS: bios{Attributes: attributes(v.BIOSSettings()), Pending: []attribute{}, Applied: []attribute{}},
	}
	out.Object, out.History = s.rack.object(h.Name())
	out.Detail.Password = ""
	if n := len(out.Log); n > maxLog {
		out.Log = out.Log[n-maxLog:]
	}
	slices.Reverse(out.Log)
	if p := v.Firmware.Pending(); p != nil {
		out.BIOS.Pending = attributes(p.Settings)
	}
	if a := v.Firmware.Applied(); a != nil {
		out.BIOS.Applied, out.BIOS.AppliedAt = attributes(a.Settings), a.At.UTC().Format("2006-01-02 15:04:05")
	}
	for _, c := range v.Components() {
		x := component{ID: c.ID, Name: cmp.Or(c.Name, c.ID), Version: c.Active.Version, Broken: c.Broken, Update: c.Update}
		if c.Staged != nil {
			x.Staged = c.Staged.Version
		}
		out.Firmware = append(out.Firmware, x)
	}
	for _, r := range s.c.Rack.Faults() {
		if on(r, h.Name()) {
			r.Hits = 0 // they change with every request
			out.Faults = append(out.Faults, r)
		}
	}
	for _, q := range h.Quirks() {
		out.Quirks = append(out.Quirks, q.ID)
	}
	return out
}

func attributes(all []firmware.Setting) []attribute {
	out := make([]attribute, 0, len(all)) // [] in JSON
	for _, a := range all {
		out = append(out, attribute{a.Name, a.Value})
	}
	return out
}

// object returns the object of a host and its history; the zero value when it has none.
func (s *rackState) object(host string) (Object, []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[host], append([]Step{}, s.history[host]...)
}

// sensor is a reading of a sensor.
type sensor struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	Level   string   `json:"level"`
	Reading *float64 `json:"reading"` // nil: none now
}

// units are the units of sensors.
var units = map[string]string{"temperature": "°C", "speed": "RPM", "voltage": "V", "power": "W", "energy": "kWh"}

// sensorsOf returns the readings of a host's sensors.
func sensorsOf(h *rack.Host) []sensor {
	v, now := h.Machine().Thermal, h.Now()
	out := []sensor{} // [] in JSON
	for _, s := range v.Model.Sensors {
		x := sensor{ID: s.ID, Name: s.Name, Unit: units[string(s.Kind)], Level: string(v.Level(s.ID))}
		if r, ok := v.Reading(s.ID, now); ok {
			x.Reading = &r
		}
		out = append(out, x)
	}
	return out
}

// contents answers with what lies on the drives and volumes of a host, by bay and by device.
func (s *Server) contents(w http.ResponseWriter, r *http.Request) {
	h, ok := s.host(w, r)
	if !ok {
		return
	}
	out := map[string]string{}
	note := func(id string) {
		if m, err := h.Medium(id); err == nil { // else it was pulled meanwhile
			out[id] = contentOf(m)
		}
	}
	for _, c := range h.Machine().Storage.Controllers() {
		for _, d := range c.Drives {
			if d.Serial != "" && len(d.Volumes) == 0 {
				note(d.ID)
			}
		}
		for _, v := range c.Volumes {
			note(v.Device())
		}
	}
	s.answer(w, out)
}

// objects answers with the Kubernetes objects of a host.
func (s *Server) objects(w http.ResponseWriter, r *http.Request) {
	if h, ok := s.host(w, r); ok {
		s.describe(w, r, h.Name())
	}
}

// describe answers with the Kubernetes objects of a host that there is.
func (s *Server) describe(w http.ResponseWriter, r *http.Request, host string) {
	out := []Described{} // [] in JSON
	if s.c.Objects != nil {
		found, err := s.c.Objects.Describe(r.Context(), host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		out = append(out, found...)
	}
	s.answer(w, out)
}

func (s *Server) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.c.Log.Debug("page gone", "err", err)
	}
}
