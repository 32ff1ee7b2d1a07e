package resource

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// volume returns the volume of the view's Volume.
func (v View) volume() storage.VolumeView {
	return Find(v.storage().Volumes, v.IDs["volume"], volumeID)
}

func volumeID(x storage.VolumeView) string { return x.ID }

func volume(v View) Object {
	c, x := v.storage(), v.volume()
	drives := []Object{}
	for _, d := range c.Drives {
		if slices.Contains(d.Volumes, x.ID) {
			drives = append(drives, Ref(v.subsystem("Drives", d.ID)))
		}
	}
	spares := Map(x.Spares, func(bay string) Object { return Ref(v.subsystem("Drives", bay)) })
	o := Object{
		"Name": x.Name, "DisplayName": x.Name, "RAIDType": string(x.Type), "CapacityBytes": x.Size(), "BlockSizeBytes": x.BlockSize,
		"StripSizeBytes": x.Strip, "OptimumIOSizeBytes": x.Row(), "Encrypted": false, "VolumeUsage": "Data",
		"ReadCachePolicy": string(x.Read), "WriteCachePolicy": string(x.Write), "WriteCacheState": cacheState(x.Write),
		"InitializeMethod": string(x.Method), "RecoverableCapacitySourceCount": spareCount(c, x), "Status": volumeStatus(x),
		"Operations":  volumeOperations(v),
		"Identifiers": []Object{{"DurableName": x.WWN, "DurableNameFormat": "NAA"}},
		"Links": Object{
			"Drives": drives, "Drives@odata.count": len(drives),
			"DedicatedSpareDrives": spares, "DedicatedSpareDrives@odata.count": len(spares),
			"Controllers": refs(v.subsystem("Controllers", "0")), "Controllers@odata.count": 1,
			"OwningStorageResource": Ref(v.subsystem()),
		},
	}
	if x.Method == "" { // foreign volumes have none
		o["InitializeMethod"] = string(storage.Skip)
	}
	if x.Type.Nested() {
		o["MediaSpanCount"] = x.Width
	}
	return o
}

// spareCount returns how many drives would replace a lost drive of the volume.
func spareCount(c storage.ControllerView, x storage.VolumeView) int {
	n := len(x.Spares)
	for _, d := range c.Drives {
		if d.Spare == storage.GlobalSpare && x.Type.Redundant() {
			n++
		}
	}
	return n
}

// cacheState returns Volume.WriteCacheState.
func cacheState(w storage.WritePolicy) any {
	switch w {
	case storage.ProtectedWriteBack:
		return "Protected"
	case storage.UnprotectedWriteBack:
		return "Unprotected"
	}
	return nil
}

func volumeStatus(x storage.VolumeView) Object {
	state := "Enabled"
	switch {
	case x.Failed:
		state = "UnavailableOffline"
	case !x.Usable():
		state = "Updating"
	case x.Degraded():
		state = "Degraded"
	}
	return Object{"State": state, "Health": string(x.Health())}
}

// volumeOperations returns the Operations property of a volume.
func volumeOperations(v View) []Object {
	all := []Object{}
	x := v.volume()
	for _, o := range x.Ops {
		op := operationTypes[o.Kind]
		if o.To != nil && o.To.Type != x.Type {
			op = "ChangeRAIDType"
		}
		all = append(all, Object{"Operation": op, "PercentageComplete": o.Percent(v.Now)})
	}
	return all
}

// raidTypes returns the RAID types that the view's controller supports.
func raidTypes(v View) []string {
	if r := v.storage().RAID; r != nil {
		return Map(r.Types, func(t storage.TypeRule) string { return string(t.Type) })
	}
	return []string{}
}

func writePolicies(v View) []string {
	if r := v.storage().RAID; r != nil {
		return Texts(r.Write)
	}
	return []string{}
}

func readPolicies(v View) []string {
	if r := v.storage().RAID; r != nil {
		return Texts(r.Read)
	}
	return []string{}
}

func initMethods(View) []string {
	return Texts([]storage.InitMethod{storage.Skip, storage.Background, storage.Foreground})
}

