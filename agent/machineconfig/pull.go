package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalab-dev/metalab/agent/machineconfig/deployment"
	"github.com/metalab-dev/metalab/agent/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// The retries of a pull: 7 attempts with 10 s between the first two, then twice as long each
// time, at most 60 s.
const (
	pullAttempts = 7
	pullDelay    = 10 * time.Second
	maxPullDelay = time.Minute
)

// pull is how far the pull of an image is. A daemon that is started again begins anew.
type pull struct {
	image    string
	attempts int
	next     time.Time // time of the next attempt
	done     bool
}

// pullImage fetches an image, after it has checked that the registry takes the pull secret. It
// returns the time until the next attempt, 0 when the image is here.
func (d *daemon) pullImage(ctx context.Context, n *corev1.Node, image string, auth registry.Credentials) (time.Duration, error) {
	p := &d.pull
	if p.image != image {
		*p = pull{image: image}
	}
	if p.done {
		return 0, nil
	}
	if wait := p.next.Sub(d.Clock.Now()); wait > 0 && !p.next.IsZero() {
		return wait, nil
	}
	refused := new(registry.RefusedError)
	err := d.Registry.Check(ctx, image, auth)
	if err == nil {
		err = d.OS.Pull(ctx, image, auth)
	}
	if err == nil {
		p.done = true
		return 0, nil
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if p.attempts++; p.attempts < pullAttempts && !errors.As(err, &refused) && !errors.As(err, new(*deployment.ImageError)) {
		delay := min(pullDelay<<(p.attempts-1), maxPullDelay)
		p.next = d.Clock.Now().Add(delay)
		d.report(fmt.Errorf("attempt %d of %d: %w", p.attempts, pullAttempts, err))
		return delay, nil
	}
	attempts := p.attempts
	*p = pull{} // the next attempt begins anew
	if err := d.progress(ctx, n, fact{mcv1.MachineConfigNodeImagePulledFromRegistry, false, "PullFailed", err.Error()}); err != nil {
		d.report(err)
	}
	if attempts > 1 {
		err = fmt.Errorf("after %d attempts: %w", attempts, err)
	}
	return 0, &failure{machineconfig.Degraded, fmt.Errorf("failed to pull image %s: %w", image, err), maxPullDelay}
}
