package lcm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/agent/job"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// readHost finds the host info again when it may have changed.
func (a *agent) readHost(ctx context.Context) error {
	if !a.reread {
		return nil
	}
	h, err := a.Hardware(ctx)
	if err != nil {
		return fmt.Errorf("lcm: hardware: %w", err)
	}
	boot := metav1.NewTime(a.boot.Time.UTC())
	a.hostName = h.Hostname
	a.host = &lcmv1.HostInfo{
		BootTime:      &boot,
		Architecture:  h.CPU.Arch,
		KernelVersion: a.line("/proc/sys/kernel/osrelease"),
		OS:            a.os(),
		Timezone:      a.line("/etc/timezone"),
		Repositories:  a.repositories(),
		Hardware: &lcmv1.Hardware{
			CPU:     lcmv1.HardwareCPU{Count: h.CPU.Count, Threads: h.CPU.Count},
			Memory:  lcmv1.HardwareMemory{Total: int64(h.RAMMiB) << 20},
			Storage: lcmv1.HardwareStorage{Disks: disks(h.Disks)},
			Network: lcmv1.HardwareNetwork{NICs: nics(h.NICs)},
		},
	}
	a.nics = h.NICs
	a.reread = false
	return nil
}

func disks(all []job.Disk) (out []lcmv1.Disk) {
	for _, d := range all {
		disk := lcmv1.Disk{Name: d.Name, Size: d.SizeBytes, Vendor: d.Vendor, Model: d.Model, SerialNumber: d.Serial, WWN: d.WWN, Type: d.Type, ByPath: d.ByPath}
		if d.ByPath != "" {
			disk.ByPaths = []string{d.ByPath}
		}
		out = append(out, disk)
	}
	return out
}

// nics returns each NIC once: the inventory has one with two addresses twice.
func nics(all []job.NIC) (out []lcmv1.NIC) {
	for _, n := range all {
		if !slices.ContainsFunc(out, func(o lcmv1.NIC) bool { return o.Name == n.Name }) {
			out = append(out, lcmv1.NIC{Name: n.Name, MACAddress: n.MAC, PCIAddress: n.PCIAddress})
		}
	}
	return out
}

// line returns the content of a file of one line; "" if it cannot be read.
func (a *agent) line(name string) string {
	b, err := a.System.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// os reads os-release(5).
func (a *agent) os() *lcmv1.OSInfo {
	b, err := a.System.ReadFile("/etc/os-release")
	if err != nil {
		if b, err = a.System.ReadFile("/usr/lib/os-release"); err != nil {
			return nil
		}
	}
	v := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			v[name] = strings.Trim(value, `"'`)
		}
	}
	family := v["ID"]
	if like, _, _ := strings.Cut(v["ID_LIKE"], " "); like != "" {
		family = like
	}
	o := &lcmv1.OSInfo{Type: "linux", Family: family, Platform: v["ID"], Name: v["NAME"], Version: v["VERSION"], Codename: v["VERSION_CODENAME"], Build: v["BUILD_ID"]}
	for i, part := range strings.SplitN(v["VERSION_ID"], ".", 3) {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		*[]*int{&o.Major, &o.Minor, &o.Patch}[i] = n
	}
	return o
}

// distribution returns the distribution as modules name those that they support.
func distribution(o *lcmv1.OSInfo) []string {
	if o == nil || o.Platform == "" || o.Codename == "" {
		return nil
	}
	return []string{o.Platform + "/" + o.Codename}
}

// repositories reads the repositories of apt (sources.list(5)), in both formats.
func (a *agent) repositories() []lcmv1.Repository {
	const dir = "/etc/apt"
	files := []string{dir + "/sources.list"}
	names, err := a.System.ReadDir(dir + "/sources.list.d")
	if err == nil {
		for _, n := range names {
			files = append(files, path.Join(dir, "sources.list.d", n))
		}
	}
	var out []lcmv1.Repository
	for _, file := range files {
		b, err := a.System.ReadFile(file)
		if err != nil {
			continue
		}
		switch path.Ext(file) {
		case ".list":
			out = append(out, oneLine(string(b))...)
		case ".sources":
			out = append(out, deb822(string(b))...)
		}
	}
	return out
}

// oneLine parses lines like "deb [signed-by=…] URI SUITE SECTION…".
func oneLine(text string) (out []lcmv1.Repository) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		if words := strings.Fields(rest); kind == "deb" && len(words) >= 2 {
			out = append(out, lcmv1.Repository{URI: words[0], Release: words[1], Section: words[2:]})
		}
	}
	return out
}

