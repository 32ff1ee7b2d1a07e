package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// inSnapshot are the flags whose values a snapshot holds.
var inSnapshot = []string{"file", "hosts", "profile", "profiles", "seed", "shards"}

// splitMoment returns the file and the time of RECORDING@TIME. A file may have an @ in its name.
func splitMoment(text string) (file, at string) {
	if _, err := os.Stat(text); err == nil {
		return text, ""
	}
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// goOn makes the lab from a snapshot that a recording names, and returns its settings.
func (f *upFlags) goOn(c *cobra.Command, o *options, s lab.Settings) (_ lab.Settings, err error) {
	for _, name := range inSnapshot {
		if c.Flags().Changed(name) {
			return s, usage.New(fmt.Errorf("--from and --%s exclude each other: the snapshot has its servers", name))
		}
	}
	switch _, found, err := lab.LoadSettings(o.state); {
	case err != nil:
		return s, err
	case found:
		return s, usage.New(fmt.Errorf("--from makes a lab, and %s has one: name another --state, or remove that lab with labctl down --delete", o.state))
	}
	file, text := splitMoment(f.from)
	all, err := view.FindMoments(file)
	if err != nil {
		return s, fmt.Errorf("--from: %w", err)
	}
	if all.Shard {
		return s, fmt.Errorf("--from: %s is the recording of a shard, which is no lab: restore its snapshot to the shard, with labctl --state STATE/shards/shard-N snapshot restore, while the lab is down", file)
	}
	m, err := all.At(text)
	if err != nil {
		return s, fmt.Errorf("--from: %w", err)
	}
	if err := os.MkdirAll(o.state, 0o700); err != nil {
		return s, err
	}
	at, done, err := all.Open(m, o.state)
	if err != nil {
		return s, fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, done()) }()
	if _, err := rack.RestoreSnapshot(c.Context(), o.state, at, showProgress(c.ErrOrStderr())); err != nil {
		return s, fmt.Errorf("--from: %s: %w", m.File, err)
	}
	if err := o.settle(c.Context(), s); err != nil {
		return s, err
	}
	fmt.Fprintf(c.ErrOrStderr(), "The lab goes on from the snapshot of %s, %s.\n", all.Describe(m), m.File)
	if err := o.restoreObjects(all, m, s, c.ErrOrStderr()); err != nil {
		return s, fmt.Errorf("--from: %w", err)
	}
	return f.resolve(c, o.state)
}

// restoreObjects makes the lab begin with the Kubernetes objects of a moment, and says which are
// missing.
func (o *options) restoreObjects(all view.Moments, m view.Moment, s lab.Settings, say io.Writer) error {
	recorded, err := all.Objects(m)
	if err != nil || len(recorded.Hosts) == 0 {
		return err
	}
	ofHosts := fmt.Sprintf("%d hosts", len(recorded.Hosts))
	if s.Kubeconfig != "" || !s.Kube {
		reason := "this lab has no Kubernetes API: leave --no-kube out to restore them"
		if s.Kube {
			reason = "the cluster of --kubeconfig is not the lab's: leave the flag out to restore them"
		}
		fmt.Fprintf(say, "The Kubernetes objects of %s are not restored: %s.\n", ofHosts, reason)
		return nil
	}
	missing, err := lab.RestoreObjects(o.state, recorded)
	if err != nil {
		return err
	}
	fmt.Fprintf(say, "The Kubernetes objects of %s are restored, with new Secrets for their BMCs.\n", ofHosts)
	if len(missing) > 0 {
		fmt.Fprintln(say, "Not restored, because the recording does not have them:")
	}
	for _, line := range missing {
		fmt.Fprintln(say, "  "+line)
	}
	return nil
}
