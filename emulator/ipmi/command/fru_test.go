package command

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/metalab-dev/metalab/emulator/ipmi/fru"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// readAll reads a FRU device in pieces, as big as a client likes.
func readAll(t *testing.T, h *host, id byte, piece int) []byte {
	t.Helper()
	code, info := ask(t, h, wire.Storage, 0x10, id)
	if code != Completed || len(info) != 3 || info[2] != 0 {
		t.Fatalf("info of %d: %v % x", id, code, info)
	}
	var all []byte
	for size := int(le16(info)); len(all) < size; {
		code, got := ask(t, h, wire.Storage, 0x11, id, byte(len(all)), byte(len(all)>>8), byte(piece))
		if code != Completed || len(got) != 1+int(got[0]) || got[0] == 0 {
			t.Fatalf("read %d at %d: %v % x", id, len(all), code, got)
		}
		all = append(all, got[1:]...)
	}
	return all
}

func imageOf(t *testing.T, h *host, id byte) fru.Image {
	t.Helper()
	image, err := fru.Parse(readAll(t, h, id, 112))
	must(t, err)
	return image
}

// writeAll writes in pieces, as ipmitool does.
func writeAll(t *testing.T, h *host, b []byte) {
	t.Helper()
	for at := 0; at < len(b); at += 32 {
		piece := b[at:min(len(b), at+32)]
		code, got := ask(t, h, wire.Storage, 0x12, append([]byte{0, byte(at), byte(at >> 8)}, piece...)...)
		if code != Completed || !bytes.Equal(got, []byte{byte(len(piece))}) {
			t.Fatalf("write at %d: %v % x", at, code, got)
		}
	}
}

// FRU data has the same serial numbers, models and parts as Redfish.
func TestFRUDataAgreesWithRedfish(t *testing.T) {
	h := newHostOf(t, "raid")
	must(t, h.Apply(t.Context(), machine.SetAsset{Asset: machine.Asset{Tag: "Größe 7"}}))
	v := h.Machine()
	p, id := v.Profile, v.Identity
	for piece := range map[int]bool{1: true, 16: true, 112: true, maxRead: true} {
		if got := readAll(t, h, 0, piece); !bytes.Equal(got, readAll(t, h, 0, 64)) {
			t.Errorf("read in pieces of %d it differs", piece)
		}
	}
	box := imageOf(t, h, 0)
	seen := func(what string, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s = %q, want %q", what, got, want)
		}
	}
	seen("chassis", box.Chassis.Text(fru.ChassisSerial)+box.Chassis.Text(fru.ChassisPart), id.Serial+p.PartNumber)
	seen("maker", box.Product.Text(fru.ProductMaker), p.Manufacturer)
	seen("model", box.Product.Text(fru.ProductName), p.Model)
	seen("part number", box.Product.Text(fru.ProductPart), p.PartNumber)
	seen("serial number", box.Product.Text(fru.ProductSerial), id.Serial)
	seen("asset tag", box.Product.Text(fru.ProductTag), "Größe 7")
	supply := imageOf(t, h, fruSupply+1)
	seen("supply", supply.Product.Text(fru.ProductSerial)+supply.Product.Text(fru.ProductPart), id.SerialOf("psu", 1)+p.Thermal.Supplies.PartNumber)
	card := imageOf(t, h, fruCard+1)
	seen("card", card.Board.Text(2)+card.Board.Text(3), id.SerialOf("card/2", 0)+p.Cards[1].PartNumber)
	dimm := imageOf(t, h, fruDIMM+15)
	seen("module", dimm.Product.Text(fru.ProductSerial)+dimm.Product.Text(fru.ProductPart), id.SerialOf("dimm", 15)+p.Memory.PartNumber)
	for _, d := range repositoryOf(p).frus {
		imageOf(t, h, d.id)
	}
}

