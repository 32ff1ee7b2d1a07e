package redfish

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// volume is the volume that the view is of.
func (v view) volume() storage.VolumeView {
	return pick(v.storage().Volumes, v.ids["volume"], volumeID)
}

func volumeID(x storage.VolumeView) string { return x.ID }

func volume(v view) object {
	c, x := v.storage(), v.volume()
	drives := []object{}
	for _, d := range c.Drives {
		if slices.Contains(d.Volumes, x.ID) {
			drives = append(drives, ref(v.subsystem("Drives", d.ID)))
		}
	}
	spares := list(x.Spares, func(bay string) object { return ref(v.subsystem("Drives", bay)) })
	o := object{
		"Name": x.Name, "DisplayName": x.Name, "RAIDType": string(x.Type), "CapacityBytes": x.Size(), "BlockSizeBytes": x.BlockSize,
		"StripSizeBytes": x.Strip, "OptimumIOSizeBytes": x.Row(), "Encrypted": false, "VolumeUsage": "Data",
		"ReadCachePolicy": string(x.Read), "WriteCachePolicy": string(x.Write), "WriteCacheState": cacheState(x.Write),
		"InitializeMethod": string(x.Method), "RecoverableCapacitySourceCount": spareCount(c, x), "Status": volumeStatus(x),
		"Operations":  volumeOperations(v),
		"Identifiers": []object{{"DurableName": x.WWN, "DurableNameFormat": "NAA"}},
		"Links": object{
			"Drives": drives, "Drives@odata.count": len(drives),
			"DedicatedSpareDrives": spares, "DedicatedSpareDrives@odata.count": len(spares),
			"Controllers": refs(v.subsystem("Controllers", "0")), "Controllers@odata.count": 1,
			"OwningStorageResource": ref(v.subsystem()),
		},
	}
	if x.Method == "" { // a foreign one does not say
		o["InitializeMethod"] = string(storage.Skip)
	}
	if x.Type.Nested() {
		o["MediaSpanCount"] = x.Width
	}
	return o
}

// spareCount is how many drives would take the place of one that is lost.
func spareCount(c storage.ControllerView, x storage.VolumeView) int {
	n := len(x.Spares)
	for _, d := range c.Drives {
		if d.Spare == storage.GlobalSpare && x.Type.Redundant() {
			n++
		}
	}
	return n
}

// cacheState is Volume.WriteCacheState.
func cacheState(w storage.WritePolicy) any {
	switch w {
	case storage.ProtectedWriteBack:
		return "Protected"
	case storage.UnprotectedWriteBack:
		return "Unprotected"
	}
	return nil
}

func volumeStatus(x storage.VolumeView) object {
	state := "Enabled"
	switch {
	case x.Failed:
		state = "UnavailableOffline"
	case !x.Usable():
		state = "Updating"
	case x.Degraded():
		state = "Degraded"
	}
	return object{"State": state, "Health": string(x.Health())}
}

// volumeOperations is the Operations property of a volume.
func volumeOperations(v view) []object {
	all := []object{}
	x := v.volume()
	for _, o := range x.Ops {
		op := opNames[o.Kind]
		if o.To != nil && o.To.Type != x.Type {
			op = "ChangeRAIDType"
		}
		all = append(all, object{"Operation": op, "PercentageComplete": o.Percent(v.now)})
	}
	return all
}

// What a controller makes and takes.
func raidTypes(v view) []string {
	if r := v.storage().RAID; r != nil {
		return list(r.Types, func(t storage.TypeRule) string { return string(t.Type) })
	}
	return []string{}
}

func writePolicies(v view) []string {
	if r := v.storage().RAID; r != nil {
		return texts(r.Write)
	}
	return []string{}
}

func readPolicies(v view) []string {
	if r := v.storage().RAID; r != nil {
		return texts(r.Read)
	}
	return []string{}
}

func initMethods(view) []string {
	return texts([]storage.InitMethod{storage.Skip, storage.Background, storage.Foreground})
}

// volumeTypes are what RAID types were called before Volume 1.3.1.
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

func volumeTypeNames(view) []string {
	out := []string{}
	for _, t := range volumeTypes {
		out = append(out, t.name)
	}
	return out
}

// drivesInput is an array of links to drives.
func drivesInput(name string) input {
	return input{name: name, kind: array, max: 256, of: []input{{kind: link}}}
}

