package helm

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// component is the source of the Events.
const component = "helm"

// event publishes an Event about the bundle.
func (p *pass) event(ctx context.Context, kind, reason, format string, args ...any) {
	p.r.events.About(ctx, component, p.b, kind, reason, fmt.Sprintf(format, args...))
}

// begins publishes that a release is about to be installed or upgraded.
func (p *pass) begins(ctx context.Context, rel planned, s lcmv1.HelmReleaseStatus) {
	if s.Attempt == 0 || s.Success { // else it is tried again: the failures are Events
		p.event(ctx, corev1.EventTypeNormal, "ReleaseBegins", "release %s is being installed or upgraded: chart %s %s", rel.Name, rel.Chart+rel.ChartURL, rel.Version)
	}
}

// changed publishes what has changed in the status of a release.
func (p *pass) changed(ctx context.Context, name string, was, is lcmv1.HelmReleaseStatus) {
	line, _, _ := strings.Cut(strings.TrimSpace(is.Message), "\n")
	deployed := is.Success && (!was.Success || was.Revision != is.Revision || was.Hash != is.Hash)
	switch {
	case !is.Success && is.Attempt > 0 && (is.Attempt != was.Attempt || is.Hash != was.Hash || was.Success):
		p.event(ctx, corev1.EventTypeWarning, "ReleaseFailed", "release %s, attempt %d: %s", name, is.Attempt, line)
	case deployed:
		p.event(ctx, corev1.EventTypeNormal, "ReleaseDeployed", "release %s is deployed: revision %d, chart %s %s", name, is.Revision, is.Chart, is.Version)
	case !is.Success && line != "" && is.Message != was.Message:
		p.event(ctx, corev1.EventTypeNormal, "ReleaseWaits", "release %s: %s", name, line)
	}
	switch {
	case is.Ready && !was.Ready:
		p.event(ctx, corev1.EventTypeNormal, "ReleaseReady", "release %s is ready: its objects exist and its workloads run", name)
	case was.Ready && !is.Ready && is.Success && !deployed:
		p.event(ctx, corev1.EventTypeWarning, "ReleaseNotReady", "release %s is not ready any more: %s", name, line)
	}
}
