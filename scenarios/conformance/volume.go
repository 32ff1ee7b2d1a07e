package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// spare is a storage with RAID, and drives of it that are in no volume.
type spare struct {
	storage
	free []string
}

// spares finds a storage on which a volume can be made without touching another.
func (r *Run) spares(ctx context.Context) (*spare, error) {
	all, err := r.storages(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.volumes == "" || len(s.raid) == 0 {
			continue
		}
		found := spare{storage: s}
		for _, d := range s.drives {
			if used, _ := d.At("Links", "Volumes").List(); len(used) == 0 {
				if uri := d.LinkOr(""); uri != "" {
					found.free = append(found.free, uri)
				}
			}
		}
		if len(found.free) > 0 {
			return &found, nil
		}
	}
	return nil, NothingThere("no controller with RAID has a free drive")
}

// level returns a RAID type and the drives for it.
func (s *spare) level() (string, []string) {
	for _, want := range []struct {
		kind   string
		drives int
	}{{"RAID1", 2}, {"RAID0", 1}} {
		if slices.Contains(s.raid, want.kind) && len(s.free) >= want.drives {
			return want.kind, s.free[:want.drives]
		}
	}
	return "", nil
}

// makeVolume makes a volume and returns its URI, and how it was applied.
func (r *Run) makeVolume(ctx context.Context, s *spare, applyTime string) (uri string, err error) {
	kind, drives := s.level()
	if kind == "" {
		return "", NothingThere(fmt.Sprintf("the controller has neither RAID1 with 2 free drives nor RAID0: %s", strings.Join(s.raid, ", ")))
	}
	var links []map[string]string
	for _, d := range drives {
		links = append(links, map[string]string{"@odata.id": d})
	}
	const name = "labctl-check"
	body := map[string]any{"RAIDType": kind, "Name": name, "Links": map[string]any{"Drives": links}}
	if applyTime != "" {
		body["@Redfish.OperationApplyTime"] = applyTime
	}
	if err := r.ensure(ctx, "On"); err != nil { // drives have no power while the server is off
		return "", err
	}
	before, err := r.Members(ctx, s.volumes)
	if err != nil {
		return "", err
	}
	resp, err := r.Change(ctx, Change{
		Level: Destructive, Request: Request{Method: http.MethodPost, URI: s.volumes, Body: body},
		Undo: []Undo{{Method: http.MethodDelete, Find: &Lookup{Collection: s.volumes, Property: "Name", Value: name}}},
	})
	if err != nil {
		return "", err
	}
	if resp.Status/100 != 2 {
		return "", Findingf("POST of a volume of %s: %s", kind, resp.Problem())
	}
	if r.bmc.dry != nil {
		return s.volumes + "/created", nil
	}
	if applyTime == "OnReset" && taskOf(resp) != "" {
		if err := r.restart(ctx); err != nil {
			return "", err
		}
	}
	if _, err := r.finishTask(ctx, resp, "the volume"); err != nil {
		return "", err
	}
	found, err := r.Poll(ctx, powerInterval, powerLimit, func() (bool, error) {
		r.Forget()
		after, err := r.Members(ctx, s.volumes)
		for _, m := range after {
			if !slices.Contains(before, m) {
				uri = m
			}
		}
		return uri != "", err
	})
	if err == nil && !found {
		err = Findingf("the volume was made, and %s does not show it", s.volumes)
	}
	return uri, err
}

// removeVolume deletes a volume and waits until it is gone.
func (r *Run) removeVolume(ctx context.Context, uri string) error {
	resp, err := r.Change(ctx, Change{Level: Destructive, Request: Request{Method: http.MethodDelete, URI: uri}})
	if err != nil {
		return err
	}
	if resp.Status/100 != 2 {
		return Findingf("DELETE of the volume: %s", resp.Problem())
	}
	if r.bmc.dry != nil {
		return nil
	}
	gone, err := r.Poll(ctx, powerInterval, powerLimit, func() (bool, error) {
		resp, err := r.Do(ctx, Request{URI: uri})
		return err == nil && resp.Status == http.StatusNotFound, err
	})
	if err == nil && !gone {
		err = Findingf("%v after DELETE the volume is still there", powerLimit)
	}
	return err
}

// volumeLifecycle makes and deletes a volume of free drives.
func volumeLifecycle(ctx context.Context, r *Run) Outcome {
	s, err := r.spares(ctx)
	if err != nil {
		return Judge(err)
	}
	began := r.Now()
	uri, err := r.makeVolume(ctx, s, "")
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("volume after", "%v", r.Now().Sub(began).Round(time.Second))
	if err := r.removeVolume(ctx, uri); err != nil {
		return Judge(err)
	}
	return o
}

// volumeApplyTimes makes a volume at each apply time that the controller lists.
func volumeApplyTimes(ctx context.Context, r *Run) Outcome {
	s, err := r.spares(ctx)
	if err != nil {
		return Judge(err)
	}
	v, err := r.Page(ctx, s.volumes)
	if err != nil {
		return Judge(err)
	}
	times, err := v.At("@Redfish.OperationApplyTimeSupport", "SupportedValues").Texts()
	if err != nil {
		return Skipped("the volumes list no apply times")
	}
	var done []string
	for _, t := range times {
		if t != "Immediate" && t != "OnReset" {
			continue
		}
		uri, err := r.makeVolume(ctx, s, t)
		if err != nil {
			return Judge(fmt.Errorf("%s: %w", t, err))
		}
		if err := r.removeVolume(ctx, uri); err != nil {
			return Judge(fmt.Errorf("%s: %w", t, err))
		}
		done = append(done, t)
	}
	if len(done) == 0 {
		return Skipped("the volumes list neither Immediate nor OnReset: %s", strings.Join(times, ", "))
	}
	return Passed("").With("apply times", "%s", strings.Join(done, " "))
}

// volumeFeatures makes a volume, gives it what its actions offer, and deletes it.
func volumeFeatures(ctx context.Context, r *Run) Outcome {
	s, err := r.spares(ctx)
	if err != nil {
		return Judge(err)
	}
	uri, err := r.makeVolume(ctx, s, "")
	if err != nil {
		return Judge(err)
	}
	var offered []string
	if r.bmc.dry == nil {
		v, _, err := r.Get(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		if target := v.At("Actions", "#Volume.Initialize", "target").TextOr(""); target != "" {
			resp, err := r.Change(ctx, Change{Level: Destructive, Request: Request{Method: http.MethodPost, URI: target, Body: map[string]string{"InitializeType": "Fast"}}})
			if err != nil {
				return Judge(err)
			}
			ok, problem, err := r.taken(ctx, resp)
			if err != nil {
				return Judge(err)
			}
			if !ok {
				return Failed("Volume.Initialize: %s", problem)
			}
			offered = append(offered, "Initialize")
		}
		if v.At("Encrypted").Exists() {
			offered = append(offered, "Encrypted")
		}
		for _, d := range s.drives {
			if d.At("HotspareType").Exists() {
				offered = append(offered, "HotspareType")
				break
			}
		}
	}
	if err := r.removeVolume(ctx, uri); err != nil {
		return Judge(err)
	}
	if len(offered) == 0 && r.bmc.dry == nil {
		return Skipped("the volume offers neither Initialize nor encryption nor hot spares")
	}
	return Passed("").With("features", "%s", strings.Join(offered, " "))
}
