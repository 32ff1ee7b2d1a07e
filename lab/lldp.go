package lab

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// switchFrames returns the frames that a NIC receives from its switch; none where
// the profile names no switch.
func switchFrames(n machine.NIC) [][]byte {
	if n.Switch == nil {
		return nil
	}
	return [][]byte{lldpFrame(n)}
}

// lldpFrame returns the LLDP frame of a NIC's switch (IEEE 802.1AB, §8.2), with
// VLANs as IEEE 802.1 organisationally specific TLVs (802.1Q annex D.2). The port is
// the server's place in the rack, which its MAC address has.
func lldpFrame(n machine.NIC) []byte {
	sum := sha256.Sum256([]byte("metalab switch " + n.Switch.Name))
	chassis := append([]byte{0x02}, sum[:5]...)
	mac, err := net.ParseMAC(n.MAC)
	if err != nil {
		return nil
	}
	place := binary.BigEndian.Uint32(append([]byte{0}, mac[2:5]...))
	b := append([]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}, chassis...)
	b = append(b, 0x88, 0xcc)
	tlv := func(kind byte, parts ...[]byte) {
		var value []byte
		for _, p := range parts {
			value = append(value, p...)
		}
		b = binary.BigEndian.AppendUint16(b, uint16(kind)<<9|uint16(len(value)))
		b = append(b, value...)
	}
	id := func(vlan int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(vlan)) }
	tlv(1, []byte{4}, chassis)                                         // a MAC address
	tlv(2, []byte{5}, fmt.Appendf(nil, "Eth%d/%d", place+1, mac[5]+1)) // the name of an interface
	tlv(3, []byte{0, 120})                                             // time to live, in seconds
	tlv(5, []byte(n.Switch.Name))
	const vlanOf, vlanName = 1, 3
	if n.Switch.VLAN != 0 {
		tlv(127, []byte{0x00, 0x80, 0xc2, vlanOf}, id(n.Switch.VLAN))
	}
	for _, v := range n.Switch.VLANs {
		tlv(127, []byte{0x00, 0x80, 0xc2, vlanName}, id(v.ID), []byte{byte(len(v.Name))}, []byte(v.Name))
	}
	tlv(0)
	return b
}
