package raid

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// levels holds the requirements of hardware RAID (B-176).
var levels = map[bmc.Level]struct {
	disks int
	even  bool
	data  func(n int64) int64 // disks' worth of data that n disks hold
}{
	bmc.Level0:  {1, false, func(n int64) int64 { return n }},
	bmc.Level1:  {2, false, func(int64) int64 { return 1 }},
	bmc.Level2:  {3, false, func(n int64) int64 { return n - 1 }},
	bmc.Level5:  {3, false, func(n int64) int64 { return n - 1 }},
	bmc.Level6:  {4, false, func(n int64) int64 { return n - 2 }},
	bmc.Level10: {4, true, func(n int64) int64 { return n / 2 }},
	bmc.Level50: {6, false, func(n int64) int64 { return n - 2 }},
	bmc.Level60: {8, false, func(n int64) int64 { return n - 4 }},
}

// diskCount returns the number of disks for a volume.
func diskCount(v metal3.HardwareRAIDVolume) int {
	switch {
	case len(v.PhysicalDisks) > 0:
		return len(v.PhysicalDisks)
	case v.NumberOfPhysicalDisks != nil:
		return *v.NumberOfPhysicalDisks
	}
	return levels[bmc.Level(v.Level)].disks
}

// plan holds the remaining changes of a server's volumes. Creations wait until all
// deletions are done.
type plan struct {
	remove []bmc.Volume
	create []bmc.NewVolume
	// volumes holds the existing volume for each wanted one, nil if there is none.
	volumes []*bmc.Volume
}

// complete reports whether all volumes are as wanted and ready.
func (p plan) complete() bool {
	return len(p.remove)+len(p.create) == 0 && !slices.ContainsFunc(p.volumes, func(v *bmc.Volume) bool { return !v.Ready })
}

// makePlan compares the wanted with the existing volumes. An existing volume that
// matches a wanted one stays (B-173); all others are deleted. It returns an error
// if a wanted volume is impossible, until the specification or the server's disks and
// controllers change: then none is deleted either.
func makePlan(want []metal3.HardwareRAIDVolume, have bmc.Storage) (plan, error) {
	p := plan{volumes: make([]*bmc.Volume, len(want))}
	taken := map[string]bool{} // drives of volumes that stay
	drives := map[string]bmc.Drive{}
	for _, c := range have.Controllers {
		for _, d := range c.Drives {
			drives[d.ID] = d
		}
	}
	for i := range have.Controllers {
		c := &have.Controllers[i]
		if len(c.Levels) == 0 { // it shows its drives as volumes
			continue
		}
		for j := range c.Volumes {
			v := &c.Volumes[j]
			for k := range want {
				if p.volumes[k] == nil && matches(want[k], *c, *v, drives) {
					p.volumes[k] = v
					break
				}
			}
			if !slices.Contains(p.volumes, v) {
				p.remove = append(p.remove, *v)
				continue
			}
			for _, d := range v.Drives {
				taken[d] = true
			}
		}
	}
	named, err := reserve(want, have)
	if err != nil {
		return plan{}, err
	}
	for i, w := range want {
		if p.volumes[i] != nil {
			continue
		}
		v, err := placeVolume(i, w, have, named, taken)
		if err != nil {
			return plan{}, err
		}
		p.create = append(p.create, v)
	}
	return p, nil
}