// volumeTypes maps Volume.VolumeType, which named RAID types before Volume 1.3.1, to RAID
// types.
var volumeTypes = []struct {
	name string
	is   storage.RAIDType
}{
	{"NonRedundant", storage.RAID0},
	{"Mirrored", storage.RAID1},
	{"StripedWithParity", storage.RAID5},
	{"SpannedMirrors", storage.RAID10},
	{"SpannedStripesWithParity", storage.RAID50},
}

func volumeTypeNames(View) []string {
	out := []string{}
	for _, t := range volumeTypes {
		out = append(out, t.name)
	}
	return out
}

// drivesInput returns the input of an array of links to drives.
func drivesInput(name string) Input {
	return Input{Name: name, Kind: Array, Max: 256, Of: []Input{{Kind: Link}}}
}

var volumeCreate = create{
	useCase: "VolumeCreation",
	maxMembers: func(v View) int {
		if r := v.storage().RAID; r != nil {
			return r.MaxVolumes
		}
		return 0
	},
	Inputs: []Input{
		{Name: "RAIDType", Kind: Text, Allowed: raidTypes},
		{Name: "VolumeType", Kind: Text, Allowed: volumeTypeNames},
		{Name: "CapacityBytes", Kind: Integer, Min: 1, Max: 1 << 62},
		{Name: "Name", Kind: Text, Min: 1, Max: storage.MaxName},
		{Name: "DisplayName", Kind: Text, Min: 1, Max: storage.MaxName},
		{Name: "StripSizeBytes", Kind: Integer, Min: 1, Max: 1 << 62},
		{Name: "MediaSpanCount", Kind: Integer, Min: 1, Max: 256},
		{Name: "ReadCachePolicy", Kind: Text, Allowed: readPolicies},
		{Name: "WriteCachePolicy", Kind: Text, Allowed: writePolicies},
		{Name: "InitializeMethod", Kind: Text, Allowed: initMethods},
		{Name: "Encrypted", Kind: Boolean, Allowed: func(View) []string { return []string{"false"} }},
		{Name: "Links", Kind: Group, Of: []Input{drivesInput("Drives"), drivesInput("DedicatedSpareDrives")}},
	},
	Apply: createVolume,
}

func createVolume(ctx context.Context, c Call) (Result, error) {
	v := c.View
	do := storage.CreateVolume{
		Controller: v.IDs["storage"], Type: storage.RAIDType(Value(c.Values, "RAIDType", "")),
		Capacity: Value(c.Values, "CapacityBytes", int64(0)), Strip: Value(c.Values, "StripSizeBytes", int64(0)),
		Span: int(Value(c.Values, "MediaSpanCount", int64(0))), Name: Value(c.Values, "DisplayName", Value(c.Values, "Name", "")),
		Write: storage.WritePolicy(Value(c.Values, "WriteCachePolicy", "")), Read: storage.ReadPolicy(Value(c.Values, "ReadCachePolicy", "")),
		Method: storage.InitMethod(Value(c.Values, "InitializeMethod", "")),
	}
	old, sent := c.Values["VolumeType"].(string)
	switch is := typeOfLegacyName(old); {
	case !sent && do.Type == "":
		return Result{}, Reject(http.StatusBadRequest, message.PropertyMissing.With("RAIDType").About("#/RAIDType"))
	case sent && do.Type == "":
		do.Type = is
	case sent && legacyTypeName(do.Type) != old:
		return Result{}, Reject(http.StatusBadRequest, message.PropertyValueConflict.With("VolumeType", "RAIDType").About("#/VolumeType"))
	}
	var err error
	if do.Drives, err = c.linkedBays("Drives"); err != nil {
		return Result{}, err
	}
	if do.Spares, err = c.linkedBays("DedicatedSpareDrives"); err != nil {
		return Result{}, err
	}
	if c.ApplyTime == onReset || do.Method == storage.Foreground || queuesJobs(v) {
		return c.beginStorageTask(ctx, "Create volume", func(job string) storage.Command { do.Task = job; return do })
	}
	before := Members["volume"](v)
	if err := c.applyStorage(ctx, do); err != nil {
		return Result{}, err
	}
	for _, id := range Map(c.currentStorage().Volumes, volumeID) {
		if !slices.Contains(before, id) {
			return Result{ID: id}, nil
		}
	}
	return Result{}, Reject(http.StatusConflict, message.ResourceInUse.With()) // deleted in the meantime
}

