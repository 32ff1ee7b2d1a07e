package machine

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// BootOption is a boot option of the firmware (UEFI 2.10, §3.1.3). The options
// follow from the machine's hardware and settings.
type BootOption struct {
	Source
	ID      string // "Boot0010"; stable for a device
	Name    string // for display
	Path    string // UEFI device path, as text (UEFI 2.10, §10.6)
	Enabled bool
}

// First numbers of boot options, which have 16 bits, by kind of device.
const (
	cdOption     = 0x0001
	usbOption    = 0x0002
	uriOption    = 0x0003
	volumeOption = 0x0080
	driveOption  = 0x0100
	pxeOption    = 0x0200
	httpOption   = 0x0300
)

// BootOptions returns the boot options by ID.
func (v *View) BootOptions() []BootOption {
	if v.BootOptionCache == nil {
		return options(v.Profile, v.Identity, v.Boot, v.Firmware, v.Storage)
	}
	return v.BootOptionCache.all(v)
}

// BootOptionCache computes the boot options once for views in which they are
// equal. The zero value has not computed them.
type BootOptionCache struct {
	boot     *BootSettings
	firmware firmware.View
	disks    storage.View

	once    sync.Once
	options []BootOption
}

// Equal returns true: the options follow from the rest of a view.
func (*BootOptionCache) Equal(*BootOptionCache) bool { return true }

// bootOptionCache returns the cache of the last View while its inputs have not
// changed.
func (m *Machine) bootOptionCache() *BootOptionCache {
	boot, fw, disks := m.bootSettings(), m.fw.View(), m.disks.View()
	if b := m.bootOptions; b == nil || b.boot != boot || b.firmware != fw || !b.disks.Same(disks) {
		m.bootOptions = &BootOptionCache{boot: boot, firmware: fw, disks: disks}
	}
	return m.bootOptions
}

func (b *BootOptionCache) all(v *View) []BootOption {
	b.once.Do(func() { b.options = options(v.Profile, v.Identity, b.boot, b.firmware, b.disks) })
	return slices.Clone(b.options)
}

// EffectiveBootOrder returns the boot options that a boot tries, in order,
// without disabled ones.
func (v *View) EffectiveBootOrder() []BootOption { return order(v.Profile, v.Boot, v.BootOptions()) }

func (m *Machine) options() []BootOption {
	return options(m.profile, m.identity, m.bootSettings(), m.fw.View(), m.disks.View())
}
func (m *Machine) order() []BootOption { return order(m.profile, m.bootSettings(), m.options()) }

// bootURI returns the URI of HTTP boots: the one that was set, or a BIOS
// setting's; "" means DHCP.
func bootURI(set *BootSettings, fw firmware.View) string {
	if set.HTTPURI != "" {
		return set.HTTPURI
	}
	uri, _ := fw.Acts(firmware.HTTPURI, "")
	if !strings.HasPrefix(uri, "http://") && !strings.HasPrefix(uri, "https://") {
		return ""
	}
	return uri
}

// withoutPassword returns a URI as boot options show it.
func withoutPassword(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	if _, has := u.User.Password(); has {
		return u.Redacted()
	}
	return uri
}

