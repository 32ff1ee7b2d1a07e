package record

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/natural"
	"github.com/metalab-dev/metalab/scenarios/capture"
)

// componentKinds tells the kind of a firmware component by its name or ID.
var componentKinds = []struct {
	is *regexp.Regexp
	of firmware.Kind
}{
	{regexp.MustCompile(`(?i)\b(bios|uefi|system rom)\b`), firmware.KindBIOS},
	{regexp.MustCompile(`(?i)\b(bmc|idrac|ilo|xcc|irmc|ibmc|remote access controller|management controller)\b`), firmware.KindBMC},
	{regexp.MustCompile(`(?i)\b(tpm|trusted platform)`), firmware.KindTPM},
	{regexp.MustCompile(`(?i)(cpld|fpga|programmable logic)`), firmware.KindCPLD},
	{regexp.MustCompile(`(?i)(power supply|\bpsu)`), firmware.KindSupply},
	{regexp.MustCompile(`(?i)(ethernet|network|\bnic\b|adapter|connectx|gbe|sfp|ocp)`), firmware.KindNIC},
	{regexp.MustCompile(`(?i)(raid|perc|megaraid|smart array|sas|hba|storage controller|boss)`), firmware.KindStorage},
	{regexp.MustCompile(`(?i)(drive|disk|ssd|hdd|nvme)`), firmware.KindDrive},
}

// componentKind returns the kind of a component of the firmware inventory; ""
// if it is unknown.
func componentKind(x resource) firmware.Kind {
	kind, _, _ := strings.Cut(x.str("SoftwareId"), ":")
	if slices.Contains(firmware.Kinds, firmware.Kind(kind)) {
		return firmware.Kind(kind)
	}
	for _, k := range componentKinds {
		if k.is.MatchString(x.str("Name")) || k.is.MatchString(x.str("Id")) {
			return k.of
		}
	}
	return ""
}

// firmware derives the components from the firmware inventory of the
// UpdateService.
func (d *deriver) firmware(p *machine.Profile, s resource) {
	p.BIOS = machine.BIOS{Vendor: p.Manufacturer, Version: cmp.Or(s.str("BiosVersion"), "0")}
	p.Firmware.Lowest, p.Firmware.Backup = map[string]string{}, map[string]string{}
	const tree = "/redfish/v1/UpdateService/FirmwareInventory/"
	service := d.resource(d.link(capture.Root, "UpdateService"))
	ids := map[string]bool{"BIOS": true, "BMC": true}
	for _, c := range p.Storage {
		ids["Storage."+c.ID] = true
	}
	for _, id := range d.drives {
		ids[id] = true
	}
	for _, at := range d.members(service, "FirmwareInventory") {
		x := d.resource(at)
		kind := componentKind(x)
		related := append(x.refs("RelatedItem"), x.refs("Links/ActiveTargets")...)
		id := ""
		switch kind {
		case firmware.KindBIOS:
			if id = "BIOS"; d.locations[tree+id] == "" {
				p.BIOS.Version, p.BIOS.Vendor = cmp.Or(x.str("Version"), p.BIOS.Version), cmp.Or(x.str("Manufacturer"), p.BIOS.Vendor)
				if t, err := time.Parse(time.RFC3339, x.str("ReleaseDate")); err == nil {
					p.BIOS.Date = t.Format("01/02/2006")
				}
			}
		case firmware.KindBMC:
			if id = "BMC"; d.locations[tree+id] == "" {
				p.BMCFirmware = cmp.Or(x.str("Version"), p.BMCFirmware)
			}
		case firmware.KindStorage:
			for _, r := range related {
				for _, c := range p.Storage {
					at := d.locations["/redfish/v1/Systems/{system}/Storage/"+c.ID]
					if r == at || strings.HasPrefix(r, at+"/") {
						id = "Storage." + c.ID
					}
				}
			}
		case firmware.KindDrive:
			for _, r := range related {
				id = cmp.Or(id, d.drives[r])
			}
		}
		if id != "" && d.locations[tree+id] == "" {
			d.locate(tree+id, at)
			if v := x.str("LowestSupportedVersion"); v != "" {
				p.Firmware.Lowest[id] = v
			}
			continue
		}
		if id = last(at); kind == "" || ids[id] || x.str("Version") == "" || kind == firmware.KindBIOS || kind == firmware.KindBMC {
			continue // the dialect shows it as recorded
		}
		ids[id] = true
		d.locate(tree+id, at)
		p.Firmware.Components = append(p.Firmware.Components, d.component(p, id, kind, x, related))
		if v := x.str("LowestSupportedVersion"); v != "" {
			p.Firmware.Lowest[id] = v
		}
	}
	for _, at := range d.members(service, "SoftwareInventory") {
		if id, ok := strings.CutSuffix(last(at), ".Backup"); ok && ids[id] {
			p.Firmware.Backup[id] = d.resource(at).str("Version")
		}
	}
}

// inventoried returns the version that the firmware inventory shows of a resource, for BMCs
// that show none in the resource itself, as OpenBMC does of drives and controllers.
func (d *deriver) inventoried(at string) string {
	for _, item := range d.members(d.resource(d.link(capture.Root, "UpdateService")), "FirmwareInventory") {
		if x := d.resource(item); slices.Contains(x.refs("RelatedItem"), at) {
			return x.str("Version")
		}
	}
	return ""
}