// deb822 parses stanzas with Types, URIs, Suites and Components.
func deb822(text string) (out []lcmv1.Repository) {
	for stanza := range strings.SplitSeq(text, "\n\n") {
		v := map[string][]string{}
		for line := range strings.Lines(stanza) {
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, " ") {
				v[strings.ToLower(name)] = strings.Fields(value)
			}
		}
		if !slices.Contains(v["types"], "deb") || slices.Equal(v["enabled"], []string{"no"}) {
			continue
		}
		for _, uri := range v["uris"] {
			for _, suite := range v["suites"] {
				out = append(out, lcmv1.Repository{URI: uri, Release: suite, Section: v["components"]})
			}
		}
	}
	return out
}

// rebootRequest reads the reasons for a reboot that playbooks have written, a line each.
func (a *agent) rebootRequest() (required bool, reason string, err error) {
	b, err := a.System.ReadFile(rebootRequestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("lcm: %w", err)
	}
	return true, shorten(strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))), nil
}

// addresses returns the address of spec.interface, or else the one in spec.cidr, or else the
// first one, and the host name.
func (a *agent) addresses(m *lcmv1.LCMMachine) ([]lcmv1.NodeAddress, error) {
	all, err := a.allAddresses()
	if err != nil {
		return nil, fmt.Errorf("lcm: addresses: %w", err)
	}
	var in netip.Prefix
	if m.Spec.CIDR != "" {
		if in, err = netip.ParsePrefix(m.Spec.CIDR); err != nil {
			return nil, fmt.Errorf("lcm: spec.cidr %q: give a range like 192.0.2.0/24", m.Spec.CIDR)
		}
	}
	var found netip.Addr
	for _, one := range all {
		fits := (m.Spec.Interface == "" || one.nic == m.Spec.Interface) && (m.Spec.CIDR == "" || in.Contains(one.address))
		if fits && (!found.IsValid() || one.address.Is4() && !found.Is4()) {
			found = one.address
		}
	}
	var out []lcmv1.NodeAddress
	if found.IsValid() {
		out = append(out, lcmv1.NodeAddress{Type: lcmv1.AddressInternalIP, Address: found.String()})
	}
	if a.hostName != "" {
		out = append(out, lcmv1.NodeAddress{Type: lcmv1.AddressHostname, Address: a.hostName})
	}
	return out, nil
}

type nicAddress struct {
	nic     string
	address netip.Addr
}

// allAddresses returns the addresses: those of physical NICs first, in the inventory's
// order, then those of others, such as bonds, by their names.
func (a *agent) allAddresses() ([]nicAddress, error) {
	var out []nicAddress
	if a.Addresses == nil {
		for _, n := range a.nics {
			if address, err := netip.ParseAddr(n.IP); err == nil {
				out = append(out, nicAddress{n.Name, address.Unmap()})
			}
		}
		return append(out, a.configuredAddresses()...), nil
	}
	found, err := a.Addresses()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range a.nics {
		if !slices.Contains(names, n.Name) {
			names = append(names, n.Name)
		}
	}
	var others []string
	for name := range found {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range append(names, others...) {
		for _, address := range found[name] {
			out = append(out, nicAddress{name, address})
		}
	}
	return out, nil
}

// claimed returns an error when another server's agent writes to the LCMMachine: none of the
// reported NICs is one of this server. The agent that reported first goes on.
func (a *agent) claimed(m *lcmv1.LCMMachine) error {
	if m.Status.HostInfo == nil || m.Status.HostInfo.Hardware == nil {
		return nil
	}
	theirs, ours := macs(m.Status.HostInfo), macs(a.host)
	if len(theirs) == 0 || len(ours) == 0 || slices.ContainsFunc(theirs, func(mac string) bool { return slices.Contains(ours, mac) }) {
		return nil
	}
	name := ""
	for _, address := range m.Status.Addresses {
		if address.Type == lcmv1.AddressHostname {
			name = address.Address + ", "
		}
	}
	return fmt.Errorf("lcm: LCMMachine %s/%s is that of another server (%sNICs %s): give this server's agent another; if this server replaces that one, "+
		"clear the report with kubectl patch lcmmachines.lcm.mirantis.com %s -n %s --subresource=status --type=merge -p '{\"status\":{\"hostInfo\":null}}'",
		a.Namespace, a.Machine, name, strings.Join(theirs, ", "), a.Machine, a.Namespace)
}

func macs(h *lcmv1.HostInfo) (out []string) {
	for _, n := range h.Hardware.Network.NICs {
		if !n.IsVirtual && n.MACAddress != "" {
			out = append(out, strings.ToLower(n.MACAddress))
		}
	}
	return out
}
