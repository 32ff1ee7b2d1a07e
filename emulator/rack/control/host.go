package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/rack"
)

// Host is one host of a running lab.
type Host struct {
	Name           string `json:"name"`
	Profile        string `json:"profile"`
	Rack           string `json:"rack,omitempty"`
	Power          string `json:"power"`          // as Redfish spells it
	Phase          string `json:"phase"`          // phase of the boot process, between off and running
	Boot           string `json:"boot"`           // next boot: "Pxe (once)", or the kinds of the boot order
	Redfish        string `json:"redfish"`        // URL of the service root
	BMCAddress     string `json:"bmcAddress"`     // for spec.bmc.address of a BareMetalHost
	IPMI           string `json:"ipmi,omitempty"` // host:port of IPMI over LAN; "" when it is switched off
	BootMACAddress string `json:"bootMACAddress,omitempty"`
	Username       string `json:"username"`
	Password       string `json:"password"`
	CAFile         string `json:"caFile"` // certificate authority of the BMC
	Reach          string `json:"reach"`  // reachable, starting or gone; offline: its shard does not run
}

// Hosts returns all hosts of a lab.
func Hosts(l *rack.Rack) []Host {
	out := []Host{} // [] in JSON
	for _, h := range l.Hosts() {
		out = append(out, describe(l, h))
	}
	return out
}

func describe(l *rack.Rack, h *rack.Host) Host {
	v, at := h.Machine(), h.Advertised(h.Address())
	d := Host{
		Name: h.Name(), Profile: v.Profile.Name, Rack: h.Rack(), Power: string(v.Power), Phase: string(v.Phase), Boot: nextBoot(v),
		Redfish:    h.Dialect().Protocol.Scheme() + "://" + at + "/redfish/v1/",
		BMCAddress: fmt.Sprintf("redfish-virtualmedia%s://%s/redfish/v1/Systems/%s", httpSuffix[h.Dialect().Protocol.PlainHTTP], at, h.Dialect().SystemID),
		CAFile:     l.CAFile(), Reach: string(h.Reach()),
	}
	if at, ok := h.IPMI(); ok {
		d.IPMI = h.Advertised(at)
	}
	if nics := v.Identity.NICs; len(nics) > 0 {
		d.BootMACAddress = nics[0].MAC
	}
	if a, ok := h.Admin(); ok {
		d.Username, d.Password = a.Name, a.Password
	}
	return d
}

// httpSuffix is appended to the scheme of a BMC address without TLS.
var httpSuffix = map[bool]string{true: "+http"}

// nextBoot describes what a machine boots next.
func nextBoot(v *machine.View) string {
	if o := v.Override; o.Enabled != machine.Disabled {
		return fmt.Sprintf("%s (%s)", o.Target, strings.ToLower(string(o.Enabled)))
	}
	var kinds []string
	for _, b := range v.EffectiveBootOrder() {
		if n := len(kinds); b.Enabled && (n == 0 || kinds[n-1] != string(b.Kind)) {
			kinds = append(kinds, string(b.Kind))
		}
	}
	return strings.Join(kinds, ", ")
}

// Detail is everything that the control API shows of a host.
type Detail struct {
	Host
	Manufacturer string `json:"manufacturer"`
	Model        string `json:"model"`
	Serial       string `json:"serial"`
	UUID         string `json:"uuid"`
	BIOS         string `json:"bios"`
	BMC          string `json:"bmc"` // version of its firmware
	Running      string `json:"running,omitempty"`
	System
	Boots      uint64       `json:"boots"` // number of POSTs
	Override   Override     `json:"override"`
	Order      []BootOption `json:"order"`
	NICs       []NIC        `json:"nics"`
	Media      []Media      `json:"media"`
	Tasks      []Task       `json:"tasks"`
	Sessions   int          `json:"sessions"`
	LogEntries int          `json:"logEntries"`
}

// System describes the operating system that a host runs. The zero value: it runs none.
type System struct {
	Files string `json:"files,omitempty"` // where its files come from, for people
	// CPU is the processor time of this machine that the boot's processes have used, in seconds.
	CPU float64 `json:"cpuSeconds,omitempty"`
}

