// Package disk does the in-band work on disks: it chooses the root device, erases
// disks and writes images. Its input is the disks of the inventory, which it opens
// through package sys; it does not know the caller.
package disk

import (
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
)

const gib = 1 << 30

// minRoot is the size of the smallest root device if there are no hints
// (ironic-python-agent, guess_root_disk).
const minRoot = 4 * gib

// Choose returns the root device: the first disk that matches all hints or,
// without hints, the smallest of at least 4 GiB, like Ironic. It does not choose
// members of software RAID.
func Choose(disks []job.Disk, h job.Hints) (job.Disk, error) {
	criteria := criteria(h)
	if len(criteria) == 0 {
		return smallest(disks)
	}
next:
	for _, d := range disks {
		if d.Member {
			continue
		}
		for _, c := range criteria {
			if !c.matches(d) {
				continue next
			}
		}
		return d, nil
	}
	names := make([]string, len(criteria))
	for i, c := range criteria {
		names[i] = c.text
	}
	return job.Disk{}, fmt.Errorf("disk: no disk matches the root device hints %s; disks seen: %s",
		strings.Join(names, ", "), describe(disks))
}

// chooseArray finds software RAID by name. mdadm adds the name of the host that
// created the array in front, if that had one ("host:name").
func chooseArray(disks []job.Disk, name string) (job.Disk, error) {
	for _, d := range disks {
		if _, base, ok := strings.Cut(d.Array, ":"); d.Array == name || ok && base == name {
			return d, nil
		}
	}
	return job.Disk{}, fmt.Errorf("disk: there is no software RAID %s; disks seen: %s", name, describe(disks))
}

func smallest(disks []job.Disk) (job.Disk, error) {
	var found *job.Disk
	for i, d := range disks {
		if !d.Member && d.SizeBytes >= minRoot && (found == nil || d.SizeBytes < found.SizeBytes) {
			found = &disks[i]
		}
	}
	if found == nil {
		return job.Disk{}, fmt.Errorf("disk: no root device hints are given and no disk has 4 GiB; disks seen: %s",
			describe(disks))
	}
	return *found, nil
}

// criterion is a hint that is set.
type criterion struct {
	text    string // for error messages
	matches func(job.Disk) bool
}

// criteria lists the hints that are set. Model and vendor are substrings of the
// disk's; all other texts are equal to its. Sizes are compared in whole GiB
// (ironic/common/utils: match_root_device_hints).
func criteria(h job.Hints) []criterion {
	var out []criterion
	text := func(name, want string, match func(have, want string) bool, have func(job.Disk) []string) {
		if want == "" {
			return
		}
		out = append(out, criterion{fmt.Sprintf("%s=%q", name, want), func(d job.Disk) bool {
			for _, s := range have(d) {
				if s != "" && match(s, want) {
					return true
				}
			}
			return false
		}})
	}
	equal := func(have, want string) bool { return have == want }
	text("deviceName", h.DeviceName, equal, func(d job.Disk) []string { return []string{d.Name, d.ByPath} })
	text("hctl", h.HCTL, equal, func(d job.Disk) []string { return []string{d.HCTL} })
	text("model", h.Model, strings.Contains, func(d job.Disk) []string { return []string{d.Model} })
	text("vendor", h.Vendor, strings.Contains, func(d job.Disk) []string { return []string{d.Vendor} })
	text("serialNumber", h.SerialNumber, equal, func(d job.Disk) []string { return []string{d.Serial} })
	if h.MinSizeGigabytes != 0 {
		out = append(out, criterion{fmt.Sprintf("minSizeGigabytes=%d", h.MinSizeGigabytes), func(d job.Disk) bool {
			return d.SizeBytes/gib >= int64(h.MinSizeGigabytes)
		}})
	}
	text("wwn", h.WWN, equal, func(d job.Disk) []string { return []string{d.WWN} })
	text("wwnWithExtension", h.WWNWithExtension, equal, func(d job.Disk) []string { return []string{d.WWNWithExtension} })
	text("wwnVendorExtension", h.WWNVendorExtension, equal, func(d job.Disk) []string { return []string{d.WWNVendorExtension} })
	if h.Rotational != nil {
		out = append(out, criterion{fmt.Sprintf("rotational=%t", *h.Rotational), func(d job.Disk) bool {
			return d.Rotational == *h.Rotational
		}})
	}
	return out
}

// maxDescribed bounds the disks in an error: a storage server may have hundreds.
const maxDescribed = 16

// describe lists the properties of each disk that a user needs to correct the
// hints.
func describe(disks []job.Disk) string {
	if len(disks) == 0 {
		return "none"
	}
	var all []string
	for i, d := range disks {
		if i == maxDescribed {
			all = append(all, fmt.Sprintf("and %d more", len(disks)-i))
			break
		}
		parts := []string{d.Type, fmt.Sprintf("%d GiB", d.SizeBytes/gib)}
		for _, p := range []struct{ name, value string }{
			{"vendor", d.Vendor}, {"model", d.Model}, {"serial", d.Serial},
			{"wwn", d.WWN}, {"hctl", d.HCTL}, {"path", d.ByPath}, {"software RAID", d.Array},
		} {
			if p.value != "" {
				parts = append(parts, p.name+" "+p.value)
			}
		}
		all = append(all, fmt.Sprintf("%s (%s)", d.Name, strings.Join(parts, ", ")))
	}
	return strings.Join(all, "; ")
}
