package machine_test

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/fixtures"
)

func generic(t *testing.T) string {
	t.Helper()
	b, err := fixtures.Profiles.ReadFile("profiles/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBuiltInProfilesAreValid(t *testing.T) {
	files, err := fixtures.Profiles.ReadDir("profiles")
	if err != nil || len(files) == 0 {
		t.Fatalf("profiles: %d files, %v", len(files), err)
	}
	for _, f := range files {
		b, err := fixtures.Profiles.ReadFile("profiles/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		p, err := machine.ParseProfile(b)
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		} else if p.Name+".yaml" != f.Name() {
			t.Errorf("%s holds profile %s", f.Name(), p.Name)
		}
	}
}

func TestBrokenProfilesAreRefusedByField(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"memoryMiB: 131072", "memoryMiB: 0", "memoryMiB: must be positive"},
		{"memoryMiB: 131072", "memoryMB: 1", `unknown field "memoryMB"`},
		{`pciVendor: "0x8086"`, `pciVendor: "8086"`, "nics[0].pciVendor: must be like 0x8086"},
		{"0000:3b:00.0", "3b:0", "nics[0].pciAddress: must be like"},
		{`id: "2"`, `id: "1"`, "nics[1].id: must be there, and differ"},
		{"480103981056", "480103981057", "storage[0].bays[0].capacity: must be whole blocks"},
		{"blockSize: 512", "blockSize: 520", "storage[0].bays[0].blockSize: must be 512 or 4096"},
		{"protocol: SATA", "protocol: IDE", "storage[0].bays[0].protocol: must be SATA"},
		{"media: SSD", "media: Tape", "storage[0].bays[0].media: must be HDD or SSD"},
		{"[Hdd, Pxe]", "[Floppy]", "bootOrder[0]: must be Hdd"},
		{"post: 90s", "post: soon", `duration "soon": use a form like 90s`},
		{"post: 90s", "post: -1s", "must not be negative"},
		{"threads: 32", "threads: 1", "processors: must have sockets"},
		{"name: generic\n", "name: [\n", "machine: profile"},
	} {
		text := strings.Replace(generic(t), tt.old, tt.new, 1)
		if text == generic(t) {
			t.Fatalf("%q is not in the profile", tt.old)
		}
		if _, err := machine.ParseProfile([]byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseProfile with %q = %v, want %q in it", tt.new, err, tt.want)
		}
	}
}