// currentStorage returns the view's controller in its present state, which a command may
// have changed since the view was taken.
func (c Call) currentStorage() storage.ControllerView {
	out, _ := c.Host.Machine().Storage.Controller(c.View.IDs["storage"])
	return out
}

// typeOfLegacyName returns the RAID type of a VolumeType, or "" when there is none.
func typeOfLegacyName(old string) storage.RAIDType {
	for _, t := range volumeTypes {
		if t.name == old {
			return t.is
		}
	}
	return ""
}

// legacyTypeName returns the VolumeType of a RAID type. Several RAID types share one.
func legacyTypeName(t storage.RAIDType) string {
	same := map[storage.RAIDType]storage.RAIDType{storage.RAID6: storage.RAID5, storage.RAID60: storage.RAID50}
	if is, ok := same[t]; ok {
		t = is
	}
	for _, x := range volumeTypes {
		if x.is == t {
			return x.name
		}
	}
	return ""
}

// linkedBays returns the bays of the drives that the client linked to below Links. It
// returns an error for a link that does not lead to a drive of this Storage.
func (c Call) linkedBays(property string) ([]string, error) {
	sent, _ := c.Values["Links/"+property].([]any)
	var out []string
	for i, x := range sent {
		uri, _ := x.(string)
		bay, ok := strings.CutPrefix(uri, c.View.subsystem("Drives")+"/")
		if !ok || !slices.Contains(Members["drive"](c.View), bay) {
			return nil, Reject(http.StatusBadRequest, message.PropertyValueNotInList.With(uri, property).About(arrayPointer("Links/"+property, i)))
		}
		out = append(out, bay)
	}
	return out, nil
}

// volumePatch changes a volume. An expansion answers with a task; all other changes are
// immediate.
var volumePatch = Patch{
	Inputs: []Input{
		{Name: "DisplayName", Kind: Text, Min: 1, Max: storage.MaxName},
		{Name: "ReadCachePolicy", Kind: Text, Allowed: readPolicies},
		{Name: "WriteCachePolicy", Kind: Text, Allowed: writePolicies},
		{Name: "CapacityBytes", Kind: Integer, Min: 1, Max: 1 << 62},
		{Name: "Links", Kind: Group, Of: []Input{drivesInput("DedicatedSpareDrives")}},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		v := c.View
		controller, id := v.IDs["storage"], v.IDs["volume"]
		set := storage.SetVolume{Controller: controller, Volume: id}
		if name, ok := c.Values["DisplayName"].(string); ok {
			set.Name = &name
		}
		if p, ok := c.Values["ReadCachePolicy"].(string); ok {
			set.Read = new(storage.ReadPolicy(p))
		}
		if p, ok := c.Values["WriteCachePolicy"].(string); ok {
			set.Write = new(storage.WritePolicy(p))
		}
		do := machine.Transaction{machine.Storage{Command: set}}
		if _, ok := c.Values["Links/DedicatedSpareDrives"]; ok {
			bays, err := c.linkedBays("DedicatedSpareDrives")
			if err != nil {
				return Result{}, err
			}
			do = append(do, machine.Storage{Command: storage.SetSpares{Controller: controller, Volume: id, Drives: bays}})
		}
		size, ok := c.Values["CapacityBytes"].(int64)
		if !ok || size == v.volume().Size() {
			return Result{}, c.storageError(c.Host.Apply(ctx, do))
		}
		out, err := c.BeginTask(ctx, "Expand volume "+id, func(job string) machine.Command {
			expand := storage.ExpandVolume{Controller: controller, Volume: id, Capacity: size, Task: job}
			return append(do, machine.Storage{Command: expand})
		})
		return out, c.storageError(err)
	},
}