// matches reports whether a volume matches a wanted one.
func matches(w metal3.HardwareRAIDVolume, c bmc.Controller, v bmc.Volume, drives map[string]bmc.Drive) bool {
	if !v.Healthy || v.Level != bmc.Level(w.Level) || len(v.Drives) != diskCount(w) ||
		w.Name != "" && v.Name != w.Name || w.Controller != "" && !hasName(c.Names, w.Controller) {
		return false
	}
	least := int64(-1)
	for _, id := range v.Drives {
		d := drives[id]
		if w.Rotational != nil && d.Rotational != *w.Rotational {
			return false
		}
		if len(w.PhysicalDisks) > 0 && !slices.ContainsFunc(w.PhysicalDisks, func(name string) bool { return hasName(d.Names, name) }) {
			return false
		}
		if least < 0 || d.Bytes < least {
			least = d.Bytes
		}
	}
	all := levels[v.Level].data(int64(len(v.Drives))) * max(least, 0)
	target := size(w.SizeGibibytes)
	if target == 0 || target > all {
		target = all
	}
	// Controllers reserve a part of each drive, and make volumes of whole strips.
	slack := max(target/50, 1<<30)
	return v.Bytes >= target-slack && v.Bytes <= target+slack
}

// hasName reports whether name is one of names.
func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return n != "" && strings.EqualFold(strings.TrimSpace(n), strings.TrimSpace(name))
	})
}

// reserve returns the drives that are wanted by name, which are not chosen for
// other volumes.
func reserve(want []metal3.HardwareRAIDVolume, have bmc.Storage) (map[string]bool, error) {
	named := map[string]bool{}
	for i, w := range want {
		if w.Controller == "" {
			continue
		}
		k := slices.IndexFunc(have.Controllers, func(c bmc.Controller) bool { return hasName(c.Names, w.Controller) })
		if k < 0 {
			return nil, fmt.Errorf("hardware RAID volume %d: there is no controller %s: use one of %s", i, w.Controller, names(have.Controllers, func(c bmc.Controller) []string { return c.Names }))
		}
		c := have.Controllers[k]
		for _, name := range w.PhysicalDisks {
			d := slices.IndexFunc(c.Drives, func(d bmc.Drive) bool { return hasName(d.Names, name) })
			if d < 0 {
				return nil, fmt.Errorf("hardware RAID volume %d: controller %s has no physical disk %s: use some of %s", i, w.Controller, name, names(c.Drives, func(d bmc.Drive) []string { return d.Names }))
			}
			named[c.Drives[d].ID] = true
		}
	}
	return named, nil
}

