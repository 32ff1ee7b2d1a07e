// Package dialect describes how one vendor's BMC differs from the standards and
// from other vendors' BMCs: a Record of data, with the evidence for each datum in
// the comment beside it, and up to ten hooks where data is not enough. It has no
// handler and knows no protocol's codec.
//
// Evidence is marked in the packages of the vendors: [V] for what a vendor's
// document, a capture or a client's source shows, [K] for what is known from use
// and has no such source.
package dialect

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// RedundantReset is the answer to a reset that asks for the power state that the
// system is in already.
type RedundantReset string

// The answers to a redundant reset.
const (
	AcceptRedundant RedundantReset = "accept" // success, and nothing happens
	RejectRedundant RedundantReset = "refuse" // 409 Conflict
)

// Record describes one vendor's BMC. Its fields are the keys of dialect files.
type Record struct {
	Name            string // name that profiles and dialect files refer to: "generic"
	Product         string // ServiceRoot.Product
	Vendor          string // ServiceRoot.Vendor
	RedfishVersion  string // ServiceRoot.RedfishVersion: the version of DSP0266 that the service claims
	SystemID        string // last segment of the ComputerSystem's URI
	ManagerID       string // last segment of the Manager's URI
	ChassisID       string // last segment of the Chassis's URI
	ManagerModel    string // Manager.Model, unless the profile has bmcModel
	BMC             bmc.Spec
	ResetTypes      []machine.ResetKind  // allowable values of ComputerSystem.Reset
	HangsAfterReset []machine.ResetKind  // resets after which the system hangs in POST until it is powered off
	BootTargets     []machine.SourceKind // allowable values of Boot.BootSourceOverrideTarget
	RedundantReset  RedundantReset       // answer to a reset to the present power state
	MaxImageBytes   int64                // largest firmware image that the UpdateService accepts, in bytes
	Protocol        Protocol
	Presentation    Presentation
	OEM             OEM
	Media           Media
	Uploads         Uploads
	BIOS            BIOS
	Tasks           Tasks
	Logs            Logs
	IPMI            IPMI
	Deviations      []Deviation
	// NICsRenumberAtBoot exchanges the IDs of the network interfaces among each
	// other whenever the system boots.
	NICsRenumberAtBoot bool
}

// Deviation is a rule of the standard that the vendor's service breaks, and that
// the record breaks on purpose. Conformance tests accept it.
type Deviation struct {
	ResourceType string // type of the resource, without version
	// Path is the property that deviates from the type's schema, with everything
	// below it. "@odata.id" is the URI too, "Allow" the methods of the resource.
	Path     string
	Evidence string // what the vendor's service does, and the source that shows it
}

