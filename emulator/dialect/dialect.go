// Package dialect says how one vendor's BMC differs from the others: a Record
// of data, each datum with its evidence beside it, and later a handful of
// hooks. It holds no handler and knows no protocol's codec.
package dialect

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Redundant says how a BMC answers a reset that finds the power as wanted.
type Redundant string

// The answers to a redundant reset.
const (
	Accept Redundant = "accept" // success, nothing happens
	Refuse Redundant = "refuse" // 409 Conflict
)

// Record is one vendor's BMC.
type Record struct {
	Name           string // "generic"
	Product        string // ServiceRoot.Product
	Vendor         string // ServiceRoot.Vendor
	RedfishVersion string // DSP0266 version that the service claims
	SystemID       string // last segment of the ComputerSystem's URI
	ManagerID      string
	ChassisID      string
	ManagerModel   string
	BMC            bmc.Spec
	ResetTypes     []machine.ResetKind  // that the service offers
	Hangs          []machine.ResetKind  // after which the server hangs in POST until it is off
	BootTargets    []machine.SourceKind // that the service offers
	Redundant      Redundant
	MaxImage       int64 // bytes of a firmware image
	Protocol       Protocol
	Face           Face
	Own            Own
	Media          Media
	BIOS           BIOS
	Tasks          Tasks
	Logs           Logs
	IPMI           IPMI
	Breaks         []Break
	// Shifts says that with each start of the server its network interfaces have
	// the IDs of others.
	Shifts bool
}

// Break is a rule of the standard that a vendor's service breaks, and the
// record on purpose.
type Break struct {
	Of string // type of the resource, without version
	// Path is the property that is not as the type's schema has it, and what is
	// below it. "@odata.id" is the address as well, "Allow" what methods it takes.
	Path string
	Why  string // what the vendor does, and how one knows
}

// Validate says what is missing or wrong in a record.
func (r *Record) Validate() error {
	var errs []error
	need := func(ok bool, field, fix string) {
		if !ok {
			errs = append(errs, fmt.Errorf("dialect: %s: %s: %s", r.Name, field, fix))
		}
	}
	need(r.Name != "", "Name", "must not be empty")
	need(r.RedfishVersion != "", "RedfishVersion", "must not be empty")
	need(r.SystemID != "", "SystemID", "must not be empty")
	need(r.ManagerID != "", "ManagerID", "must not be empty")
	need(r.ChassisID != "", "ChassisID", "must not be empty")
	need(r.Redundant == Accept || r.Redundant == Refuse, "Redundant", "must be accept or refuse")
	need(r.BMC.SessionTimeout >= 30*time.Second && r.BMC.SessionTimeout <= 86400*time.Second,
		"BMC.SessionTimeout", "must be 30 s to 86400 s (DSP2046, SessionService.SessionTimeout)")
	need(r.BMC.Keep.Ended == 0 || r.BMC.Keep.Ended >= time.Minute, "BMC.Keep.Ended", "must be a minute at least, or 0 (DSP2046, TaskService.TaskAutoDeleteTimeoutMinutes)")
	need(r.Logs.System != "" && r.Logs.Manager != "", "Logs", "System and Manager must not be empty")
	for _, l := range []bmc.LogSpec{r.BMC.Log, r.BMC.Audit} {
		need(l.Size > 0 && (l.Full == bmc.Wraps || l.Full == bmc.Stays), "BMC.Log, BMC.Audit", "Size must be positive, Full one of the ways")
	}
	need(r.MaxImage > 0, "MaxImage", "must be positive")
	need(len(r.ResetTypes) > 0, "ResetTypes", "must not be empty")
	for _, k := range r.ResetTypes {
		need(slices.Contains(machine.ResetKinds, k), "ResetTypes", fmt.Sprintf("%q is no reset", k))
	}
	for _, k := range r.Hangs {
		need(slices.Contains(r.ResetTypes, k), "Hangs", fmt.Sprintf("%q: must be one of ResetTypes", k))
	}
	need(r.Media.Alias == "" || r.Media.Alias == machine.UsbCd && slices.Contains(r.BootTargets, machine.UsbCd), "Media.Alias", "must be UsbCd, and one of BootTargets")
	need(r.Tasks.Late >= 0, "Tasks.Late", "must not be negative")
	for _, k := range r.BootTargets {
		need(slices.Contains(machine.SourceKinds, k), "BootTargets", fmt.Sprintf("%q is no boot target", k))
	}
	for prefix, version := range r.Protocol.Registries {
		need(registryVersion.MatchString(version), "Protocol.Registries", prefix+": must be a version, as 1.8.4 is")
	}
	q := r.Protocol.Queries
	need(q.Unknown == NotImplemented || q.Unknown == BadRequest || q.Unknown == Ignored,
		"Protocol.Queries.Unknown", "must be empty, bad request or ignored")
	need(q.Levels >= 0 && (q.Levels == 0 || q.ExpandAll || q.ExpandLinks || q.ExpandRest),
		"Protocol.Queries.Levels", "must be 0 where $expand is not carried out")
	need(r.Protocol.Page >= 0, "Protocol.Page", "must not be negative")
	for _, t := range r.Protocol.OEM {
		if err := t.wrong(); err != nil {
			need(false, "Protocol.OEM", err.Error())
		}
	}
	tags := r.Protocol.ETags
	need(slices.Contains([]Writing{Strong, Weak, Twice, Empty}, tags.Written), "Protocol.ETags.Written", "must be nothing, weak, twice or empty")
	need(!tags.Suffixed || r.Protocol.Gzip, "Protocol.ETags.Suffixed", "needs Protocol.Gzip")
	need(r.Protocol.Slow >= 0 && r.Protocol.Slow <= time.Hour, "Protocol.Slow", "must be 0 to an hour")
	need(r.Protocol.Bereft >= 0, "Protocol.Bereft", "must not be negative")
	for _, p := range r.Protocol.Prefaced {
		need(p.Of != "" && p.Says.Registry != "" && p.Says.Key != "" && registryVersion.MatchString(p.Says.Version), "Protocol.Prefaced", p.Of+": must have a type, a registry, its version and a key")
	}
	need(slices.Contains([]Comparing{Quoted, Unquoted, Never}, tags.Compared), "Protocol.ETags.Compared", "must be empty, unquoted or never")
	r.validateAccounts(need)
	r.validateSayings(need)
	r.validateIPMI(need)
	r.validateFace(need)
	r.validateBIOS(need)
	r.validateReadings(need)
	r.validateOwn(need)
	for _, b := range r.Breaks {
		need(b.Of != "" && b.Path != "" && b.Why != "", "Breaks", b.Of+": must have Of, Path and Why")
	}
	seen := map[string]bool{}
	for _, s := range r.BMC.Slots {
		need(s.ID != "" && !seen[s.ID], "BMC.Slots", "IDs must be there and differ")
		seen[s.ID] = true
	}
	return errors.Join(errs...)
}