// Override is a boot override, with the values of Redfish.
type Override struct {
	Enabled string `json:"enabled"`
	Target  string `json:"target"`
	Mode    string `json:"mode,omitempty"`
	URI     string `json:"uri,omitempty"` // URI of an HTTP boot
	// Order, in a request, sets the boot order, too: kinds of boot options, such as "Hdd,Cd".
	Order string `json:"order,omitempty"`
}

// BootOption is an entry of the boot order.
type BootOption struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

// NIC is a network port.
type NIC struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	MAC  string `json:"mac"`
}

// Media is a slot of virtual media and its image.
type Media struct {
	Slot           string `json:"slot"`
	Image          string `json:"image,omitempty"` // URL
	Inserted       bool   `json:"inserted"`
	WriteProtected bool   `json:"writeProtected,omitempty"`
	Size           int64  `json:"size,omitempty"` // bytes
}

// Task is a task of a BMC.
type Task struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	State   string `json:"state"` // as Redfish spells it
	Percent int    `json:"percent"`
	Fault   string `json:"fault,omitempty"`
}

// LogEntry is an entry of a BMC's log.
type LogEntry struct {
	ID       uint64         `json:"id"`
	Time     time.Time      `json:"time"` // the lab's time
	Severity event.Severity `json:"severity"`
	Kind     string         `json:"kind"` // "power.on"
	Subject  string         `json:"subject"`
	Text     string         `json:"text"`
}

// DetailOf returns all details of a host.
func DetailOf(l *rack.Rack, h *rack.Host) Detail {
	v, b := h.Machine(), h.BMC()
	d := Detail{
		Host: describe(l, h), Manufacturer: v.Identity.Manufacturer, Model: v.Identity.Model, Serial: v.Identity.Serial,
		UUID: v.Identity.UUID, BIOS: v.Profile.BIOS.Version, BMC: v.Profile.BMCFirmware, Boots: v.Boots,
		Override: Override{Enabled: string(v.Override.Enabled), Target: string(v.Override.Target), Mode: string(v.Override.Mode), URI: v.Boot.HTTPURI},
		Order:    []BootOption{}, NICs: []NIC{}, Media: media(b), Tasks: []Task{},
		Sessions: len(b.Sessions), LogEntries: b.Log.Len(),
	}
	if v.OS != nil {
		d.Running = v.OS.Name
	}
	for _, o := range v.EffectiveBootOrder() {
		d.Order = append(d.Order, BootOption{ID: o.ID, Kind: string(o.Kind), Name: o.Name, Enabled: o.Enabled})
	}
	for _, n := range v.Identity.NICs {
		d.NICs = append(d.NICs, NIC{ID: n.ID, Name: n.Name, MAC: n.MAC})
	}
	for _, j := range b.Tasks.All() {
		d.Tasks = append(d.Tasks, Task{ID: j.ID, Name: j.Name, State: string(j.State), Percent: j.Percent(h.Now()), Fault: j.Fault})
	}
	return d
}

func media(b *bmc.View) []Media {
	out := []Media{} // [] in JSON
	for _, s := range b.Slots {
		out = append(out, Media{Slot: s.ID, Image: s.Image, Inserted: s.Inserted, WriteProtected: s.WriteProtected, Size: s.Size})
	}
	return out
}

// EventsOf returns the entries of the event log of a host's BMC, oldest first.
func EventsOf(h *rack.Host) []LogEntry { return logEntries(h.BMC().Log) }

func logEntries(log *bmc.Log) []LogEntry {
	out := []LogEntry{} // [] in JSON
	for e := range log.Entries() {
		out = append(out, LogEntry{
			ID: e.ID, Time: e.At, Severity: e.Severity(), Kind: string(e.Kind),
			Subject: strings.TrimSuffix(strings.Join([]string{string(e.Subject.Part), e.Subject.ID}, " "), " "), Text: e.Text(),
		})
	}
	return out
}
