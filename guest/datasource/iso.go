package datasource

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

// iso is a file system of ISO 9660 (ECMA-119), with the names of Rock Ridge (IEEE P1282), else
// those of Joliet, else its own, as Linux prefers them.
type iso struct {
	device    *device
	block     int64 // size of a block in bytes
	top       entry
	joliet    bool
	rockRidge bool
	skip      int // bytes before the fields of SUSP
}

const (
	isoSector      = 2048
	maxDescriptors = 64
)

// openISO reads the volume descriptors (ECMA-119 §8), of which the primary one is the first.
func openISO(d *device) (*iso, error) {
	v := &iso{device: d}
	var wide entry
	for n := range int64(maxDescriptors) {
		p, err := d.read((16+n)*isoSector, isoSector)
		if err != nil {
			return nil, err
		}
		if string(p[1:6]) != "CD001" || p[0] == 255 {
			break
		}
		switch {
		case p[0] == 1 && v.block == 0:
			v.block = int64(binary.LittleEndian.Uint16(p[128:]))
			v.top = entryAt(p[156:190])
		case p[0] == 2 && (string(p[88:91]) == "%/@" || string(p[88:91]) == "%/C" || string(p[88:91]) == "%/E"):
			wide = entryAt(p[156:190])
		}
	}
	if v.block < 512 || v.block > isoSector || v.block&(v.block-1) != 0 {
		return nil, fmt.Errorf("%w: blocks of %d bytes", errDamaged, v.block)
	}
	v.top.name, wide.name = ".", "."
	if err := v.detect(); err != nil {
		return nil, err
	}
	if !v.rockRidge && wide.dir {
		v.top, v.joliet = wide, true
	}
	return v, nil
}

// detect looks for the field SP in the first record of the root directory (IEEE P1281 §5.3).
func (v *iso) detect() error {
	p, err := v.device.read(int64(v.top.at)*v.block, isoSector)
	if err != nil {
		return err
	}
	if n := int(p[0]); n >= 34+7 {
		system := p[34:n]
		if bytes.HasPrefix(system, []byte{'S', 'P', 7, 1, 0xbe, 0xef}) {
			v.rockRidge, v.skip = true, int(system[6])
		}
	}
	return nil
}

// entryAt returns the entry of a directory record (ECMA-119 §9.1), without its name.
func entryAt(p []byte) entry {
	e := entry{at: binary.LittleEndian.Uint32(p[2:]) + uint32(p[1]), size: int64(binary.LittleEndian.Uint32(p[10:])), dir: p[25]&2 != 0}
	if p[25]&0x80 != 0 {
		e.size = maxFile + 1 // it goes on in another record: at least one of them has 4 GiB
	}
	return e
}

func (v *iso) root() entry { return v.top }

func (v *iso) same(name, wanted string) bool { return name == wanted }

func (v *iso) content(file entry) ([]byte, error) {
	return v.device.read(int64(file.at)*v.block, file.size)
}

func (v *iso) list(dir entry) (out []entry, err error) {
	if dir.size > maxDirectory {
		return nil, fmt.Errorf("%w: a directory of %d bytes", errDamaged, dir.size)
	}
	if err := v.device.count(dir.size * directoryCost); err != nil {
		return nil, err
	}
	p, err := v.content(dir)
	if err != nil {
		return nil, err
	}
	for len(p) > 0 {
		n := int(p[0])
		if n == 0 { // no record crosses the end of a sector
			p = p[min(len(p), (len(p)-1)%isoSector+1):]
			continue
		}
		if n < 34 || n > len(p) || 33+int(p[32]) > n {
			return nil, fmt.Errorf("%w: a directory record of %d bytes", errDamaged, n)
		}
		record := p[:n]
		p = p[n:]
		if id := record[33 : 33+int(record[32])]; string(id) == "\x00" || string(id) == "\x01" {
			continue // "." and ".."
		}
		e := entryAt(record)
		if e.name, err = v.name(record); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// name returns the name of a record.
func (v *iso) name(record []byte) (string, error) {
	id := record[33 : 33+int(record[32])]
	if v.joliet {
		wide := make([]uint16, len(id)/2)
		for k := range wide {
			wide[k] = binary.BigEndian.Uint16(id[2*k:])
		}
		return strings.TrimRight(strings.TrimSuffix(string(utf16.Decode(wide)), ";1"), "."), nil
	}
	if v.rockRidge {
		system := 33 + len(id)
		system += (system & 1) + v.skip
		name, err := v.rockRidgeName(record[min(system, len(record)):])
		if name != "" || err != nil {
			return name, err
		}
	}
	name, _, _ := strings.Cut(strings.ToLower(string(id)), ";") // as Linux shows it (mount option map=normal)
	return strings.TrimSuffix(name, "."), nil
}

// rockRidgeName returns the name that fields NM have (IEEE P1282 §4.1.4), some of which may be
// where a field CE says (IEEE P1281 §5.1).
func (v *iso) rockRidgeName(system []byte) (string, error) {
	name := ""
	for {
		var more []byte
		for len(system) >= 4 && int(system[2]) >= 4 && int(system[2]) <= len(system) {
			field := system[:system[2]]
			system = system[system[2]:]
			switch kind := string(field[:2]); {
			case kind == "NM" && len(field) >= 5:
				name += string(field[5:])
			case kind == "CE" && len(field) >= 28:
				more = field
			case kind == "ST":
				system = nil
			}
		}
		if more == nil {
			return name, nil
		}
		u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(more[at:])) }
		if u32(20) > isoSector {
			return "", fmt.Errorf("%w: a continuation of %d bytes", errDamaged, u32(20))
		}
		var err error
		if system, err = v.device.read(u32(4)*v.block+u32(12), u32(20)); err != nil {
			return "", err
		}
	}
}
