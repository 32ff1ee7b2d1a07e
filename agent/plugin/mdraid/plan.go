package mdraid

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/agent/gpt"
	"github.com/metalab-dev/metalab/agent/job"
)

const (
	sector = 512
	mib    = 1 << 20
	gib    = 1 << 30
)

// typeRAID is the type of a partition that is a member of an array.
var typeRAID = gpt.MustParse("A19D880F-05FC-4D3B-A006-743F0F84911E")

// Each disk of the first array begins with an EFI system partition: firmware does
// not know arrays, so every disk has a boot loader for the case that others fail.
// Its size is that of ironic-python-agent.
const espSize = 550 * mib

// minSize is the least size of an array on each of its disks.
const minSize = 64 * mib

// levels lists the levels of BareMetalHost.
var levels = map[string]struct {
	level Level
	disks int                 // least number
	even  bool                // the number of disks must be even
	data  func(n int64) int64 // disks' worth of data that n disks hold
}{
	"0":   {Stripe, 2, false, func(n int64) int64 { return n }},
	"1":   {Mirror, 2, false, func(int64) int64 { return 1 }},
	"1+0": {StripedMirror, 4, true, func(n int64) int64 { return n / 2 }},
}

// Volume is an array to create on chosen disks.
type Volume struct {
	job.ArraySpec
	Members []job.Disk
}

// plan holds the data to write to a set of disks.
type plan struct {
	disks  []*diskPlan // in the order in which arrays name them first
	arrays []job.Array
}

type diskPlan struct {
	job.Disk
	table   *gpt.Table
	block   int64 // bytes of a logical block
	esp     int64 // offset of the EFI system partition; 0: the disk has none
	free    int64 // offset of the unallocated space
	members []member
}

// member is a partition that belongs to an array.
type member struct {
	off int64
	superblock
}

// newPlan lays arrays out on their disks. blockSize returns the size of a disk's
// logical blocks.
func newPlan(spec job.RAIDSpec, volumes []Volume, blockSize func(disk string) int64) (*plan, error) {
	if spec.ID == "" {
		return nil, errors.New("the specification has no ID")
	}
	p := &plan{}
	names := map[string]bool{}
	for i, v := range volumes {
		l, known := levels[v.Level]
		switch {
		case !known:
			return nil, fmt.Errorf("array %s: level %q: use 0, 1 or 1+0", v.Name, v.Level)
		case v.Name == "" || names[v.Name]:
			return nil, fmt.Errorf("array %d: name %q: use one that no other array has", i, v.Name)
		case len(v.Members) < l.disks:
			return nil, fmt.Errorf("array %s: %d disks: level %s needs %d", v.Name, len(v.Members), v.Level, l.disks)
		case l.even && len(v.Members)%2 != 0:
			return nil, fmt.Errorf("array %s: %d disks: level %s needs an even number", v.Name, len(v.Members), v.Level)
		}
		names[v.Name] = true
		if err := p.add(spec, v, l.level, l.data(int64(len(v.Members))), i == 0, blockSize); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *plan) add(spec job.RAIDSpec, v Volume, level Level, data int64, boots bool, blockSize func(string) int64) error {
	var disks []*diskPlan
	for _, d := range v.Members {
		disks = append(disks, p.disk(spec, d, blockSize(d.Name)))
	}
	if boots {
		for _, d := range disks {
			esp, err := d.take(spec, gpt.ESP, "boot", espSize)
			if err != nil {
				return fmt.Errorf("array %s: EFI system partition: %w", v.Name, err)
			}
			d.esp = esp
		}
	}
	room := disks[0].room()
	for _, d := range disks {
		room = min(room, d.room())
	}
	// An array uses whole chunks of a member, and a member has whole MiB.
	want := room
	if v.SizeGiB > 0 {
		each := (int64(v.SizeGiB)*gib + data - 1) / data
		want = (each+mib-1)/mib*mib + dataOffset*sector
	}
	if want > room || want < minSize {
		return fmt.Errorf("array %s: %d MiB on each of %d disks: the smallest has %d MiB left", v.Name, want/mib, len(disks), room/mib)
	}
	size := want - dataOffset*sector
	id := deriveUUID(spec.ID, "array", v.Name)
	made := job.Array{Name: v.Name, UUID: uuid(id), Level: v.Level, SizeBytes: size * data}
	for i, d := range disks {
		off, err := d.take(spec, typeRAID, v.Name, want)
		if err != nil {
			return fmt.Errorf("array %s: %w", v.Name, err)
		}
		d.members = append(d.members, member{off: off, superblock: superblock{
			array: id, device: deriveUUID(spec.ID, "member", v.Name, d.Name), name: v.Name, made: time.Unix(spec.Made, 0),
			level: level, members: len(disks), role: i, size: size, room: size,
		}})
		made.Disks = append(made.Disks, d.Name)
	}
	p.arrays = append(p.arrays, made)
	return nil
}

// disk returns the plan of a disk.
func (p *plan) disk(spec job.RAIDSpec, d job.Disk, block int64) *diskPlan {
	for _, have := range p.disks {
		if have.Name == d.Name {
			return have
		}
	}
	out := &diskPlan{Disk: d, free: mib, block: block, table: gpt.New(block, gpt.FromUUID(deriveUUID(spec.ID, "disk", d.Name)))}
	p.disks = append(p.disks, out)
	return out
}

// room returns the unallocated size of a disk, whose last MiB is for the backup
// table.
func (d *diskPlan) room() int64 { return max(0, (d.SizeBytes-mib-d.free)/mib*mib) }

// take adds a partition of whole MiB and returns its offset. It returns an error that
// names the disk when the disk or its table has no room for the partition.
func (d *diskPlan) take(spec job.RAIDSpec, kind gpt.GUID, name string, size int64) (int64, error) {
	if room := d.room(); size > room {
		return 0, fmt.Errorf("disk %s: a partition of %d MiB does not fit: %d MiB are left after %d partitions", d.Name, size/mib, room/mib, d.partitions())
	}
	off, end := d.free, d.free+size
	if !d.table.Add(gpt.Partition{
		Type: kind, ID: gpt.FromUUID(deriveUUID(spec.ID, "partition", name, d.Name)), Name: name,
		First: uint64(off / d.block), Last: uint64(end/d.block - 1),
	}) {
		return 0, fmt.Errorf("disk %s: its partition table is full: all %d entries are in use", d.Name, d.partitions())
	}
	d.free = end
	return off, nil
}

// partitions returns the number of partitions in the table.
func (d *diskPlan) partitions() (n int) {
	for range d.table.All() {
		n++
	}
	return n
}

// deriveUUID derives a UUID (RFC 9562, version 8) from its arguments.
func deriveUUID(parts ...string) [16]byte {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	id := [16]byte(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

// uuid formats an array's UUID like mdadm.
func uuid(id [16]byte) string {
	h := hex.EncodeToString(id[:])
	return h[:8] + ":" + h[8:16] + ":" + h[16:24] + ":" + h[24:]
}
