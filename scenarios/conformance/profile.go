package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Importance is the weight of a check for one use of a server.
type Importance string

// The importances.
const (
	Must   Importance = "must"   // without it the use fails
	Should Importance = "should" // without it the use works with a workaround, or less well
	May    Importance = "may"    // it is worth knowing
)

// Profile is one use of a server: the checks that it needs. The prerequisites of a
// check have at least its importance.
type Profile struct {
	Name   string
	Title  string
	Must   []string // IDs
	Should []string
	May    []string
}

// What several profiles need.
var (
	redfishAccess = []string{"NET-001", "NET-002", "ROOT-001", "ROOT-002", "AUTH-001", "AUTH-007", "AUTH-008", "SYS-001", "SYS-003", "SYS-004"}
	redfishPower  = []string{"PWR-001", "PWR-002", "PWR-003", "PWR-007"}
	redfishBoot   = []string{"BOOT-001", "BOOT-002", "BOOT-008"}
	virtualMedia  = []string{"VM-001", "VM-002", "VM-003", "VM-005", "VM-008", "VM-011"}
	ipmiControl   = []string{"NET-007", "IPMI-001", "IPMI-004", "IPMI-007", "PWR-009", "BOOT-014"}
	inventory     = []string{"SYS-002", "SYS-005", "SYS-006", "STO-001", "ROOT-007", "SCH-004"}
	endurance     = []string{"NET-003", "NET-004", "NET-005", "AUTH-002", "AUTH-003", "AUTH-005", "AUTH-006", "ROOT-005", "ROOT-011", "ROB-002", "TIME-001"}
)

// Profiles are all uses.
var Profiles = []Profile{
	{
		Name: "metal3-ipmi-pxe", Title: "Metal³ with IPMI and PXE",
		Must: slices.Concat(ipmiControl, []string{"BOOT-010"}), Should: []string{"IPMI-003", "IPMI-006", "IPMI-008", "E2E-002"}, May: []string{"IPMI-002", "IPMI-005"},
	},
	{
		Name: "metal3-redfish-pxe", Title: "Metal³ with Redfish and PXE",
		Must:   slices.Concat(redfishAccess, redfishPower, redfishBoot, []string{"BOOT-010"}),
		Should: slices.Concat(inventory, endurance, []string{"SCH-002", "BOOT-003", "BOOT-004", "BOOT-005", "BOOT-007", "BOOT-009", "PWR-004", "PWR-005"}), May: []string{"BOOT-006", "ROOT-003", "E2E-002"},
	},
	{
		Name: "metal3-redfish-vmedia", Title: "Metal³ with Redfish and virtual media",
		Must:   slices.Concat(redfishAccess, redfishPower, redfishBoot, virtualMedia),
		Should: slices.Concat(inventory, endurance, []string{"SCH-002", "BOOT-003", "BOOT-004", "BOOT-005", "BOOT-007", "BOOT-009", "PWR-004", "PWR-005", "VM-004", "VM-006", "VM-007", "VM-009", "VM-010", "VM-012", "VM-013", "E2E-001"}),
		May:    []string{"BOOT-006", "ROOT-003", "VM-014"},
	},
	{
		Name: "metal3-idrac-vmedia", Title: "Metal³ with idrac-virtualmedia",
		Must:   slices.Concat(redfishAccess, redfishPower, redfishBoot, virtualMedia, []string{"TASK-001"}),
		Should: slices.Concat(inventory, endurance, []string{"ROOT-003", "VM-006", "VM-007", "VM-009", "VM-012", "LIC-001", "MGR-001", "E2E-001"}),
		May:    []string{"SCH-002", "VM-004", "VM-014"},
	},
	{
		Name: "firmware-settings", Title: "BIOS settings and firmware updates",
		Must:   slices.Concat(redfishAccess, []string{"BIOS-001", "BIOS-002", "BIOS-003", "BIOS-004", "FW-001", "FW-002"}),
		Should: []string{"BIOS-005", "BIOS-006", "FW-003", "TASK-001", "ROOT-010", "ROOT-011"}, May: []string{"BIOS-007", "FW-004"},
	},
	{
		Name: "raid", Title: "RAID",
		Must:   slices.Concat(redfishAccess, []string{"STO-001", "STO-002", "STO-004"}),
		Should: []string{"STO-003", "STO-005", "TASK-001"}, May: []string{"STO-006", "STO-007", "STO-008"},
	},
	{
		Name: "secure-boot", Title: "secure boot",
		Must: slices.Concat(redfishAccess, []string{"SB-001", "SB-002"}), Should: []string{"BOOT-009", "PWR-003"}, May: []string{"SB-003"},
	},
	{
		Name: "tinkerbell", Title: "Tinkerbell",
		Must:   slices.Concat(redfishAccess, redfishPower, redfishBoot, []string{"BOOT-010"}),
		Should: slices.Concat(endurance, []string{"BOOT-003", "BOOT-004", "BOOT-006", "BOOT-009", "ROOT-003"}), May: []string{"VM-003", "IPMI-004"},
	},
	{
		Name: "maas", Title: "MAAS",
		Must:   slices.Concat(redfishAccess, []string{"PWR-001", "PWR-002", "PWR-003", "BOOT-001", "BOOT-002", "BOOT-010"}),
		Should: []string{"BOOT-004", "BOOT-008", "ROOT-010", "NET-003", "AUTH-005"}, May: []string{"IPMI-004", "PWR-009", "BOOT-014"},
	},
}

