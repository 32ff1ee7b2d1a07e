package runner

import (
	"context"
	"fmt"
	"slices"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/plugin/disk"
	"github.com/metalab-dev/metalab/agent/plugin/mdraid"
	"github.com/metalab-dev/metalab/agent/sys"
)

// clean erases disks, and deletes or keeps software RAID.
func clean(ctx context.Context, s sys.System, spec job.CleanSpec, disks []job.Disk, progress func(int)) (job.Report, error) {
	left, known := map[job.Arrays]func(job.Disk) bool{
		job.ArraysDeleted:   func(d job.Disk) bool { return d.Array != "" },
		job.ArraysPreserved: func(d job.Disk) bool { return d.Member },
		job.ArraysOnly:      func(d job.Disk) bool { return !d.Member },
	}[spec.Arrays]
	if !known {
		return job.Report{}, fmt.Errorf("runner: software RAID is to be treated as %q, want keep, only or none to delete it", spec.Arrays)
	}
	if spec.Arrays != job.ArraysPreserved {
		if err := mdraid.Stop(s); err != nil {
			return job.Report{}, err
		}
	}
	erased, err := disk.Erase(ctx, s, slices.DeleteFunc(slices.Clone(disks), left), spec.Erase, progress)
	return job.Report{Cleaned: erased}, err
}

// makeArrays creates software RAID on disks that it erases before, with all steps
// of B-173.
func makeArrays(ctx context.Context, s sys.System, spec job.RAIDSpec, disks []job.Disk, progress func(int)) (job.Report, error) {
	bare := slices.DeleteFunc(slices.Clone(disks), func(d job.Disk) bool { return d.Array != "" })
	for i := range bare {
		bare[i].Member = false
	}
	var volumes []mdraid.Volume
	for _, a := range spec.Arrays {
		v := mdraid.Volume{ArraySpec: a}
		if len(a.Disks) == 0 {
			v.Members = bare
		}
		for _, h := range a.Disks {
			left := slices.DeleteFunc(slices.Clone(bare), func(d job.Disk) bool {
				return slices.ContainsFunc(v.Members, func(m job.Disk) bool { return m.Name == d.Name })
			})
			d, err := disk.Choose(left, h)
			if err != nil {
				return job.Report{Impossible: true}, fmt.Errorf("software RAID %s: %w", a.Name, err)
			}
			v.Members = append(v.Members, d)
		}
		volumes = append(volumes, v)
	}
	if err := mdraid.Check(s, spec, volumes); err != nil {
		return job.Report{Impossible: true}, err
	}
	report, err := clean(ctx, s, job.CleanSpec{}, disks, progress)
	if err != nil {
		return report, err
	}
	report.Arrays, err = mdraid.Create(ctx, s, spec, volumes)
	return report, err
}
