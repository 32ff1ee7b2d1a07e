package sys

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// ataFake is a device that executes the commands of ataErase.
type ataFake struct {
	identify []byte
	fail     byte // command that fails
	stuck    bool // the password cannot be removed then
	asked    []byte
	blocks   [][]byte
	limit    time.Duration
}

func (f *ataFake) do(cdb [16]byte, data []byte, limit time.Duration) error {
	f.asked = append(f.asked, cdb[14])
	if cdb[14] == f.fail || f.stuck && cdb[14] == ataDisablePassword {
		return errors.New("aborted")
	}
	switch cdb[14] {
	case ataIdentify:
		copy(data, f.identify)
	case ataEraseUnit:
		f.limit = limit
		fallthrough
	default:
		f.blocks = append(f.blocks, slices.Clone(data))
	}
	return nil
}

// identify is IDENTIFY DEVICE data with the security words.
func identify(word128, time, enhanced uint16) []byte {
	p := make([]byte, 512)
	binary.LittleEndian.PutUint16(p[2*82:], 2)
	binary.LittleEndian.PutUint16(p[2*89:], time)
	binary.LittleEndian.PutUint16(p[2*90:], enhanced)
	binary.LittleEndian.PutUint16(p[2*128:], word128)
	return p
}

func TestATAErase(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fake  ataFake
		want  string
		none  bool // the error is ErrNoErase
		fails bool
		asked []byte
		limit time.Duration
	}{
		{name: "enhanced", fake: ataFake{identify: identify(0x21, 10, 0x8000|300)}, want: "ATA Enhanced Security Erase", asked: []byte{0xec, 0xf1, 0xf3, 0xf4}, limit: 20 * time.Hour},
		{name: "normal", fake: ataFake{identify: identify(0x01, 10, 0)}, want: "ATA Security Erase", asked: []byte{0xec, 0xf1, 0xf3, 0xf4}, limit: 40 * time.Minute},
		{name: "time untold", fake: ataFake{identify: identify(0x01, 0, 0)}, want: "ATA Security Erase", asked: []byte{0xec, 0xf1, 0xf3, 0xf4}, limit: 24 * time.Hour},
		{name: "no security", fake: ataFake{identify: make([]byte, 512)}, none: true, asked: []byte{0xec}},
		{name: "frozen", fake: ataFake{identify: identify(0x29, 0, 0)}, none: true, asked: []byte{0xec}},
		{name: "password set", fake: ataFake{identify: identify(0x23, 0, 0)}, none: true, asked: []byte{0xec}},
		{name: "no ATA", fake: ataFake{fail: ataIdentify}, none: true, asked: []byte{0xec}},
		{name: "no password", fake: ataFake{identify: identify(0x21, 0, 0), fail: ataSetPassword}, none: true, asked: []byte{0xec, 0xf1}},
		{name: "failed", fake: ataFake{identify: identify(0x21, 0, 0), fail: ataEraseUnit}, fails: true, asked: []byte{0xec, 0xf1, 0xf3, 0xf4, 0xf6}},
		{name: "failed and locked", fake: ataFake{identify: identify(0x21, 0, 0), fail: ataErasePrepare, stuck: true}, fails: true, asked: []byte{0xec, 0xf1, 0xf3, 0xf6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ataErase(tt.fake.do)
			if got != tt.want || errors.Is(err, ErrNoErase) != tt.none || (err != nil) != (tt.none || tt.fails) {
				t.Errorf("ataErase = %q, %v", got, err)
			}
			if !slices.Equal(tt.fake.asked, tt.asked) {
				t.Errorf("commands % x, want % x", tt.fake.asked, tt.asked)
			}
			if tt.fake.limit != tt.limit {
				t.Errorf("limit %v, want %v", tt.fake.limit, tt.limit)
			}
			if tt.want != "" {
				last := tt.fake.blocks[len(tt.fake.blocks)-1]
				if (last[0] == 2) != (tt.want == "ATA Enhanced Security Erase") || string(last[2:2+len(ataPassword)]) != ataPassword {
					t.Errorf("the erase command's data begins % x", last[:20])
				}
			}
		})
	}
}

// SAT-4 §12.2.2.1, written out by hand.
func TestATACDB(t *testing.T) {
	for _, tt := range []struct {
		command, protocol byte
		want              [16]byte
	}{
		{ataIdentify, ataPIOIn, [16]byte{0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0}},
		{ataSetPassword, ataPIOOut, [16]byte{0x85, 0x0a, 0x06, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xf1, 0}},
		{ataErasePrepare, ataNonData, [16]byte{0x85, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf3, 0}},
	} {
		if got := ataCDB(tt.command, tt.protocol); got != tt.want {
			t.Errorf("ataCDB(%#x) = % x, want % x", tt.command, got, tt.want)
		}
	}
}

func TestNVMeErase(t *testing.T) {
	if size := unsafe.Sizeof(nvmeCommand{}); size != 72 {
		t.Fatalf("nvmeCommand has %d bytes, the kernel wants 72", size)
	}
	for _, tt := range []struct {
		name       string
		oacs       byte
		fna        byte
		namespaces uint32
		flbas, dps byte
		refuse     byte
		want       string
		none       bool
		cdw10      uint32
	}{
		{name: "cryptographic", oacs: 2, fna: 4, namespaces: 1, flbas: 1, want: "NVMe Format with cryptographic erase", cdw10: 1 | 2<<9},
		{name: "user data", oacs: 2, namespaces: 1, want: "NVMe Format", cdw10: 1 << 9},
		{name: "with metadata and protection", oacs: 2, namespaces: 4, flbas: 0x12, dps: 0x0a, want: "NVMe Format", cdw10: 2 | 1<<4 | 0x0a<<5 | 1<<9},
		{name: "no format command", fna: 4, namespaces: 1, none: true},
		{name: "all namespaces at once", oacs: 2, fna: 1, namespaces: 2, none: true},
		{name: "all namespaces, of which there is one", oacs: 2, fna: 3, namespaces: 1, want: "NVMe Format", cdw10: 1 << 9},
		{name: "silent", refuse: nvmeIdentify, none: true},
		{name: "failed", oacs: 2, namespaces: 1, refuse: nvmeFormat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var format nvmeCommand
			do := func(c nvmeCommand, data []byte) error {
				if c.opcode == tt.refuse {
					return errors.New("invalid command")
				}
				switch {
				case c.opcode == nvmeFormat:
					format = c
				case c.cdw10 == nvmeController:
					data[256], data[524] = tt.oacs, tt.fna
					binary.LittleEndian.PutUint32(data[516:], tt.namespaces)
				default:
					data[26], data[29] = tt.flbas, tt.dps
				}
				return nil
			}
			got, err := nvmeErase(do, 7)
			if got != tt.want || errors.Is(err, ErrNoErase) != tt.none || (err == nil) != (tt.want != "") {
				t.Errorf("nvmeErase = %q, %v", got, err)
			}
			if format.cdw10 != tt.cdw10 || tt.want != "" && format.nsid != 7 {
				t.Errorf("format cdw10 %#x, nsid %d; want %#x", format.cdw10, format.nsid, tt.cdw10)
			}
		})
	}
}