// FindProfile returns the profile of a name.
func FindProfile(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("verdict profile %q is not one of %s", name, strings.Join(names, ", "))
}

// Importances returns the importance of each check that the profile names, and of
// their prerequisites.
func (p Profile) Importances() map[string]Importance {
	after := map[string][]string{}
	for _, c := range Checks() {
		after[c.ID] = c.After
	}
	all := map[string]Importance{}
	for _, set := range []struct {
		of  Importance
		ids []string
	}{{Must, p.Must}, {Should, p.Should}, {May, p.May}} {
		for open := slices.Clone(set.ids); len(open) > 0; open = open[1:] {
			if _, there := all[open[0]]; !there {
				all[open[0]] = set.of
				open = append(open, after[open[0]]...)
			}
		}
	}
	return all
}

// Readiness is the verdict of a profile.
type Readiness string

// The readinesses.
const (
	Ready           Readiness = "READY"
	ReadyWithQuirks Readiness = "READY WITH QUIRKS"
	NotReady        Readiness = "NOT READY"
	Undecided       Readiness = "UNDECIDED" // a check that matters could not be made
)

// Conclusion is the verdict of the results on a profile.
type Conclusion struct {
	Profile   string    `json:"profile"`
	Title     string    `json:"title"`
	Readiness Readiness `json:"readiness"`
	Blocker   *Blocker  `json:"blocker,omitempty"` // the first that a server meets
	Blockers  []string  `json:"blockers,omitempty"`
	Quirks    []string  `json:"quirks,omitempty"` // by name, or the check that has no name for it
	Errors    []string  `json:"errors,omitempty"`
	Untested  []string  `json:"untested,omitempty"` // checks that must hold, which the run's level or flags left out, or which it did not reach
}

// Blocker is a failed check that must hold.
type Blocker struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Step   Step   `json:"step"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// Conclude judges the results of a run by a profile.
func (p Profile) Conclude(results []Result) Conclusion {
	weights := p.Importances()
	out := Conclusion{Profile: p.Name, Title: p.Title}
	quirks := map[string]bool{}
	decided := false // one of the checks that the profile itself names
	var blockers []Result
	made := map[string]bool{}
	for _, r := range results {
		made[r.ID] = true
		weight, matters := weights[r.ID]
		if !matters || weight == May {
			continue
		}
		for _, q := range r.Quirks {
			quirks[q.Name] = true
		}
		decided = decided || r.Verdict != Skip && slices.Contains(p.Must, r.ID)
		switch {
		case r.Verdict == Fail && weight == Must:
			blockers = append(blockers, r)
		case (r.Verdict == Fail || r.Verdict == Warn) && len(r.Quirks) == 0:
			quirks[r.ID] = true
		case r.Verdict == Broken && weight == Must:
			out.Errors = append(out.Errors, r.ID)
		case r.Verdict == Skip && weight == Must && (strings.HasPrefix(r.Reason, "needs ") || r.Reason == NotBuilt || r.Reason == "dry run"):
			out.Untested = append(out.Untested, r.ID)
		}
	}
	for id, weight := range weights { // the run was interrupted before it, or other checks were selected
		if weight == Must && !made[id] {
			out.Untested = append(out.Untested, id)
		}
	}
	slices.Sort(out.Untested)
	slices.SortStableFunc(blockers, func(a, b Result) int { return slices.Index(Steps, a.Step) - slices.Index(Steps, b.Step) })
	for _, r := range blockers {
		out.Blockers = append(out.Blockers, r.ID)
	}
	out.Quirks = slices.Sorted(maps.Keys(quirks))
	switch {
	case len(blockers) > 0:
		first := blockers[0]
		out.Readiness = NotReady
		out.Blocker = &Blocker{ID: first.ID, Title: first.Title, Step: first.Step, Reason: first.Reason, Remedy: first.remedy()}
	case len(out.Errors) > 0, !decided:
		out.Readiness = Undecided
	case len(out.Quirks) > 0:
		out.Readiness = ReadyWithQuirks
	default:
		out.Readiness = Ready
	}
	return out
}

// remedy returns the most exact remedy.
func (r Result) remedy() string {
	if r.Advice != "" {
		return r.Advice
	}
	return r.Remedy
}

// String is the one line that people want.
func (c Conclusion) String() string {
	line := string(c.Readiness) + " for " + c.Profile
	switch {
	case c.Blocker != nil:
		line += fmt.Sprintf(": %s breaks the step %s: %s. Remedy: %s", c.Blocker.ID, c.Blocker.Step, c.Blocker.Reason, c.Blocker.Remedy)
	case len(c.Errors) > 0:
		line += ": the tool or the network failed in " + strings.Join(c.Errors, ", ")
	case c.Readiness == Undecided:
		line += ": none of its checks ran"
	case len(c.Quirks) > 0:
		line += ": " + strings.Join(c.Quirks, ", ")
	}
	if len(c.Untested) > 0 {
		line += fmt.Sprintf(" (the run left out %d that must hold)", len(c.Untested))
	}
	return line
}
