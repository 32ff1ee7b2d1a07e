package mdraid_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
)

// uuids reads from the disks of a server the UUIDs of two arrays, their members,
// the disks and the partitions, as 16 bytes in the order of RFC 9562.
func (s *server) uuids() map[string][16]byte {
	s.t.Helper()
	out := map[string][16]byte{}
	at := func(disk int, off int64) (id [16]byte) {
		s.t.Helper()
		if _, err := s.disks[disk].ReadAt(id[:], off); err != nil {
			s.t.Fatal(err)
		}
		return id
	}
	// UEFI 2.10, appendix A: a GUID's first three fields are little-endian.
	guid := func(disk int, off int64) [16]byte {
		s.t.Helper()
		id := at(disk, off)
		slices.Reverse(id[0:4])
		slices.Reverse(id[4:6])
		slices.Reverse(id[6:8])
		return id
	}
	for i := range s.disks {
		out[fmt.Sprintf("disk %d", i)] = guid(i, 512+56)
		for p, name := range []string{"boot partition", "first partition", "second partition"} {
			out[fmt.Sprintf("%s of disk %d", name, i)] = guid(i, 1024+int64(p)*128+16)
		}
		for n, name := range []string{"first", "second"} {
			super := (551+int64(n)*(2<<10+1))<<20 + 4096
			out[fmt.Sprintf("%s array on disk %d", name, i)] = at(i, super+16)
			out[fmt.Sprintf("member of the %s array on disk %d", name, i)] = at(i, super+168)
		}
	}
	return out
}

// An agent that is interrupted repeats the job: all UUIDs follow from the
// specification, so that the result is the same, and none is that of another
// object. The layout of version 8 is RFC 9562, section 5.8.
func TestUUIDsFollowFromTheSpecification(t *testing.T) {
	create := func(id string) (map[string][16]byte, []job.Array) {
		s := newServer(t, 8, 8)
		made := s.create(job.RAIDSpec{ID: id, Made: 1_800_000_000}, volume("root", "1", 2, s.members(0, 1)), volume("data", "1", 0, s.members(0, 1)))
		return s.uuids(), made
	}
	ids, made := create("preparing-1")
	again, madeAgain := create("preparing-1")
	if d := cmp.Diff(ids, again); d != "" || !cmp.Equal(made, madeAgain) {
		t.Errorf("the same specification gives other UUIDs (-first +second):\n%s", d)
	}
	other, _ := create("preparing-2")
	owner := map[[16]byte]string{}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		id := ids[name]
		if id[6]>>4 != 8 || id[8]>>6 != 0b10 {
			t.Errorf("%s has the UUID %x: its version is %d and its variant %02b, want 8 and 10", name, id, id[6]>>4, id[8]>>6)
		}
		// All members of an array have the array's UUID.
		object, _, _ := strings.Cut(name, " on disk")
		if !strings.HasSuffix(object, " array") || strings.HasPrefix(object, "member") {
			object = name
		}
		if have := owner[id]; have != "" && have != object {
			t.Errorf("%s and %s both have the UUID %x", have, object, id)
		}
		owner[id] = object
	}
	for _, name := range slices.Sorted(maps.Keys(other)) {
		if have := owner[other[name]]; have != "" {
			t.Errorf("%s of another specification has the UUID of %s", name, have)
		}
	}
	for i, array := range []string{"first array", "second array"} {
		for disk := range 2 {
			id := ids[fmt.Sprintf("%s on disk %d", array, disk)]
			if have := strings.ReplaceAll(made[i].UUID, ":", ""); have != hex.EncodeToString(id[:]) {
				t.Errorf("the %s is reported with the UUID %s, on disk %d it has %x", array, made[i].UUID, disk, id)
			}
		}
	}
}
