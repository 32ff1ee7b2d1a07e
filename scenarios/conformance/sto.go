package conformance

import (
	"context"
	"slices"
	"strings"
)

// stoChecks are the checks of storage.
var stoChecks = []Check{
	{
		ID: "STO-001", Title: "storage, controllers and drives with size, medium and serial number", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "rootDeviceHints do not match", Remedy: "inspect in-band",
		After: []string{"SYS-001"}, Run: drivesDescribed,
	},
	{
		ID: "STO-002", Title: "RAID types of the controllers, or Volumes/Capabilities", Level: ReadOnly, Protocol: Redfish, Step: Prepare,
		Predicts: "RAID cannot be prepared", Remedy: "configure RAID by hand, or use software RAID",
		After: []string{"STO-001"}, Run: raidShown,
	},
	{
		ID: "STO-003", Title: "drives match the disks of the operating system", Level: Disruptive, Protocol: RedfishAgent, Step: Provision,
		Predicts: "the wrong root disk is written", Remedy: "use hints of the operating system",
		After: []string{"STO-001", "VM-011"}, Needs: []Facility{NeedsBootMedia}, Run: drivesMatch,
	},
	{
		ID: "STO-004", Title: "a volume is created, shown and deleted", Level: Destructive, Protocol: Redfish, Step: Prepare,
		Predicts: "RAID cannot be prepared", Remedy: "configure RAID by hand",
		After: []string{"STO-002"}, Run: volumeLifecycle,
	},
	{
		ID: "STO-005", Title: "volumes are applied at once or on reset", Level: Destructive, Protocol: Redfish, Step: Prepare,
		Predicts: "RAID needs a reset that nobody does", Remedy: "restart after preparing",
		After: []string{"STO-004"}, Run: volumeApplyTimes,
	},
	{
		ID: "STO-006", Title: "hot spares, initialization and encryption", Level: Destructive, Protocol: Redfish, Step: Prepare,
		Predicts: "RAID lacks features", Remedy: "configure RAID by hand",
		After: []string{"STO-004"}, Run: volumeFeatures,
	},
	{
		ID: "STO-007", Title: "a drive is erased securely", Level: Destructive, Protocol: Redfish, Step: Provision,
		Predicts: "cleaning fails", Remedy: "erase in-band",
		After: []string{"STO-001"}, Run: driveErased,
	},
	{
		ID: "STO-008", Title: "a controller, or a drive of it, changes between RAID and JBOD", Level: Destructive, Protocol: Redfish, Step: Prepare,
		Predicts: "drives are invisible to the agent", Remedy: "change the mode by hand",
		After: []string{"STO-002"}, Run: modeSwitched,
	},
}

// storage is a member of the system's Storage, with its drives.
type storage struct {
	uri     string
	value   Value
	drives  []Value
	raid    []string // RAID types that it supports
	volumes string
}