// component derives one component, and links it to the network card, the power
// supplies or the TPM that it belongs to.
func (d *deriver) component(p *machine.Profile, id string, kind firmware.Kind, x resource, related []string) machine.FirmwarePart {
	c := machine.FirmwarePart{
		ID: id, Kind: kind, Name: cmp.Or(x.str("Name"), id), Vendor: cmp.Or(x.str("Manufacturer"), p.Manufacturer), Version: x.str("Version"),
	}
	c.Model = c.Name
	if part := strings.Split(x.str("SoftwareId"), ":"); len(part) == 3 && part[0] == string(kind) {
		c.Model = part[2]
	}
	if v, ok := x["Updateable"].(bool); ok {
		c.Fixed = !v
	}
	if t, err := time.Parse(time.RFC3339, x.str("ReleaseDate")); err == nil {
		c.Released = t.Format(time.DateOnly)
	}
	for _, r := range related {
		if nic := d.nics[r]; nic != "" && kind == firmware.KindNIC {
			c.Of = cmp.Or(c.Of, nic)
			for i := range p.Cards {
				if slices.Contains(p.Cards[i].NICs, nic) {
					p.Cards[i].Component = cmp.Or(p.Cards[i].Component, id)
				}
			}
		}
		if kind == firmware.KindSupply && strings.Contains(r, "/PowerSupplies/") {
			p.Thermal.Supplies.Component = id
			for n := range p.Thermal.Supplies.Count {
				tree := fmt.Sprintf("/redfish/v1/Chassis/{chassis}/PowerSubsystem/PowerSupplies/PSU%d", n+1)
				if d.locations[tree] == r && c.Of == "" {
					c.Of = "PSU" + strconv.Itoa(n+1)
				}
			}
		}
	}
	// Not every BMC links a component to its card: the same version tells it.
	for at, id := range d.cards { // not every BMC says what it is of
		for i := range p.Cards {
			card := &p.Cards[i]
			if kind == firmware.KindNIC && card.ID == id && len(card.NICs) > 0 && card.Component == "" && d.resource(at).str("FirmwareVersion") == c.Version {
				card.Component = c.ID
			}
		}
	}
	if kind == firmware.KindTPM && p.TPM != nil {
		p.TPM.Component = cmp.Or(p.TPM.Component, id)
	}
	return c
}

// link returns the URI to which a property of the resource at a URI links.
func (d *deriver) link(at, name string) string {
	return strings.TrimRight(d.resource(at).str(name+"/@odata.id"), "/")
}

// tpm derives the TPM.
func (d *deriver) tpm(p *machine.Profile) {
	for _, at := range d.members(d.resource(d.chassis), "TrustedComponents") {
		if x := d.resource(at); x.sub("TPM") != nil || last(at) == "TPM" {
			d.locate("/redfish/v1/Chassis/{chassis}/TrustedComponents/TPM", at)
			p.TPM = &machine.TPMModel{
				Vendor: cmp.Or(x.str("Manufacturer"), "Unknown"), Product: cmp.Or(x.str("Model"), "TPM 2.0"),
				VendorID: x.str("TPM/CapabilitiesVendorID"), PCIID: hexID(x.str("TPM/HardwareInterfaceVendorID"), 4),
			}
			return
		}
	}
	for _, m := range d.resource(d.system).objects("TrustedModules") {
		if strings.HasPrefix(m.str("InterfaceType"), "TPM2") && m.str("Status/State") != "Absent" {
			p.TPM = &machine.TPMModel{Vendor: "Unknown", Product: "TPM 2.0"}
			return
		}
	}
}

// secureBoot derives the vendor's keys: the default databases where the BMC
// shows them, else the current ones.
func (d *deriver) secureBoot(p *machine.Profile) {
	x := d.resource(d.link(d.system, "SecureBoot"))
	m := &p.SecureBoot
	m.Enabled, _ = x["SecureBootEnable"].(bool)
	byID := map[string]string{}
	for _, at := range d.members(x, "SecureBootDatabases") {
		byID[cmp.Or(d.resource(at).str("DatabaseId"), last(at))] = at
	}
	for _, id := range []string{"PK", "KEK", "db", "dbx"} {
		at := cmp.Or(byID[id+"Default"], byID[id])
		keys := append(d.members(d.resource(at), "Certificates"), d.members(d.resource(at), "Signatures")...)
		slices.SortFunc(keys, func(a, b string) int { return natural.Compare(last(a), last(b)) })
		for _, at := range keys {
			k := d.resource(at)
			m.Owner = cmp.Or(m.Owner, k.str("UefiSignatureOwner"))
			switch text := k.str("SignatureString"); {
			case strings.HasPrefix(k.str("CertificateString"), "-----BEGIN CERTIFICATE"):
				m.Keys = append(m.Keys, machine.ModelKey{Database: id, PEM: k.str("CertificateString") + "\n"})
			case len(text) == 64 && (k.str("SignatureType") == "EFI_CERT_SHA256_GUID" || k.str("SignatureTypeRegistry") == "UEFI"):
				m.Keys = append(m.Keys, machine.ModelKey{Database: id, SHA256: strings.ToLower(text)})
			}
		}
	}
}