func names[T any](all []T, namesOf func(T) []string) string {
	var out []string
	for _, x := range all {
		if n := namesOf(x); len(n) > 0 {
			out = append(out, n[0])
		}
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

// placeVolume chooses the drives of a volume and marks them as taken.
func placeVolume(i int, w metal3.HardwareRAIDVolume, have bmc.Storage, named, taken map[string]bool) (bmc.NewVolume, error) {
	out := bmc.NewVolume{Name: w.Name, Level: bmc.Level(w.Level), Bytes: size(w.SizeGibibytes)}
	able := false
	most := 0
	for _, c := range have.Controllers {
		if w.Controller != "" && !hasName(c.Names, w.Controller) || !slices.Contains(c.Levels, out.Level) {
			continue
		}
		able = true
		if len(w.PhysicalDisks) > 0 {
			drives, err := namedDrives(i, w, c)
			out.Controller, out.Drives = c.ID, drives
			return out, err
		}
		drives, free := chooseDrives(w, c.Drives, named, taken)
		most = max(most, free)
		if drives != nil {
			for _, d := range drives {
				taken[d] = true
			}
			out.Controller, out.Drives = c.ID, drives
			return out, nil
		}
	}
	switch {
	case !able:
		return out, fmt.Errorf("hardware RAID volume %d: level %s is not offered%s: use one of the levels %s", i, w.Level, prefixed(" by controller ", w.Controller), offeredLevels(w, have))
	case most < diskCount(w):
		return out, fmt.Errorf("hardware RAID volume %d: level %s needs %d physical disks of one kind%s, and %d are free", i, w.Level, diskCount(w), mediaKind(w), most)
	}
	return out, fmt.Errorf("hardware RAID volume %d: no %d free physical disks%s are large enough for %d GiB at level %s", i, diskCount(w), mediaKind(w), *w.SizeGibibytes, w.Level)
}

// offeredLevels lists the levels of the controllers that a volume may be on.
func offeredLevels(w metal3.HardwareRAIDVolume, have bmc.Storage) string {
	var all []string
	for level := range levels {
		if slices.ContainsFunc(have.Controllers, func(c bmc.Controller) bool {
			return slices.Contains(c.Levels, level) && (w.Controller == "" || hasName(c.Names, w.Controller))
		}) {
			all = append(all, string(level))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return cmp.Or(strings.Join(all, ", "), "of another controller: it makes no volumes")
}

func prefixed(by, text string) string {
	if text == "" {
		return ""
	}
	return by + text
}

func mediaKind(w metal3.HardwareRAIDVolume) string {
	switch {
	case w.Rotational == nil:
		return ""
	case *w.Rotational: // B-174
		return " (hdd)"
	}
	return " (ssd)"
}

// namedDrives returns the drives that a volume names. It does not check whether
// other volumes use them: some controllers make several volumes on the same
// drives.
func namedDrives(i int, w metal3.HardwareRAIDVolume, c bmc.Controller) ([]string, error) {
	var out []string
	least := int64(math.MaxInt64)
	for _, name := range w.PhysicalDisks {
		for _, d := range c.Drives {
			if !hasName(d.Names, name) || slices.Contains(out, d.ID) {
				continue
			}
			switch {
			case !d.Healthy:
				return nil, fmt.Errorf("hardware RAID volume %d: physical disk %s has failed", i, name)
			case w.Rotational != nil && d.Rotational != *w.Rotational:
				return nil, fmt.Errorf("hardware RAID volume %d: physical disk %s is none of those asked for%s", i, name, mediaKind(w))
			}
			out, least = append(out, d.ID), min(least, d.Bytes)
		}
	}
	if len(out) != len(w.PhysicalDisks) {
		return nil, fmt.Errorf("hardware RAID volume %d: physicalDisks name a disk twice", i)
	}
	if room := levels[bmc.Level(w.Level)].data(int64(len(out))) * least; size(w.SizeGibibytes) > room {
		return nil, fmt.Errorf("hardware RAID volume %d: the physicalDisks are too small for %d GiB at level %s: use at most %d", i, *w.SizeGibibytes, w.Level, room>>30)
	}
	return out, nil
}

// chooseDrives chooses drives of one kind: the smallest that suffice for a volume
// with a size, otherwise the largest. free is the number of drives of the most
// frequent kind.
func chooseDrives(w metal3.HardwareRAIDVolume, drives []bmc.Drive, named, taken map[string]bool) (out []string, free int) {
	type sort struct {
		rotational bool
		protocol   string
	}
	groups := map[sort][]bmc.Drive{}
	var order []sort
	for _, d := range drives {
		if !d.Healthy || d.Spare || named[d.ID] || taken[d.ID] || w.Rotational != nil && d.Rotational != *w.Rotational {
			continue
		}
		s := sort{d.Rotational, d.Protocol}
		if groups[s] == nil {
			order = append(order, s)
		}
		groups[s] = append(groups[s], d)
	}
	n, data := diskCount(w), levels[bmc.Level(w.Level)].data
	want := size(w.SizeGibibytes)
	for _, s := range order {
		g := groups[s]
		free = max(free, len(g))
		slices.SortStableFunc(g, func(a, b bmc.Drive) int { return cmp.Compare(a.Bytes, b.Bytes) })
		best := -1
		for i := 0; i+n <= len(g); i++ {
			room := data(int64(n)) * g[i].Bytes
			if want > 0 && room >= want && best < 0 || want == 0 && (best < 0 || g[i].Bytes > g[best].Bytes) {
				best = i
			}
		}
		if best >= 0 && out == nil {
			for _, d := range g[best : best+n] {
				out = append(out, d.ID)
			}
		}
	}
	return out, free
}