// storages reads the storage of the system.
func (r *Run) storages(ctx context.Context) ([]storage, error) {
	members, err := r.systemMembers(ctx, "Storage")
	if err != nil {
		return nil, err
	}
	var all []storage
	for _, m := range members[:min(len(members), 32)] {
		v, err := r.Page(ctx, m)
		if err != nil {
			return nil, err
		}
		s := storage{uri: m, value: v, volumes: v.At("Volumes").LinkOr("")}
		drives, err := v.At("Drives").List()
		if err != nil {
			return nil, err
		}
		for _, d := range drives[:min(len(drives), 128)] {
			at, err := d.Link()
			if err != nil {
				return nil, err
			}
			drive, err := r.Page(ctx, at)
			if err != nil {
				return nil, err
			}
			s.drives = append(s.drives, drive)
		}
		if s.raid, err = r.raidTypes(ctx, v); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// raidTypes reads the RAID types of a storage: of its controllers, or of the
// capabilities of its volumes.
func (r *Run) raidTypes(ctx context.Context, v Value) ([]string, error) {
	var types []string
	add := func(of Value) {
		found, _ := of.At("SupportedRAIDTypes").Texts() // absent: none
		types = append(types, found...)
	}
	controllers, _ := v.At("StorageControllers").List()
	for _, c := range controllers {
		add(c)
	}
	if uri, err := v.At("Controllers").Link(); err == nil {
		members, err := r.Members(ctx, uri)
		if err != nil {
			return nil, err
		}
		for _, m := range members[:min(len(members), 16)] {
			c, err := r.Page(ctx, m)
			if err != nil {
				return nil, err
			}
			add(c)
		}
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// drivesDescribed looks at what root device hints name.
func drivesDescribed(ctx context.Context, r *Run) Outcome {
	all, err := r.storages(ctx)
	if err != nil {
		return Judge(err)
	}
	drives := 0
	var missing []string
	for _, s := range all {
		for _, d := range s.drives {
			if d.At("Status", "State").TextOr("") == "Absent" {
				continue
			}
			drives++
			if n, err := d.At("CapacityBytes").Number(); err != nil || n <= 0 {
				missing = append(missing, d.Path()+" has no CapacityBytes")
			}
			for _, name := range []string{"MediaType", "SerialNumber"} {
				if d.At(name).TextOr("") == "" {
					missing = append(missing, d.Path()+" has no "+name)
				}
			}
		}
	}
	o := Passed("").With("drives", "%d", drives)
	switch {
	case drives == 0:
		o.Verdict, o.Reason = Warn, "no storage of the system shows a drive"
	case len(missing) > 0:
		o.Verdict, o.Reason = Fail, strings.Join(missing[:min(len(missing), 5)], "; ")
	}
	return o
}

// raidShown looks for RAID types.
func raidShown(ctx context.Context, r *Run) Outcome {
	all, err := r.storages(ctx)
	if err != nil {
		return Judge(err)
	}
	var types []string
	volumes := 0
	for _, s := range all {
		types = append(types, s.raid...)
		if s.volumes == "" {
			continue
		}
		volumes++
		if _, err := r.Members(ctx, s.volumes); err != nil {
			return Judge(err)
		}
	}
	slices.Sort(types)
	types = slices.Compact(types)
	switch {
	case volumes == 0:
		return Skipped("no storage has Volumes")
	case len(types) == 0:
		return Skipped("no controller lists SupportedRAIDTypes")
	}
	for _, t := range types {
		if !strings.HasPrefix(t, "RAID") && t != "None" {
			return Failed("SupportedRAIDTypes has %q", t)
		}
	}
	return Passed("").With("RAID types", "%s", strings.Join(types, " "))
}

// drivesMatch compares the drives of Redfish with the disks that the booted image
// reports.
func drivesMatch(ctx context.Context, r *Run) Outcome {
	all, err := r.storages(ctx)
	if err != nil {
		return Judge(err)
	}
	targets, err := r.mediaTargets(ctx)
	if err != nil {
		return Judge(err)
	}
	var report *BootReport
	for _, t := range targets {
		if report, err = r.bootsMedia(ctx, t); err != nil {
			return Judge(err)
		}
		if report != nil {
			break
		}
	}
	if report == nil {
		return Failed("the image has not phoned home")
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	var unseen []string
	matched := 0
	for _, s := range all {
		for _, d := range s.drives {
			serial := d.At("SerialNumber").TextOr("")
			if serial == "" {
				continue
			}
			wwns := d.At("Identifiers", "0", "DurableName").TextOr("")
			if slices.ContainsFunc(report.Disks, func(disk Disk) bool {
				return strings.Contains(disk.Serial, serial) || strings.Contains(serial, disk.Serial) && disk.Serial != "" || wwns != "" && strings.EqualFold(bareWWN(disk.WWN), bareWWN(wwns))
			}) {
				matched++
			} else {
				unseen = append(unseen, serial)
			}
		}
	}
	o := Passed("").With("drives", "%d of %d are disks of the operating system", matched, matched+len(unseen))
	switch {
	case matched == 0 && len(unseen) > 0:
		o.Verdict, o.Reason = Fail, "no drive is a disk of the operating system: "+strings.Join(unseen, ", ")
	case len(unseen) > 0:
		o.Verdict, o.Reason = Warn, "the operating system has no disk for the drives "+strings.Join(unseen, ", ")
	}
	return o
}

func bareWWN(s string) string {
	return strings.NewReplacer(":", "", "0x", "", "naa.", "", "eui.", "", "-", "").Replace(strings.ToLower(s))
}
