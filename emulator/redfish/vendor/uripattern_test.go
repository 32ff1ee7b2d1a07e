package vendor

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

func TestURIPatternWithSeveralVariables(t *testing.T) {
	d := &dialect.Record{SystemID: "S", ManagerID: "M", ChassisID: "C"}
	p := parsePattern("/a/Disk.Bay.{drive}:Enclosure.Internal.0-1:{controller}/{job:4}x{n}", d)
	vars, ok := p.match("/a/Disk.Bay.12:Enclosure.Internal.0-1:RAID.1/0012x7", exactCase)
	if !ok || vars["drive"] != "12" || vars["controller"] != "RAID.1" || vars["job"] != "12" || vars["n"] != "7" {
		t.Errorf("%v %v", vars, ok)
	}
	if at := parsePattern("/{drive}/b{controller}-{drive}", d).fill(vars); at != "/12/bRAID.1-12" {
		t.Errorf("written %s", at)
	}
	for _, no := range []string{"/a/Disk.Bay.:Enclosure.Internal.0-1:R/0012x7", "/a/Disk.Bay.1:Enclosure.Internal.0-2:R/0012x7", "/a/Disk.Bay.1:Enclosure.Internal.0-1:/0012x7", "/a/Disk.Bay.1:Enclosure.Internal.0-1:R/012x7", "/a"} {
		if _, ok := p.match(no, exactCase); ok {
			t.Errorf("%s is one", no)
		}
	}
	twice := parsePattern("/{a}/{a}", d)
	if _, ok := twice.match("/1/2", exactCase); ok {
		t.Error("a variable has two values")
	}
	if _, ok := parsePattern("/Disk.{a}:R", d).match("/dISK.1:r", ignoreCase); !ok {
		t.Error("letters have a case that have none")
	}
}
