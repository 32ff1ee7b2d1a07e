package conformance

import (
	"context"
	"slices"
	"strings"
	"time"
)

// bootsMedia inserts the boot image and boots it with a target. It returns what
// the image reports; a nil report means that it has not phoned home.
func (r *Run) bootsMedia(ctx context.Context, target string) (*BootReport, error) {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return nil, err
	}
	url, phoned, err := r.Config().Boot.Image(ctx, r.scheme(ctx, s))
	if err != nil {
		return nil, err
	}
	if err := r.ensure(ctx, "Off"); err != nil {
		return nil, err
	}
	if _, err := r.insertImage(ctx, s, url); err != nil {
		return nil, err
	}
	w, err := r.bootWriter(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.write(ctx, override{target: target, enabled: "Once"}); err != nil {
		return nil, err
	}
	if _, _, err := r.resetTo(ctx, "On", "On"); err != nil {
		return nil, err
	}
	if r.bmc.dry != nil {
		return &BootReport{}, nil
	}
	timed, cancel := r.within(ctx, longest(ctx, postLimit))
	defer cancel()
	report, err := phoned(timed)
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return &report, err
}

// mediaTargets are the boot targets of virtual media that the system lists.
func (r *Run) mediaTargets(ctx context.Context) ([]string, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return nil, err
	}
	all, err := place.System.At("Boot", bootTarget+"@Redfish.AllowableValues").Texts()
	return slices.DeleteFunc(slices.Clone([]string{"Cd", "UsbCd"}), func(t string) bool { return !slices.Contains(all, t) }), err
}

// mediaBoots boots the image from the first target that works.
func mediaBoots(ctx context.Context, r *Run) Outcome {
	targets, err := r.mediaTargets(ctx)
	if err != nil {
		return Judge(err)
	}
	for _, t := range targets {
		began := r.Now()
		report, err := r.bootsMedia(ctx, t)
		if err != nil {
			return Judge(err)
		}
		if report != nil {
			return Passed("").With("boot target", "%s", t).With("phoned home after", "%v", r.Now().Sub(began).Round(time.Second))
		}
		if err := r.Restore(ctx); err != nil {
			return Failed("the server cannot be brought back: %v", err)
		}
	}
	return Failed("the image has not phoned home from %s", strings.Join(targets, " or "))
}

// mediaTargetTrue boots the image from each target.
func mediaTargetTrue(ctx context.Context, r *Run) Outcome {
	targets, err := r.mediaTargets(ctx)
	if err != nil {
		return Judge(err)
	}
	o := Passed("")
	works := map[string]bool{}
	for _, t := range targets {
		report, err := r.bootsMedia(ctx, t)
		if err != nil {
			return Judge(err)
		}
		works[t] = report != nil
		o = o.With("boots from "+t, "%v", works[t])
		if err := r.Restore(ctx); err != nil {
			return Failed("the server cannot be brought back: %v", err)
		}
	}
	switch {
	case works["Cd"]:
		return o
	case works["UsbCd"]:
		o.Verdict, o.Reason = Warn, "the image boots from UsbCd, and not from Cd"
		return o.Quirky("vmedia-cd-alias")
	}
	o.Verdict, o.Reason = Fail, "the image boots from none of "+strings.Join(targets, ", ")
	return o
}

// mediaAfterReset restarts a server with an image, and looks at the slot.
func mediaAfterReset(ctx context.Context, r *Run) Outcome {
	targets, err := r.mediaTargets(ctx)
	if err != nil {
		return Judge(err)
	}
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	for _, t := range targets {
		report, err := r.bootsMedia(ctx, t)
		if err != nil {
			return Judge(err)
		}
		if report == nil {
			continue
		}
		v, _, err := r.Get(ctx, s.uri)
		if err != nil {
			return Judge(err)
		}
		during, _ := v.At("Inserted").Bool()
		if !during && r.bmc.dry == nil {
			return Warned("the BMC ejects the image when the server boots it")
		}
		if err := r.restart(ctx); err != nil {
			return Judge(err)
		}
		if v, _, err = r.Get(ctx, s.uri); err != nil {
			return Judge(err)
		}
		after, _ := v.At("Inserted").Bool()
		return Passed("").With("media after a reset", "%s", map[bool]string{true: "stay", false: "are ejected"}[after])
	}
	return Failed("the image has not phoned home")
}