var volumeCreate = create{
	useCase: "VolumeCreation",
	most: func(v view) int {
		if r := v.storage().RAID; r != nil {
			return r.MaxVolumes
		}
		return 0
	},
	inputs: []input{
		{name: "RAIDType", kind: text, values: raidTypes},
		{name: "VolumeType", kind: text, values: volumeTypeNames},
		{name: "CapacityBytes", kind: integer, min: 1, max: 1 << 62},
		{name: "Name", kind: text, min: 1, max: storage.MaxName},
		{name: "DisplayName", kind: text, min: 1, max: storage.MaxName},
		{name: "StripSizeBytes", kind: integer, min: 1, max: 1 << 62},
		{name: "MediaSpanCount", kind: integer, min: 1, max: 256},
		{name: "ReadCachePolicy", kind: text, values: readPolicies},
		{name: "WriteCachePolicy", kind: text, values: writePolicies},
		{name: "InitializeMethod", kind: text, values: initMethods},
		{name: "Encrypted", kind: boolean, values: func(view) []string { return []string{"false"} }},
		{name: "Links", kind: group, of: []input{drivesInput("Drives"), drivesInput("DedicatedSpareDrives")}},
	},
	apply: createVolume,
}

func createVolume(ctx context.Context, c operation) (reply, error) {
	v := c.view
	do := storage.CreateVolume{
		Controller: v.ids["storage"], Type: storage.RAIDType(value(c.set, "RAIDType", "")),
		Capacity: value(c.set, "CapacityBytes", int64(0)), Strip: value(c.set, "StripSizeBytes", int64(0)),
		Span: int(value(c.set, "MediaSpanCount", int64(0))), Name: value(c.set, "DisplayName", value(c.set, "Name", "")),
		Write: storage.WritePolicy(value(c.set, "WriteCachePolicy", "")), Read: storage.ReadPolicy(value(c.set, "ReadCachePolicy", "")),
		Method: storage.InitMethod(value(c.set, "InitializeMethod", "")),
	}
	old, sent := c.set["VolumeType"].(string)
	switch is := pickType(old); {
	case !sent && do.Type == "":
		return reply{}, decline(http.StatusBadRequest, message.PropertyMissing.With("RAIDType").About("#/RAIDType"))
	case sent && do.Type == "":
		do.Type = is
	case sent && legacyType(do.Type) != old:
		return reply{}, decline(http.StatusBadRequest, message.PropertyValueConflict.With("VolumeType", "RAIDType").About("#/VolumeType"))
	}
	var err error
	if do.Drives, err = c.bays("Drives"); err != nil {
		return reply{}, err
	}
	if do.Spares, err = c.bays("DedicatedSpareDrives"); err != nil {
		return reply{}, err
	}
	if c.when == onReset || do.Method == storage.Foreground || takesJobs(v) {
		return c.diskJob(ctx, "Create volume", func(job string) storage.Command { do.Job = job; return do })
	}
	before := things["volume"](v)
	if err := c.disk(ctx, do); err != nil {
		return reply{}, err
	}
	for _, id := range list(c.disks().Volumes, volumeID) {
		if !slices.Contains(before, id) {
			return reply{id: id}, nil
		}
	}
	return reply{}, decline(http.StatusConflict, message.ResourceInUse.With()) // gone again
}

// disks are the storage that the operation is about, as it is now.
func (c operation) disks() storage.ControllerView {
	out, _ := c.host.Machine().Storage.Controller(c.view.ids["storage"])
	return out
}

// pickType is the RAID type of an older name; "" of none.
func pickType(old string) storage.RAIDType {
	for _, t := range volumeTypes {
		if t.name == old {
			return t.is
		}
	}
	return ""
}

