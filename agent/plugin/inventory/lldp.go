package inventory

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
)

// EtherTypes (IEEE 802.1AB, §7.3; IEEE 802.1Q, §9.6).
const (
	etherLLDP = 0x88cc
	etherVLAN = 0x8100
)

// Neighbours adds the LLDP data of the switch ports that the NICs are connected to. It
// listens for at most this long; missing information stays empty, as on a system
// that cannot receive frames.
func Neighbours(ctx context.Context, s sys.System, nics []job.NIC, most time.Duration) {
	hearer, ok := s.(sys.FrameReceiver)
	if !ok || most <= 0 {
		return
	}
	var names []string
	for _, n := range nics {
		if n.Carrier && !slices.Contains(names, n.Name) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for name, frame := range hearer.ReceiveFrames(ctx, etherLLDP, names) {
		neighbour, ok := parseLLDP(frame)
		if !ok {
			continue
		}
		for i := range nics {
			if n := &nics[i]; n.Name == name {
				n.LLDP, n.VLANID = &neighbour.lldp, neighbour.untagged
				n.VLANs = mergeVLANs(neighbour.vlans, n.VLANs)
			}
		}
	}
}

// mergeVLANs returns the VLANs of both lists by ID, with the data of first for
// those in both.
func mergeVLANs(first, second []job.VLAN) []job.VLAN {
	out := slices.Clone(first)
	for _, v := range second {
		if !slices.ContainsFunc(out, func(o job.VLAN) bool { return o.ID == v.ID }) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b job.VLAN) int { return a.ID - b.ID })
	return out
}

// maxVLAN is the highest VLAN ID (IEEE 802.1Q, §9.6).
const maxVLAN = 4094

// neighbour is the content of one frame.
type neighbour struct {
	lldp     job.LLDP
	untagged int
	vlans    []job.VLAN
}

// Types of TLVs (IEEE 802.1AB, §8.4), and the organization identifier of IEEE
// 802.1.
const (
	tlvEnd        = 0
	tlvChassis    = 1
	tlvPort       = 2
	tlvSystemName = 5
	tlvSpecific   = 127
)

var dot1 = []byte{0x00, 0x80, 0xc2}

// tlvs holds the TLVs that the agent reads. Malformed ones are ignored.
var tlvs = map[int]func(n *neighbour, value []byte){
	tlvChassis:    func(n *neighbour, b []byte) { n.lldp.SwitchID = identifier(b, 4, 5) },
	tlvPort:       func(n *neighbour, b []byte) { n.lldp.PortID = identifier(b, 3, 4) },
	tlvSystemName: func(n *neighbour, b []byte) { n.lldp.SwitchName = printable(b) },
	tlvSpecific:   (*neighbour).specific,
}

// parseLLDP decodes a frame. It returns false if that is not LLDP, or truncated.
func parseLLDP(frame []byte) (neighbour, bool) {
	var n neighbour
	if len(frame) < 14 {
		return n, false
	}
	kind, b := binary.BigEndian.Uint16(frame[12:]), frame[14:]
	if kind == etherVLAN && len(b) >= 4 {
		kind, b = binary.BigEndian.Uint16(b[2:]), b[4:]
	}
	if kind != etherLLDP {
		return n, false
	}
	for len(b) >= 2 {
		head := int(binary.BigEndian.Uint16(b)) // 7 bits of type, 9 of length
		length := head & 0x1ff
		if b = b[2:]; len(b) < length {
			return n, false
		}
		if head>>9 == tlvEnd {
			break
		}
		if read := tlvs[head>>9]; read != nil {
			read(&n, b[:length])
		}
		b = b[length:]
	}
	return n, n.lldp.SwitchID != "" && n.lldp.PortID != ""
}

// specific decodes the TLVs of IEEE 802.1 (IEEE 802.1Q, annex D.2): the VLAN of
// untagged frames, and the names of VLANs.
func (n *neighbour) specific(b []byte) {
	if !bytes.HasPrefix(b, dot1) || len(b) < 6 {
		return
	}
	id := int(binary.BigEndian.Uint16(b[4:]))
	if id < 1 || id > maxVLAN {
		return
	}
	switch subtype, rest := b[3], b[6:]; {
	case subtype == 1:
		n.untagged = id
	case subtype == 3 && len(rest) > 0 && len(rest) > int(rest[0]):
		n.vlans = mergeVLANs(n.vlans, []job.VLAN{{ID: id, Name: printable(rest[1 : 1+int(rest[0])])}})
	}
}

// identifier decodes the ID of a chassis or a port: its subtype selects a MAC
// address, a network address (preceded by its IANA family number) or text.
func identifier(b []byte, mac, network byte) string {
	if len(b) < 2 {
		return ""
	}
	subtype, b := b[0], b[1:]
	switch {
	case subtype == mac && len(b) == 6:
		return net.HardwareAddr(b).String()
	case subtype == network && (b[0] == 1 || b[0] == 2):
		if ip, ok := netip.AddrFromSlice(b[1:]); ok {
			return ip.String()
		}
	}
	return printable(b)
}

// printable removes unprintable characters.
func printable(b []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(b)))
}
