package cloudinit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// netplanFile is where cloud-init writes the network's configuration for netplan.
const netplanFile = "etc/netplan/50-cloud-init.yaml"

// errFallback reports network data without a configuration, in whose place cloud-init has one of
// its own: DHCP on the first NIC with a link. A server of a lab has an address without it.
var errFallback = errors.New("the first NIC with a link uses DHCP")

// errDisabled reports a configuration that disables itself.
var errDisabled = errors.New("config is disabled")

// applyNetwork writes the network's configuration as Debian 12 has it after cloud-init 22.4.2. What
// cannot be read is lost alone only where it is so there; most mistakes lose all network data.
func applyNetwork(i Instance, root Root, r *Result) {
	if len(i.NetworkData) == 0 {
		if i.Interfaces {
			r.ignore("the /etc/network/interfaces of the data source is not read: give network_data.json, or network-config of NoCloud")
		}
		return
	}
	found := losses{}
	out, err := netplanOf(i, &found)
	left := maxScalars
	if err == nil && !fits(out, &left) {
		err = limitError(fmt.Sprintf("the configuration for netplan has more than %d bytes", maxScalars))
	}
	if err == nil {
		var b []byte
		if b, err = yaml.Marshal(nodeOf(dict{"network": out})); err == nil {
			root.write(netplanFile, 0o644, string(b))
		}
	}
	if err != nil {
		why := ", as cloud-init loses all of them for this"
		if limit := limitError(""); errors.Is(err, errFallback) || errors.Is(err, errDisabled) || errors.As(err, &limit) {
			why = ""
		}
		found = losses{} // with all items
		found.ignore("the network data are not applied%s: %v", why, err)
	}
	r.Ignored = append(r.Ignored, found.lines...)
	if found.more > 0 {
		r.ignore("the network data have %d more items that are not applied", found.more)
	}
}

// limitError is a limit that cloud-init does not have.
type limitError string

// Error implements error.
func (e limitError) Error() string { return string(e) }

// losses are the items of network data that are not applied, each a line of the console.
type losses struct {
	lines []string
	more  int // after the first ones
}

func (l *losses) ignore(format string, args ...any) {
	const most = 32
	if len(l.lines) == most {
		l.more++
		return
	}
	l.lines = append(l.lines, oneLine(fmt.Sprintf(format, args...)))
}

// oneLine bounds a line of the console, which has texts of the network data in it.
func oneLine(line string) string {
	const most = 300
	line = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, line)
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

// netplanOf returns the configuration for netplan.
func netplanOf(i Instance, r *losses) (dict, error) {
	if i.Source != NoCloud {
		return ofNetworkData(i, r)
	}
	doc, err := parseYAML(i.NetworkData)
	config, ok := doc.(dict)
	if err == nil && doc != nil && !ok {
		err = errors.New("it is no mapping")
	}
	if err != nil {
		return nil, fmt.Errorf("network-config: %w: %w", err, errFallback)
	}
	if inner, has := config["network"]; has {
		if config, ok = inner.(dict); !ok && truthy(inner) {
			return nil, errors.New("network: it is no mapping")
		}
	}
	switch {
	case config["config"] == "disabled":
		return nil, errDisabled
	case len(config) == 0:
		return nil, errFallback
	}
	switch version := config["version"]; {
	case same(version, int64(2)):
		nics, err := ethernetsOf(config)
		if err == nil {
			err = present(nics, i.NICs)
		}
		return config, err
	case same(version, int64(1)):
		all, ok := config["config"].([]any)
		if !ok {
			return nil, errors.New("config: it is no list")
		}
		return ofVersion1(version1{all, func(i int) string { return fmt.Sprintf("config[%d]", i) }}, i, r)
	default:
		return nil, fmt.Errorf("version %s: give the number 1 or 2", pyText(version))
	}
}

// ofNetworkData returns that of network_data.json.
func ofNetworkData(i Instance, r *losses) (dict, error) {
	doc, err := parseJSON(i.NetworkData)
	if err == nil && doc == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		if limit := limitError(""); !errors.As(err, &limit) {
			err = fmt.Errorf("%w (Debian takes the whole config drive for damaged then)", err)
		}
		return nil, fmt.Errorf("network_data.json: %w", err)
	}
	in, err := ofOpenStack(doc, i.NICs, r)
	if err != nil {
		return nil, err
	}
	return ofVersion1(in, i, r)
}

func ofVersion1(in version1, i Instance, r *losses) (dict, error) {
	nics, err := physicalOf(in)
	if err == nil {
		err = present(nics, i.NICs)
	}
	if err != nil {
		return nil, err
	}
	all, err := linksOf(in, r)
	if err != nil {
		return nil, err
	}
	return all.netplan()
}

// nic is a NIC that a configuration wants to be there.
type nic struct {
	where string
	mac   any
}

// present checks the NICs that a configuration names by their MAC addresses. cloud-init waits for
// them, and then gives up (distros.networking.wait_for_physdevs); it compares as they are written.
func present(wanted []nic, nics map[string]string) error {
	for _, n := range wanted {
		text, isText := n.mac.(string)
		switch {
		case isCollection(n.mac) || !isText && nics != nil:
			return fmt.Errorf("%s: the MAC address %s is no text: quote it", n.where, pyText(n.mac))
		case nics == nil || nics[text] != "":
		case nics[strings.ToLower(text)] != "":
			return fmt.Errorf("%s: the MAC address %s: give it in lower case", n.where, text)
		default:
			return fmt.Errorf("%s: the server has no NIC with the MAC address %s", n.where, text)
		}
	}
	return nil
}

// physicalOf returns the NICs of version 1.
func physicalOf(in version1) (out []nic, err error) {
	for i, v := range in.all {
		c, ok := v.(dict)
		if !ok {
			return nil, fmt.Errorf("%s: it is no mapping", in.name(i))
		}
		if c["type"] == "physical" && truthy(c["mac_address"]) {
			out = append(out, nic{in.name(i), c["mac_address"]})
		}
	}
	return out, nil
}

// ethernetsOf returns the NICs of version 2 that get a name.
func ethernetsOf(config dict) (out []nic, err error) {
	v, has := config["ethernets"]
	all, ok := v.(dict)
	if has && !ok {
		return nil, errors.New("ethernets: it is no mapping")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		where := "ethernets." + name
		e, ok := all[name].(dict)
		if !ok {
			return nil, fmt.Errorf("%s: it is no mapping", where)
		}
		if !truthy(e["set-name"]) {
			continue
		}
		match, ok := e["match"].(dict)
		if _, has := e["match"]; has && !ok {
			return nil, fmt.Errorf("%s.match: it is no mapping", where)
		}
		if mac := match["macaddress"]; truthy(mac) {
			out = append(out, nic{where, mac})
		}
	}
	return out, nil
}

// fits reports whether a value has at most so many bytes of text. Lists that many interfaces share
// are written for each.
func fits(v any, left *int) bool {
	*left -= 8
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case []any:
		for _, e := range v {
			if *left < 0 {
				return false
			}
			fits(e, left)
		}
	case dict:
		for k, e := range v {
			if *left < 0 {
				return false
			}
			*left -= len(k)
			fits(e, left)
		}
	}
	return *left >= 0
}