// item is the name of an element of a list: "resetTypes[2]".
func item(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// Validate checks a record. The error joins a yamlfile.Error for each mistake; its
// Field is the key as a dialect file has it.
func (r *Record) Validate() error {
	var errs []error
	need := func(ok bool, field, fix string) {
		if !ok {
			errs = append(errs, yamlfile.Errorf(field, "%s", fix))
		}
	}
	need(r.Name != "", "name", "must not be empty")
	need(r.RedfishVersion != "", "redfishVersion", "must not be empty")
	need(r.SystemID != "", "systemID", "must not be empty")
	need(r.ManagerID != "", "managerID", "must not be empty")
	need(r.ChassisID != "", "chassisID", "must not be empty")
	need(r.RedundantReset == AcceptRedundant || r.RedundantReset == RejectRedundant, "redundantReset", "must be accept or refuse")
	need(r.BMC.SessionTimeout >= 30*time.Second && r.BMC.SessionTimeout <= 86400*time.Second,
		"bmc.sessionTimeout", "must be 30 s to 86400 s (DSP2046, SessionService.SessionTimeout)")
	need(r.BMC.TaskRetention.Ended == 0 || r.BMC.TaskRetention.Ended >= time.Minute, "bmc.taskRetention.ended", "must be a minute at least, or 0 (DSP2046, TaskService.TaskAutoDeleteTimeoutMinutes)")
	need(r.Logs.System != "" && r.Logs.Manager != "", "logs", "system and manager must not be empty")
	for _, l := range []bmc.LogSpec{r.BMC.Log, r.BMC.Audit} {
		need(l.Size > 0 && (l.Full == bmc.Wraps || l.Full == bmc.Stays), "bmc.log, bmc.audit", fmt.Sprintf("size must be positive, full must be %q or %q", bmc.Wraps, bmc.Stays))
	}
	need(r.MaxImageBytes > 0, "maxImageBytes", "must be positive")
	need(len(r.ResetTypes) > 0, "resetTypes", "must not be empty")
	for i, k := range r.ResetTypes {
		need(slices.Contains(machine.ResetKinds, k), item("resetTypes", i), fmt.Sprintf("%q: must be one of %v", k, machine.ResetKinds))
	}
	for i, k := range r.HangsAfterReset {
		need(slices.Contains(r.ResetTypes, k), item("hangsAfterReset", i), fmt.Sprintf("%q: must be one of resetTypes: %v", k, r.ResetTypes))
	}
	need(r.Media.BootTarget == "" || r.Media.BootTarget == machine.UsbCd && slices.Contains(r.BootTargets, machine.UsbCd), "media.bootTarget", "must be UsbCd, and UsbCd one of bootTargets")
	need(r.Uploads.MaxTargets >= 0, "uploads.maxTargets", "must not be negative")
	need(r.Tasks.MissingReads >= 0, "tasks.missingReads", "must not be negative")
	for i, k := range r.BootTargets {
		need(slices.Contains(machine.SourceKinds, k), item("bootTargets", i), fmt.Sprintf("%q: must be one of %v", k, machine.SourceKinds))
	}
	for prefix, version := range r.Protocol.Registries {
		need(registryVersion.MatchString(version), "protocol.registries."+prefix, fmt.Sprintf("%q: must be a version like 1.8.4", version))
	}
	q := r.Protocol.Queries
	need(q.Unknown == NotImplemented || q.Unknown == BadRequest || q.Unknown == Ignored,
		"protocol.queries.unknown", fmt.Sprintf("%q: must be empty, %q or %q", q.Unknown, BadRequest, Ignored))
	need(q.MaxLevels >= 0 && (q.MaxLevels == 0 || q.ExpandAll || q.ExpandLinks || q.ExpandRest),
		"protocol.queries.maxLevels", "must be 0 unless expandAll, expandLinks or expandRest is true")
	need(r.Protocol.PageSize >= 0, "protocol.pageSize", "must not be negative")
	for i, t := range r.Protocol.OEMTypes {
		if err := t.wrong(); err != nil {
			need(false, item("protocol.oemTypes", i), err.Error())
		}
	}
	tags := r.Protocol.ETags
	need(slices.Contains([]ETagFormat{Strong, Weak, DoubleQuoted, Empty}, tags.Format), "protocol.etags.format", fmt.Sprintf("%q: must be empty, %q, %q or %q", tags.Format, Weak, DoubleQuoted, Empty))
	need(!tags.GzipSuffix || r.Protocol.Gzip, "protocol.etags.gzipSuffix", "needs protocol.gzip")
	need(r.Protocol.PatchDelay >= 0 && r.Protocol.PatchDelay <= time.Hour, "protocol.patchDelay", "must be 0 to an hour")
	need(r.Protocol.EmptyCollectionsAfterBoot >= 0, "protocol.emptyCollectionsAfterBoot", "must not be negative")
	for i, p := range r.Protocol.ErrorPrefixes {
		need(p.ResourceType != "" && p.Message.Registry != "" && p.Message.Key != "" && registryVersion.MatchString(p.Message.Version), item("protocol.errorPrefixes", i), p.ResourceType+": needs resourceType, and message.registry, message.version and message.key")
	}
	need(slices.Contains([]ETagComparison{Quoted, Unquoted, Never}, tags.Comparison), "protocol.etags.comparison", fmt.Sprintf("%q: must be empty, %q or %q", tags.Comparison, Unquoted, Never))
	r.validateAccounts(need)
	r.validateMessages(need)
	r.validateIPMI(need)
	r.validatePresentation(need)
	r.validateBIOS(need)
	r.validateInputAliases(need)
	r.validateOEM(need)
	for i, b := range r.Deviations {
		need(b.ResourceType != "" && b.Path != "" && b.Evidence != "", item("deviations", i), "needs resourceType, path and evidence")
	}
	seen := map[string]bool{}
	for i, s := range r.BMC.Slots {
		need(s.ID != "" && !seen[s.ID], item("bmc.slots", i)+".id", fmt.Sprintf("%q: each slot needs an id of its own", s.ID))
		seen[s.ID] = true
	}
	return errors.Join(errs...)
}