func volumeRemove(ctx context.Context, c Call) (Result, error) {
	do := storage.DeleteVolume{Controller: c.View.IDs["storage"], Volume: c.View.IDs["volume"]}
	if c.ApplyTime == Immediate && !queuesJobs(c.View) {
		return Result{}, c.applyStorage(ctx, do)
	}
	return c.beginStorageTask(ctx, "Delete volume "+do.Volume, func(job string) storage.Command { do.Task = job; return do })
}

// canCheckConsistency reports whether the volume has redundancy to check.
func canCheckConsistency(v View) bool { return v.volume().Array != nil && v.volume().Type.Redundant() }

// hasFailed reports whether a volume of an array has lost more drives than its RAID
// type can. ForceEnable is offered then alone.
func hasFailed(v View) bool { return v.volume().Array != nil && v.volume().Failed }

var volumeActions = []Action{
	{
		Name: "Volume.Initialize", SupportsApplyTime: true,
		Inputs: []Input{
			{Name: "InitializeMethod", Kind: Text, Allowed: initMethods},
			{Name: "InitializeType", Kind: Text, Allowed: func(View) []string { return []string{"Fast", "Slow"} }},
		},
		Apply: func(ctx context.Context, c Call) (Result, error) {
			do := storage.InitializeVolume{
				Controller: c.View.IDs["storage"], Volume: c.View.IDs["volume"], Fast: Value(c.Values, "InitializeType", "") == "Fast",
				Method: storage.InitMethod(Value(c.Values, "InitializeMethod", "")),
			}
			return c.beginStorageTask(ctx, "Initialize volume "+do.Volume, func(job string) storage.Command { do.Task = job; return do })
		},
	},
	{
		Name: "Volume.CheckConsistency", when: canCheckConsistency, SupportsApplyTime: true,
		Apply: func(ctx context.Context, c Call) (Result, error) {
			do := storage.CheckConsistency{Controller: c.View.IDs["storage"], Volume: c.View.IDs["volume"]}
			return c.beginStorageTask(ctx, "Check consistency of volume "+do.Volume, func(job string) storage.Command { do.Task = job; return do })
		},
	},
	{
		Name: "Volume.ChangeRAIDLayout", SupportsApplyTime: true,
		Inputs: []Input{{Name: "RAIDType", Kind: Text, Allowed: raidTypes}, drivesInput("Drives")},
		Apply:  changeLayout,
	},
	{
		Name: "Volume.ForceEnable", when: hasFailed,
		Apply: func(ctx context.Context, c Call) (Result, error) {
			return Result{}, c.applyStorage(ctx, storage.ForceEnable{Controller: c.View.IDs["storage"], Volume: c.View.IDs["volume"]})
		},
	},
}

// changeLayout changes the RAID type of a volume or adds drives to it. Drives lists all
// drives of the volume, or only the added ones.
func changeLayout(ctx context.Context, c Call) (Result, error) {
	v := c.View
	do := storage.ExpandVolume{Controller: v.IDs["storage"], Volume: v.IDs["volume"], Type: storage.RAIDType(Value(c.Values, "RAIDType", ""))}
	sent, _ := c.Values["Drives"].([]any)
	for i, x := range sent {
		uri, _ := x.(string)
		bay, ok := strings.CutPrefix(uri, v.subsystem("Drives")+"/")
		d := Find(v.storage().Drives, bay, func(d storage.DriveView) string { return d.ID })
		if !ok || d.ID == "" {
			m := message.ActionParameterValueNotInList.With(uri, "Drives", c.Match.Action.Name)
			return Result{}, Reject(http.StatusBadRequest, m.About(arrayPointer("Drives", i)))
		}
		if !slices.Contains(d.Volumes, do.Volume) {
			do.Drives = append(do.Drives, bay)
		}
	}
	return c.beginStorageTask(ctx, "Change layout of volume "+do.Volume, func(job string) storage.Command { do.Task = job; return do })
}
