package systest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/sys"
)

// layout holds the arrays and members that the kernel has found on the disks.
type layout struct {
	parts  []*part
	arrays []*array
}

// scan reads the partitions of a disk again and removes its former members from
// their arrays. The caller holds s.mu.
func (s *System) scan(disk string) {
	s.parts = slices.DeleteFunc(s.parts, func(p *part) bool { return p.disk == disk })
	open := s.open[disk]
	if open == nil {
		return
	}
	b, err := open()
	if err != nil {
		return // the disk is present and cannot be read
	}
	defer b.Close()
	for _, p := range readParts(disk, b, open) {
		s.parts = append(s.parts, &p)
	}
}

// assemble starts arrays from the members found, and shows them. Running arrays
// continue; a new one needs all its members, unless the system has just started,
// when no more members appear.
func (s *System) assemble(starting bool) {
	order := map[string]int{}
	for i, d := range s.disks {
		order[d.Name] = i
	}
	slices.SortStableFunc(s.parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(order[a.disk], order[b.disk]), cmp.Compare(a.number, b.number))
	})
	s.arrays = slices.DeleteFunc(s.arrays, func(a *array) bool {
		return !slices.ContainsFunc(a.parts, func(p *part) bool { return p != nil && slices.Contains(s.parts, p) })
	})
	var seen []string
	for _, p := range s.parts {
		if p.member == nil || p.free || slices.Contains(seen, p.member.array) {
			continue
		}
		seen = append(seen, p.member.array)
		if s.arrayOf(p) != nil {
			continue
		}
		if a := s.membersOf(p.member.array); a != nil && a.runs(a.parts) && (starting || !slices.Contains(a.parts, nil)) {
			a.kernel = s.freeArray()
			s.arrays = append(s.arrays, a)
		}
	}
	s.render()
}

// membersOf returns the members of an array with the same count of events.
func (s *System) membersOf(id string) *array {
	var all []*part
	for _, p := range s.parts {
		if p.member != nil && !p.free && p.member.array == id {
			all = append(all, p)
		}
	}
	newest := slices.MaxFunc(all, func(a, b *part) int { return cmp.Compare(a.member.events, b.member.events) })
	a := &array{superblock: newest.member, parts: make([]*part, newest.member.members)}
	for _, p := range all {
		if m := p.member; m.events == newest.member.events && m.role >= 0 && m.members == newest.member.members {
			a.parts[m.role] = p
		}
	}
	return a
}

// arrayOf returns the array that uses a partition; nil if none does.
func (s *System) arrayOf(p *part) *array {
	for _, a := range s.arrays {
		if slices.Contains(a.parts, p) {
			return a
		}
	}
	return nil
}

// freeArray returns the name that mdadm gives to an array of another host: the
// highest free one.
func (s *System) freeArray() string {
	for n := 127; ; n-- {
		name := fmt.Sprintf("md%d", n)
		if !slices.ContainsFunc(s.arrays, func(a *array) bool { return a.kernel == name }) {
			return name
		}
	}
}

// StopArray implements sys.Stopper.
func (s *System) StopArray(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readDisks()
	i := slices.IndexFunc(s.arrays, func(a *array) bool { return a.kernel == name })
	switch {
	case i < 0:
		return fmt.Errorf("%w: %q", sys.ErrNoDevice, name)
	case s.held[name]:
		return fmt.Errorf("systest: /dev/%s is in use", name)
	}
	for _, p := range s.arrays[i].parts {
		if p != nil {
			p.free = true
		}
	}
	s.arrays = slices.Delete(s.arrays, i, i+1)
	s.render()
	return nil
}

// readDisks reads the disks at the first access.
func (s *System) readDisks() {
	if s.disksRead {
		return
	}
	s.disksRead = true
	for _, d := range s.disks {
		s.scan(d.Name)
	}
	s.assemble(true)
}

// render writes the sysfs files for the present contents of the disks.
func (s *System) render() {
	t := newTree()
	renderProc(t, s.machine)
	renderDMI(t, s.machine)
	renderNICs(t, s.machine.NICs)
	renderVLANs(t, s.machine.NICs)
	renderVirtual(t)
	homes := map[string]placedDisk{}
	for _, d := range s.disks {
		renderDisk(t, d)
		homes[d.Name] = d
	}
	if s.machine.VirtualCD != "" {
		renderCD(t, s.machine.VirtualCD)
	}
	for _, p := range s.parts {
		if p.number > 0 {
			renderPart(t, homes[p.disk], *p)
		}
	}
	for _, a := range s.arrays {
		renderArray(t, homes, a)
	}
	s.tree = t
}

// renderPart writes the files of a partition.
func renderPart(t *tree, d placedDisk, p part) {
	dir := d.block() + "/" + p.name
	dev := fmt.Sprintf("259:%d", 4096+64*d.index+p.number) // after the numbers of NVMe drives
	t.line(dir+"/dev", dev)
	t.link("sys/dev/block/"+dev, dir)
	t.line(dir+"/partition", fmt.Sprint(p.number))
	t.line(dir+"/start", fmt.Sprint(p.off/512))
	t.line(dir+"/size", fmt.Sprint(p.size/512))
	t.link("sys/class/block/"+p.name, dir)
	t.file("run/udev/data/b"+dev, fmt.Sprintf("E:ID_PART_ENTRY_SCHEME=%s\nE:ID_PART_ENTRY_NUMBER=%d\nE:ID_PART_ENTRY_TYPE=%s\nE:ID_PART_ENTRY_UUID=%s\nV:1\n",
		p.scheme, p.number, p.kind, p.id))
}

// levelNames are md's personalities.
var levelNames = map[int32]string{0: "raid0", 1: "raid1", 10: "raid10"}

// renderArray writes the files of md for an array, and what udev gets from mdadm
// (63-md-raid-arrays.rules).
func renderArray(t *tree, homes map[string]placedDisk, a *array) {
	dir := "sys/devices/virtual/block/" + a.kernel
	turns, degraded := false, 0
	for _, p := range a.parts {
		if p == nil {
			degraded++
			continue
		}
		home := homes[p.disk].block()
		if p.number > 0 {
			home += "/" + p.name
		}
		t.link(dir+"/slaves/"+p.name, home)
		t.link(home+"/holders/"+a.kernel, dir)
		turns = turns || homes[p.disk].Rotational
	}
	dev := "9:" + strings.TrimPrefix(a.kernel, "md")
	renderBlock(t, dir, a.kernel, dev, a.capacity(), turns)
	t.line(dir+"/ro", "0")
	t.line(dir+"/removable", "0")
	t.line(dir+"/md/level", levelNames[a.level])
	t.line(dir+"/md/raid_disks", fmt.Sprint(a.members))
	t.line(dir+"/md/metadata_version", "1.2")
	t.line(dir+"/md/degraded", fmt.Sprint(degraded))
	t.line(dir+"/md/array_state", "clean")
	t.file("run/udev/data/b"+dev, fmt.Sprintf("E:MD_LEVEL=%s\nE:MD_DEVICES=%d\nE:MD_METADATA=1.2\nE:MD_UUID=%s\nE:MD_NAME=%s\nV:1\n",
		levelNames[a.level], a.members, a.array, a.name))
}