func TestReadingFRUs(t *testing.T) {
	h := newHost(t)
	h.do(t, machine.Thermal{Command: thermal.SetSupply{ID: "PSU2", Fault: thermal.Absent}})
	exchanges{
		{"board", "00", Completed, "000400"}, {"supply", "01", Completed, "000200"},
		{"supply that is not there", "02", NotPresent, ""}, {"none such", "0f", NotPresent, ""}, {"reserved", "ff", InvalidDataField, ""},
	}.try(t, h, wire.Storage, 0x10)
	exchanges{
		{"header", "00 0000 02", Completed, "020100"},
		{"the last bytes", "00 fe03 10", Completed, "020000"},
		{"behind them", "00 0004 10", ParameterOutOfRange, ""},
		{"nothing", "00 0000 00", ParameterOutOfRange, ""},
		{"more than fits", "00 0000 ff", CannotReturnBytes, ""},
		{"just more than fits", fmt.Sprintf("00 0000 %02x", maxRead+1), CannotReturnBytes, ""},
		{"supply that is not there", "02 0000 08", NotPresent, ""},
		{"none such", "0f 0000 08", NotPresent, ""},
		{"reserved", "ff 0000 08", InvalidDataField, ""},
		{"short", "00 0000", DataLengthInvalid, ""},
	}.try(t, h, wire.Storage, 0x11)
	exchanges{
		{"supply", "01 0000 00", Code(0x80), ""},
		{"supply that is not there", "02 0000 00", NotPresent, ""},
		{"behind the end", "00 ff03 0000", ParameterOutOfRange, ""},
		{"none such", "0f 0000 00", NotPresent, ""},
		{"reserved", "ff 0000 00", InvalidDataField, ""},
		{"no data", "00 0000", DataLengthInvalid, ""},
		{"as it is", "00 0000 01", Completed, "01"},
	}.try(t, h, wire.Storage, 0x12)
	if h.Machine().FRUOverrides != nil {
		t.Error("what was written as it is is stored")
	}
	if code, _ := askAs(t, h, wire.User, wire.Storage, 0x12, 0, 0, 0, 1); code != InsufficientPrivilege {
		t.Errorf("a user writes: %v", code)
	}
}

// FRU data that a client writes changes what Redfish shows, as soon as the areas
// can be parsed.
func TestWriteBaseboardFRUData(t *testing.T) {
	h := newHost(t)
	made := *h.Machine().Identity
	image := imageOf(t, h, 0)
	image = image.With(fru.ProductSerial, "A much longer serial number").With(fru.ProductTag, "rack 7")
	b, err := image.Append(nil, boardSize)
	must(t, err)
	writeAll(t, h, b)
	if got := readAll(t, h, 0, 64); !bytes.Equal(got, b) {
		t.Error("what was written reads otherwise")
	}
	v := h.Machine()
	if v.Identity.Serial != "A much longer serial number" || v.Asset.Tag != "rack 7" || v.Identity.ChassisSerial != made.Serial || v.Identity.Model != made.Model {
		t.Errorf("the server says %+v, tag %q", v.Identity.FRUInfo, v.Asset.Tag)
	}
	// The tag is the same thing everywhere, and the rest stays.
	h.do(t, machine.SetAsset{Asset: machine.Asset{Tag: "rack 8"}})
	if is := imageOf(t, h, 0); is.Product.Text(fru.ProductTag) != "rack 8" || is.Product.Text(fru.ProductSerial) != v.Identity.Serial {
		t.Errorf("afterwards the board says %q", is.Product.Text(fru.ProductTag))
	}
	// Half of it says nothing, and is there all the same.
	if code, _ := ask(t, h, wire.Storage, 0x12, 0, 8, 0, 0xff); code != Completed {
		t.Fatal(code)
	}
	if got := readAll(t, h, 0, 64); got[8] != 0xff || h.Machine().Identity.Serial != v.Identity.Serial {
		t.Errorf("spoilt: % x, %s", got[:16], h.Machine().Identity.Serial)
	}
	again, err := (&Request{Host: h}).boardImage().Append(nil, boardSize)
	must(t, err)
	writeAll(t, h, again)
	if is := h.Machine().Identity.Serial; is != v.Identity.Serial {
		t.Errorf("mended: %s", is)
	}
}
