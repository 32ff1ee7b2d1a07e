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
		p, err := machine.ParseProfile("profile.yaml", b)
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		} else if p.Name+".yaml" != f.Name() {
			t.Errorf("%s holds profile %s", f.Name(), p.Name)
		}
	}
}

func TestParseProfileNamesFieldOfEachMistake(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"memoryMiB: 131072", "memoryMiB: 0", "memoryMiB: must be positive"},
		{"memoryMiB: 131072", "memoryMB: 1", `memoryMB: there is no such field: use one of name, dialect`},
		{`pciVendor: "0x8086"`, `pciVendor: "8086"`, "nics[0].pciVendor: must be like 0x8086"},
		{"0000:3b:00.0", "3b:0", "nics[0].pciAddress: must be like"},
		{`id: "2"`, `id: "1"`, "nics[1].id: must be there, and differ"},
		{"480103981056", "480103981057", "storage[0].bays[0].capacity: must be whole blocks"},
		{"blockSize: 512", "blockSize: 520", "storage[0].bays[0].blockSize: must be 512 or 4096"},
		{"protocol: SATA", "protocol: IDE", "storage[0].bays[0].protocol: must be SATA"},
		{"media: SSD", "media: Tape", "storage[0].bays[0].media: must be HDD or SSD"},
		{"[Hdd, Pxe]", "[BiosSetup]", "bootOrder[0]: must be a kind of device"},
		{"[GracefulRestart]", "[ForceRestart]", "os.forces[0]: must be GracefulShutdown"},
		{"mib: 16384", "mib: 8192", "memory: must have modules whose mib add up"},
		{"type: DDR5", "type: ''", "memory: must have a type"},
		{"turboMHz: 3400", "turboMHz: 34", "processors.turboMHz: must be no less"},
		{"{level: 1, kib: 1280}", "{level: 9, kib: 1280}", "processors.caches[0]: must have a level"},
		{"class: NetworkController", "class: Toaster", "cards[0].class: must be one of Redfish's"},
		{`classCode: "0x020000"`, `classCode: "02"`, "cards[0].classCode: must be like 0x020000"},
		{"gen: 4", "gen: 40", "cards[0].gen: must be 1 to 6"},
		{"lanes: 16", "lanes: 0", "cards[0].lanes: must be 1 to 32"},
		{`nics: ["1", "2"]`, `nics: ["1", "1"]`, "cards[0].nics[1]: must be one of nics"},
		{`nics: ["1", "2"]`, `nics: ["1"], storage: "1"`, "cards[0].storage: must not be there"},
		{`storage: "1"}`, `storage: "9"}`, "cards[1].storage: must be one of storage"},
		{`pciAddress: "0000:03:00.0"`, `pciAddress: "3"`, "cards[2].pciAddress: must be like"},
		{`pciVendor: "0x1a03"`, `pciVendor: ""`, "cards[2].pciVendor and pciDevice: must be like"},
		{`- {id: "3"`, `- {id: "2"`, "cards[2].id: must be there, and differ"},
		{"tpm: {vendor: Metalab", "tpm: {vendor: ''", "tpm: must have a vendor"},
		{`pciID: "0x15d1"`, `pciID: "15d1"`, "tpm.pciID: must be like"},
		{"post: 90s", "post: soon", `timings.post: "soon": use a form like 90s`},
		{"post: 90s", "post: -1s", `timings.post: "-1s": must not be negative`},
		{"threads: 32", "threads: 1", "processors: must have sockets"},
		{"name: generic\n", "name: [\n", "is not YAML"},
	} {
		text := strings.Replace(generic(t), tt.old, tt.new, 1)
		if text == generic(t) {
			t.Fatalf("%q is not in the profile", tt.old)
		}
		if _, err := machine.ParseProfile("profile.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseProfile with %q = %v, want %q in it", tt.new, err, tt.want)
		}
	}
}