func options(p *Profile, id *Identity, set *BootSettings, fw firmware.View, disks storage.View) []BootOption {
	var out []BootOption
	devices := disks.Devices()
	add := func(n int, s Source, name, path string) {
		if !biosOffers(fw, id, devices, s) {
			return
		}
		ref := fmt.Sprintf("Boot%04X", n)
		out = append(out, BootOption{Source: s, ID: ref, Name: name, Path: path, Enabled: !slices.Contains(set.Disabled, ref)})
	}
	add(cdOption, Source{Kind: Cd}, "Virtual CD", usbPath+"/CDROM(0x0)")
	add(usbOption, Source{Kind: Usb}, "Virtual USB Drive", usbPath)
	if uri := bootURI(set, fw); uri != "" && len(id.NICs) > 0 {
		n := id.NICs[0]
		text := withoutPassword(uri)
		add(uriOption, Source{Kind: UefiHTTP, Device: n.ID, URI: uri}, "HTTP Boot: "+text, n.Path()+anyIPv4+"/Uri("+text+")")
	}
	used := map[int]bool{}
	for _, d := range devices {
		if v := d.Volume; v != nil {
			n := volumeNumber(v)
			for used[n] { // taken by another controller
				n++
			}
			used[n] = true
			add(volumeOption+n%(driveOption-volumeOption), Source{Kind: Hdd, Device: d.ID}, "Volume "+v.ID+": "+v.Name, p.volumePath(id, v))
		}
	}
	n := 0
	for _, c := range id.Storage {
		for i := range c.Drives {
			at := slices.IndexFunc(devices, func(d storage.Device) bool { return d.ID == c.Drives[i].ID })
			if at >= 0 {
				d := devices[at].Drive
				add(driveOption+n, Source{Kind: Hdd, Device: d.ID}, fmt.Sprintf("Drive %d: %s %s", d.Bay, d.Product, d.Serial), p.drivePath(&c, d))
			}
			n++
		}
	}
	for i, n := range id.NICs {
		add(pxeOption+i, Source{Kind: Pxe, Device: n.ID}, "PXE IPv4: "+n.Name+" "+n.MAC, n.Path()+anyIPv4)
	}
	for i, n := range id.NICs {
		add(httpOption+i, Source{Kind: UefiHTTP, Device: n.ID}, "HTTP IPv4: "+n.Name+" "+n.MAC, n.Path()+anyIPv4+"/Uri()")
	}
	return out
}

// volumeNumber returns the number in a volume's ID.
func volumeNumber(v *storage.VolumeView) int {
	n, err := strconv.Atoi(v.ID)
	if err != nil {
		return 0 // not reached: they are ours
	}
	return n
}

// order returns the boot order: the one that was set followed by newer options,
// or the model's.
func order(p *Profile, set *BootSettings, all []BootOption) []BootOption {
	var out []BootOption
	for _, id := range set.Order {
		if i := slices.IndexFunc(all, func(b BootOption) bool { return b.ID == id }); i >= 0 {
			out = append(out, all[i])
		}
	}
	for _, k := range p.BootOrder {
		for _, b := range all {
			if b.Kind == k && !slices.Contains(set.Order, b.ID) && !slices.Contains(set.Excluded, b.ID) {
				out = append(out, b)
			}
		}
	}
	return out
}

// SetBootOrder sets the boot order as boot option IDs, each at most once.
// Options that it omits are not tried. Nil restores the model's order.
type SetBootOrder struct{ Order []string }

func (c SetBootOrder) apply(m *Machine, _ time.Time) ([]Event, error) {
	var left []string
	for _, b := range m.options() {
		if !slices.Contains(c.Order, b.ID) {
			left = append(left, b.ID)
		}
	}
	for i, id := range c.Order {
		if slices.Contains(c.Order[:i], id) {
			return nil, fmt.Errorf("%w: boot order: %s is there twice", ErrConflict, id)
		}
		if _, ok := m.option(id); !ok {
			return nil, fmt.Errorf("boot order: %q is no boot option: %w", id, ErrUnknown)
		}
	}
	if c.Order == nil {
		left = nil
	}
	m.updateBootSettings(func(b *BootSettings) { b.Order, b.Excluded = slices.Clone(c.Order), left })
	return nil, nil
}

// SetBootOption enables or disables a boot option.
type SetBootOption struct {
	ID      string
	Enabled bool
}

func (c SetBootOption) apply(m *Machine, _ time.Time) ([]Event, error) {
	b, ok := m.option(c.ID)
	if !ok {
		return nil, fmt.Errorf("%q is no boot option: %w", c.ID, ErrUnknown)
	}
	if b.Enabled == c.Enabled {
		return nil, nil
	}
	m.updateBootSettings(func(s *BootSettings) {
		off := slices.DeleteFunc(slices.Clone(s.Disabled), func(id string) bool { return id == c.ID })
		if !c.Enabled {
			off = append(off, c.ID)
		}
		slices.Sort(off)
		s.Disabled = off
	})
	return nil, nil
}

func (m *Machine) option(id string) (BootOption, bool) {
	all := m.options()
	i := slices.IndexFunc(all, func(b BootOption) bool { return b.ID == id })
	if i < 0 {
		return BootOption{}, false
	}
	return all[i], true
}
