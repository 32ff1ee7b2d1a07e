package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// raidRules bounds the number of drives by RAID type as controllers usually
// do. No BMC shows the bounds.
var raidRules = map[storage.RAIDType]storage.TypeRule{
	"RAID0": {Min: 1, Max: 32}, "RAID1": {Min: 2, Max: 2}, "RAID5": {Min: 3, Max: 32}, "RAID6": {Min: 4, Max: 32},
	"RAID10": {Min: 2, Max: 2, MaxSpans: 8}, "RAID50": {Min: 3, Max: 32, MaxSpans: 8}, "RAID60": {Min: 4, Max: 32, MaxSpans: 8},
}

// defaultRAID holds what BMCs seldom show of a RAID controller.
var defaultRAID = storage.RAID{
	Strips: []int64{262144, 65536, 131072, 524288, 1048576}, MaxVolumes: 64, MaxPerGroup: 16, Metadata: 512 << 20, Coercion: 1 << 30,
	Write: []storage.WritePolicy{storage.ProtectedWriteBack, storage.WriteThrough, storage.UnprotectedWriteBack},
	Read:  []storage.ReadPolicy{storage.ReadAhead, storage.ReadCacheOff}, Lenient: true, Passthrough: true,
}

// storage derives the storage controllers and their drives.
func (d *deriver) storage(p *machine.Profile) {
	n := 0
	for _, at := range d.members(d.resource(d.system), "Storage") {
		x := d.resource(at)
		if x.absent() {
			continue
		}
		c := storage.ControllerModel{ID: last(at), Name: cmp.Or(x.str("Name"), "Storage")}
		tree := "/redfish/v1/Systems/{system}/Storage/" + c.ID
		d.locate(tree, at)
		of := d.controller(x, tree)
		c.Name = cmp.Or(of.str("Name"), c.Name)
		c.Vendor, c.Product, c.Firmware = cmp.Or(of.str("Manufacturer"), "Unknown"), cmp.Or(of.str("Model"), of.str("Name"), c.Name), cmp.Or(of.str("FirmwareVersion"), d.inventoried(at), "0")
		bays := map[string]bool{}
		for _, drive := range x.refs("Drives") {
			m, ok := d.drive(drive)
			if !ok || bays[drive] {
				continue
			}
			bays[drive] = true
			id := fmt.Sprintf("Disk.%d", n)
			n++
			d.drives[drive] = id
			d.locate(tree+"/Drives/"+id, drive)
			c.Bays = append(c.Bays, m)
		}
		c.RAID = d.raid(x, of)
		if volumes := d.members(x, "Volumes"); len(volumes) > 0 && c.RAID != nil {
			d.note("storage %s has %d volumes, which are not part of a model: create them in the lab", c.ID, len(volumes))
		}
		for _, f := range c.Flaws() {
			d.note("storage %s: left out: %s must %s", c.ID, f.Field, f.Must)
			if strings.HasPrefix(f.Field, "raid") {
				c.RAID = nil
			}
		}
		if len(c.Flaws()) == 0 {
			p.Storage = append(p.Storage, c)
		}
	}
}

// controller returns the first controller of a Storage resource.
func (d *deriver) controller(x resource, tree string) resource {
	if at := d.members(x, "Controllers"); len(at) > 0 {
		d.locate(tree+"/Controllers/0", at[0])
		return d.resource(at[0])
	}
	if all := x.objects("StorageControllers"); len(all) > 0 {
		return all[0]
	}
	return resource{}
}