// legacyType is the older name for a RAID type. Several have the same.
func legacyType(t storage.RAIDType) string {
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

// bays are the bays of the drives that a client has linked to below Links. A
// link must lead to a drive of this storage.
func (c operation) bays(property string) ([]string, error) {
	sent, _ := c.set["Links/"+property].([]any)
	var out []string
	for i, x := range sent {
		uri, _ := x.(string)
		bay, ok := strings.CutPrefix(uri, c.view.subsystem("Drives")+"/")
		if !ok || !slices.Contains(things["drive"](c.view), bay) {
			return nil, decline(http.StatusBadRequest, message.PropertyValueNotInList.With(uri, property).About(element("Links/"+property, i)))
		}
		out = append(out, bay)
	}
	return out, nil
}

// volumePatch changes a volume. What takes long answers with a job; the rest is
// done at once.
var volumePatch = patch{
	inputs: []input{
		{name: "DisplayName", kind: text, min: 1, max: storage.MaxName},
		{name: "ReadCachePolicy", kind: text, values: readPolicies},
		{name: "WriteCachePolicy", kind: text, values: writePolicies},
		{name: "CapacityBytes", kind: integer, min: 1, max: 1 << 62},
		{name: "Links", kind: group, of: []input{drivesInput("DedicatedSpareDrives")}},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		v := c.view
		controller, id := v.ids["storage"], v.ids["volume"]
		set := storage.SetVolume{Controller: controller, Volume: id}
		if name, ok := c.set["DisplayName"].(string); ok {
			set.Name = &name
		}
		if p, ok := c.set["ReadCachePolicy"].(string); ok {
			set.Read = new(storage.ReadPolicy(p))
		}
		if p, ok := c.set["WriteCachePolicy"].(string); ok {
			set.Write = new(storage.WritePolicy(p))
		}
		do := machine.Transaction{machine.Storage{Command: set}}
		if _, ok := c.set["Links/DedicatedSpareDrives"]; ok {
			bays, err := c.bays("DedicatedSpareDrives")
			if err != nil {
				return reply{}, err
			}
			do = append(do, machine.Storage{Command: storage.SetSpares{Controller: controller, Volume: id, Drives: bays}})
		}
		size, ok := c.set["CapacityBytes"].(int64)
		if !ok || size == v.volume().Size() {
			return reply{}, c.ruled(c.host.Apply(ctx, do))
		}
		out, err := c.begin(ctx, "Expand volume "+id, func(job string) machine.Command {
			expand := storage.ExpandVolume{Controller: controller, Volume: id, Capacity: size, Job: job}
			return append(do, machine.Storage{Command: expand})
		})
		return out, c.ruled(err)
	},
}

func volumeRemove(ctx context.Context, c operation) (reply, error) {
	do := storage.DeleteVolume{Controller: c.view.ids["storage"], Volume: c.view.ids["volume"]}
	if c.when == immediate && !takesJobs(c.view) {
		return reply{}, c.disk(ctx, do)
	}
	return c.diskJob(ctx, "Delete volume "+do.Volume, func(job string) storage.Command { do.Job = job; return do })
}

func checks(v view) bool { return v.volume().Array != nil && v.volume().Type.Redundant() }

func failed(v view) bool { return v.volume().Array != nil && v.volume().Failed }

var volumeActions = []action{
	{
		name: "Volume.Initialize", defers: true,
		inputs: []input{
			{name: "InitializeMethod", kind: text, values: initMethods},
			{name: "InitializeType", kind: text, values: func(view) []string { return []string{"Fast", "Slow"} }},
		},
		apply: func(ctx context.Context, c operation) (reply, error) {
			do := storage.InitializeVolume{
				Controller: c.view.ids["storage"], Volume: c.view.ids["volume"], Fast: value(c.set, "InitializeType", "") == "Fast",
				Method: storage.InitMethod(value(c.set, "InitializeMethod", "")),
			}
			return c.diskJob(ctx, "Initialize volume "+do.Volume, func(job string) storage.Command { do.Job = job; return do })
		},
	},
	{
		name: "Volume.CheckConsistency", when: checks, defers: true,
		apply: func(ctx context.Context, c operation) (reply, error) {
			do := storage.CheckConsistency{Controller: c.view.ids["storage"], Volume: c.view.ids["volume"]}
			return c.diskJob(ctx, "Check consistency of volume "+do.Volume, func(job string) storage.Command { do.Job = job; return do })
		},
	},
	{
		name: "Volume.ChangeRAIDLayout", defers: true,
		inputs: []input{{name: "RAIDType", kind: text, values: raidTypes}, drivesInput("Drives")},
		apply:  changeLayout,
	},
	{
		name: "Volume.ForceEnable", when: failed,
		apply: func(ctx context.Context, c operation) (reply, error) {
			return reply{}, c.disk(ctx, storage.ForceEnable{Controller: c.view.ids["storage"], Volume: c.view.ids["volume"]})
		},
	},
}

// changeLayout gives a volume another type, or more drives. Drives lists all of
// them, or those that are added.
func changeLayout(ctx context.Context, c operation) (reply, error) {
	v := c.view
	do := storage.ExpandVolume{Controller: v.ids["storage"], Volume: v.ids["volume"], Type: storage.RAIDType(value(c.set, "RAIDType", ""))}
	sent, _ := c.set["Drives"].([]any)
	for i, x := range sent {
		uri, _ := x.(string)
		bay, ok := strings.CutPrefix(uri, v.subsystem("Drives")+"/")
		d := pick(v.storage().Drives, bay, func(d storage.DriveView) string { return d.ID })
		if !ok || d.ID == "" {
			m := message.ActionParameterValueNotInList.With(uri, "Drives", c.match.action.name)
			return reply{}, decline(http.StatusBadRequest, m.About(element("Drives", i)))
		}
		if !slices.Contains(d.Volumes, do.Volume) {
			do.Drives = append(do.Drives, bay)
		}
	}
	return c.diskJob(ctx, "Change layout of volume "+do.Volume, func(job string) storage.Command { do.Job = job; return do })
}
