package conformance

import (
	"context"
	"fmt"
)

// Losses lists what the destructive checks among those of a run take away: what
// each breaks, and the drives and volumes of the server.
func (b *BMC) Losses(ctx context.Context, checks []Check) []string {
	r := b.run(Check{ID: "losses"})
	defer r.close()
	var all []string
	for _, c := range checks {
		if c.Level == Destructive {
			all = append(all, c.ID+": "+c.Title)
		}
	}
	if len(all) == 0 {
		return nil
	}
	place, err := r.Place(ctx)
	if err != nil {
		return append(all, "the drives are unknown: "+err.Error())
	}
	storage, err := place.System.At("Storage").Link()
	if err != nil {
		return all
	}
	units, err := r.Members(ctx, storage)
	if err != nil {
		return append(all, "the drives are unknown: "+err.Error())
	}
	for _, uri := range units {
		unit, err := r.Page(ctx, uri)
		if err != nil {
			continue
		}
		drives, _ := unit.At("Drives").List() // one without drives loses none
		for _, d := range drives {
			drive, err := r.Page(ctx, d.LinkOr(""))
			if err != nil {
				continue
			}
			size, _ := drive.At("CapacityBytes").Number() // 0: unknown
			all = append(all, fmt.Sprintf("drive %s, %s, %.0f GB", drive.At("Name").TextOr(d.LinkOr("?")), drive.At("Model").TextOr("unknown model"), size/1e9))
		}
		if volumes, err := unit.At("Volumes").Link(); err == nil {
			members, err := r.Members(ctx, volumes)
			if err != nil {
				continue
			}
			for _, v := range members {
				all = append(all, "volume "+v)
			}
		}
	}
	return all
}
