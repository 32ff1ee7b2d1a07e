package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// rules are how many drives types of RAID take, as controllers usually have it:
// BMCs do not tell.
var rules = map[storage.RAIDType]storage.TypeRule{
	"RAID0": {Min: 1, Max: 32}, "RAID1": {Min: 2, Max: 2}, "RAID5": {Min: 3, Max: 32}, "RAID6": {Min: 4, Max: 32},
	"RAID10": {Min: 2, Max: 2, MaxSpans: 8}, "RAID50": {Min: 3, Max: 32, MaxSpans: 8}, "RAID60": {Min: 4, Max: 32, MaxSpans: 8},
}

// usualRAID is what BMCs seldom tell of a controller.
var usualRAID = storage.RAID{
	Strips: []int64{262144, 65536, 131072, 524288, 1048576}, MaxVolumes: 64, MaxPerGroup: 16, Metadata: 512 << 20, Coercion: 1 << 30,
	Write: []storage.WritePolicy{storage.ProtectedWriteBack, storage.WriteThrough, storage.UnprotectedWriteBack},
	Read:  []storage.ReadPolicy{storage.ReadAhead, storage.ReadCacheOff}, Lenient: true, Passthrough: true,
}

func (d *deriver) storage(p *machine.Profile) {
	n := 0
	for _, at := range d.members(d.page(d.system), "Storage") {
		x := d.page(at)
		if x.absent() {
			continue
		}
		c := storage.ControllerModel{ID: last(at), Name: or(x.str("Name"), "Storage")}
		tree := "/redfish/v1/Systems/{system}/Storage/" + c.ID
		d.place(tree, at)
		of := d.controller(x, tree)
		c.Name = or(of.str("Name"), c.Name)
		c.Vendor, c.Product, c.Firmware = or(of.str("Manufacturer"), "Unknown"), or(of.str("Model"), of.str("Name"), c.Name), or(of.str("FirmwareVersion"), "0")
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
			d.place(tree+"/Drives/"+id, drive)
			c.Bays = append(c.Bays, m)
		}
		c.RAID = d.raid(x, of)
		if volumes := d.members(x, "Volumes"); len(volumes) > 0 && c.RAID != nil {
			d.note("storage %s has %d volumes, which are not part of a model: create them anew", c.ID, len(volumes))
		}
		for _, f := range c.Flaws() {
			d.note("storage %s: %s: must %s: left out", c.ID, f.Field, f.Must)
			if strings.HasPrefix(f.Field, "raid") {
				c.RAID = nil
			}
		}
		if len(c.Flaws()) == 0 {
			p.Storage = append(p.Storage, c)
		}
	}
}

// controller is the first controller of a storage.
func (d *deriver) controller(x page, tree string) page {
	if at := d.members(x, "Controllers"); len(at) > 0 {
		d.place(tree+"/Controllers/0", at[0])
		return d.page(at[0])
	}
	if all := x.objects("StorageControllers"); len(all) > 0 {
		return all[0]
	}
	return page{}
}

func (d *deriver) drive(at string) (storage.Model, bool) {
	x := d.page(at)
	if x == nil || x.absent() || x.num("CapacityBytes") <= 0 {
		return storage.Model{}, false
	}
	m := storage.Model{
		Vendor: or(x.str("Manufacturer"), "Unknown"), Product: or(x.str("Model"), "Unknown"), Revision: or(x.str("Revision"), x.str("FirmwareVersion"), "0"),
		Protocol: storage.Protocol(x.str("Protocol")), Media: storage.MediaType(x.str("MediaType")), Capacity: int64(x.num("CapacityBytes")),
		RotationRPM: x.int("RotationSpeedRPM"), SpeedGbps: x.num("CapableSpeedGbs"), BlockSize: or(x.int("BlockSizeBytes"), 512), FormFactor: x.str("DriveFormFactor"),
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
	if len(m.Sanitize) == 0 && x.str("EncryptionAbility") == "SelfEncryptingDrive" {
		m.Sanitize = []storage.Sanitize{storage.CryptographicErase, storage.Overwrite}
	}
	return m, true
}

// allowable are the values that a parameter of an action takes.
func (d *deriver) allowable(x page, action, parameter string) []string {
	a, _ := x.sub("Actions")[action].(map[string]any)
	of := page(a)
	if all := of.texts(parameter + "@Redfish.AllowableValues"); len(all) > 0 {
		return all
	}
	for _, p := range d.page(strings.TrimRight(of.str("@Redfish.ActionInfo"), "/")).objects("Parameters") {
		if p.str("Name") == parameter {
			return p.texts("AllowableValues")
		}
	}
	return nil
}

// raid is what a controller can do; nil when it makes no volumes.
func (d *deriver) raid(x, of page) *storage.RAID {
	r := usualRAID
	volumes := strings.TrimRight(x.str("Volumes/@odata.id"), "/")
	can := d.page(volumes + "/Capabilities")
	for _, c := range d.page(volumes).objects("@Redfish.CollectionCapabilities/Capabilities") {
		if x := d.page(strings.TrimRight(c.str("CapabilitiesObject/@odata.id"), "/")); x != nil {
			can = x
		}
	}
	types := of.texts("SupportedRAIDTypes")
	if len(types) == 0 {
		types = can.texts("RAIDType@Redfish.AllowableValues")
	}
	for _, t := range types {
		rule, ok := rules[storage.RAIDType(t)]
		if !ok {
			continue
		}
		rule.Type = storage.RAIDType(t)
		r.Types = append(r.Types, rule)
	}
	if len(r.Types) == 0 {
		return nil
	}
	if n := d.page(volumes).int("@Redfish.CollectionCapabilities/MaxMembers"); n > 0 {
		r.MaxVolumes = n
	}
	var strips []int64
	for _, name := range []string{"StripSizeBytes@Redfish.AllowableNumbers", "StripSizeBytes@Redfish.AllowableValues"} {
		for _, v := range list(can[name]) {
			if n := int64(page{"n": v}.num("n")); n > 0 && !slices.Contains(strips, n) {
				strips = append(strips, n)
			}
		}
	}
	if len(strips) > 0 {
		r.Strips = strips
	}
	take(&r.Write, can.texts("WriteCachePolicy@Redfish.AllowableValues"))
	take(&r.Read, can.texts("ReadCachePolicy@Redfish.AllowableValues"))
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

// take puts texts in place of values.
func take[T ~string](to *[]T, from []string) {
	if len(from) == 0 {
		return
	}
	*to = nil
	for _, s := range from {
		*to = append(*to, T(s))
	}
}