// drive derives a drive. It returns false if the resource lacks what a model
// needs.
func (d *deriver) drive(at string) (storage.Model, bool) {
	x := d.resource(at)
	if x == nil || x.absent() || x.num("CapacityBytes") <= 0 {
		return storage.Model{}, false
	}
	m := storage.Model{
		Vendor: cmp.Or(x.str("Manufacturer"), "Unknown"), Product: cmp.Or(x.str("Model"), "Unknown"), Revision: cmp.Or(x.str("Revision"), x.str("FirmwareVersion"), d.inventoried(at), "0"),
		Protocol: storage.Protocol(x.str("Protocol")), Media: storage.MediaType(x.str("MediaType")), Capacity: int64(x.num("CapacityBytes")),
		RotationRPM: x.int("RotationSpeedRPM"), SpeedGbps: x.num("CapableSpeedGbs"), BlockSize: cmp.Or(x.int("BlockSizeBytes"), 512), FormFactor: x.str("DriveFormFactor"),
	}
	if m.Media == "SMR" || !m.Media.Known() {
		m.Media = storage.SSD
		if m.RotationRPM > 0 || x.str("MediaType") == "SMR" {
			m.Media = storage.HDD
		}
	}
	if !m.Protocol.Known() {
		m.Protocol = map[bool]storage.Protocol{true: storage.NVMe, false: storage.SATA}[strings.HasPrefix(string(m.Protocol), "PCI") || strings.HasPrefix(string(m.Protocol), "NVMe")]
	}
	if m.Media == storage.SSD {
		m.RotationRPM = 0
	}
	m.Capacity -= m.Capacity % int64(m.BlockSize)
	for _, v := range d.allowable(x, "#Drive.SecureErase", "SanitizationType") {
		m.Sanitize = append(m.Sanitize, storage.Sanitize(v))
	}
	// Only a drive that encrypts is locked or unlocked (Drive.EncryptionStatus); not every BMC
	// shows the ability.
	encrypts := x.str("EncryptionAbility") == "SelfEncryptingDrive" || slices.Contains([]string{"Locked", "Unlocked", "Foreign"}, x.str("EncryptionStatus"))
	if len(m.Sanitize) == 0 && encrypts {
		m.Sanitize = []storage.Sanitize{storage.CryptographicErase, storage.Overwrite}
	}
	return m, true
}

// allowable returns the values that a parameter of an action takes, from its
// ActionInfo or its AllowableValues annotation.
func (d *deriver) allowable(x resource, action, parameter string) []string {
	a, _ := x.sub("Actions")[action].(map[string]any)
	of := resource(a)
	if all := of.texts(parameter + "@Redfish.AllowableValues"); len(all) > 0 {
		return all
	}
	for _, p := range d.resource(strings.TrimRight(of.str("@Redfish.ActionInfo"), "/")).objects("Parameters") {
		if p.str("Name") == parameter {
			return p.texts("AllowableValues")
		}
	}
	return nil
}

// raid derives what a controller can do; it returns nil for one that creates
// no volumes.
func (d *deriver) raid(x, of resource) *storage.RAID {
	r := defaultRAID
	volumes := strings.TrimRight(x.str("Volumes/@odata.id"), "/")
	can := d.resource(volumes + "/Capabilities")
	for _, c := range d.resource(volumes).objects("@Redfish.CollectionCapabilities/Capabilities") {
		if x := d.resource(strings.TrimRight(c.str("CapabilitiesObject/@odata.id"), "/")); x != nil {
			can = x
		}
	}
	types := of.texts("SupportedRAIDTypes")
	if len(types) == 0 {
		types = can.texts("RAIDType@Redfish.AllowableValues")
	}
	for _, t := range types {
		rule, ok := raidRules[storage.RAIDType(t)]
		if !ok {
			continue
		}
		rule.Type = storage.RAIDType(t)
		r.Types = append(r.Types, rule)
	}
	if len(r.Types) == 0 {
		return nil
	}
	if n := d.resource(volumes).int("@Redfish.CollectionCapabilities/MaxMembers"); n > 0 {
		r.MaxVolumes = n
	}
	var strips []int64
	for _, name := range []string{"StripSizeBytes@Redfish.AllowableNumbers", "StripSizeBytes@Redfish.AllowableValues"} {
		for _, v := range list(can[name]) {
			if n := int64(resource{"n": v}.num("n")); n > 0 && !slices.Contains(strips, n) {
				strips = append(strips, n)
			}
		}
	}
	if len(strips) > 0 {
		r.Strips = strips
	}
	setTexts(&r.Write, can.texts("WriteCachePolicy@Redfish.AllowableValues"))
	setTexts(&r.Read, can.texts("ReadCachePolicy@Redfish.AllowableValues"))
	_, r.Spares = can.sub("Links")["DedicatedSpareDrives@Redfish.OptionalOnCreate"]
	if can == nil {
		r.Spares = true
	}
	if x.str("HotspareActivationPolicy") != "" {
		r.Spares = true
	}
	r.CacheMiB = of.int("CacheSummary/TotalCacheSizeMiB")
	return &r
}

// setTexts replaces a list of values, unless there are no new ones.
func setTexts[T ~string](to *[]T, from []string) {
	if len(from) == 0 {
		return
	}
	*to = nil
	for _, s := range from {
		*to = append(*to, T(s))
	}
}
