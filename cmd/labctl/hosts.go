package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// atOnce is how many hosts are worked on at the same time.
const atOnce = 16

// isPattern reports whether an argument may select several hosts.
func isPattern(host string) bool { return strings.ContainsAny(host, "*?[") }

// matching returns the names of the hosts that a name or a pattern selects, which
// are never none.
func matching(ctx context.Context, c *control.Client, pattern string) ([]string, error) {
	hosts, err := c.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	var all, names []string
	for _, h := range hosts {
		all = append(all, h.Name)
		ok := pattern == h.Name
		if isPattern(pattern) {
			if ok, err = path.Match(pattern, h.Name); err != nil {
				return nil, usage.New(fmt.Errorf("%q is no valid pattern: close each [", pattern))
			}
		}
		if ok {
			names = append(names, h.Name)
		}
	}
	switch {
	case len(names) > 0:
		return names, nil
	case isPattern(pattern):
		return nil, fmt.Errorf("no host matches %s%s", pattern, suggest.UseOneOf(pattern, all))
	}
	return nil, fmt.Errorf("there is no host %s%s", pattern, suggest.UseOneOf(pattern, all))
}

// one returns the name of the host that a name or a pattern selects. It is an error
// when there are several.
func one(ctx context.Context, c *control.Client, pattern string) (string, error) {
	if !isPattern(pattern) {
		return pattern, nil
	}
	names, err := matching(ctx, c, pattern)
	if err != nil {
		return "", err
	}
	if len(names) > 1 {
		return "", usage.New(fmt.Errorf("%s matches %d hosts, and this command takes one: %s", pattern, len(names), listed(names)))
	}
	return names[0], nil
}

// listed lists names for a message: the first few of many.
func listed(names []string) string {
	const few = 5
	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" and %d more", len(names)-few)
	}
	return strings.Join(names, ", ")
}

// result is the outcome of a command for one host.
type result[T any] struct {
	host  string
	value T
}

// forEach calls a function for every host that a pattern selects, and shows the
// progress when there are many. It returns the results of the hosts where it
// succeeded, in the order of the hosts.
func forEach[T any](ctx context.Context, c *control.Client, pattern string, w io.Writer, do func(host string) (T, error)) ([]result[T], error) {
	names := []string{pattern} // the lab itself tells that there is no such host
	if isPattern(pattern) {
		var err error
		if names, err = matching(ctx, c, pattern); err != nil {
			return nil, err
		}
	}
	results, errs := make([]T, len(names)), make([]error, len(names))
	shown := newProgress(w, "hosts", len(names))
	work := make(chan int)
	var all sync.WaitGroup
	for range min(atOnce, len(names)) {
		all.Go(func() {
			for i := range work {
				results[i], errs[i] = do(names[i])
				shown.add(1)
			}
		})
	}
	for i := range names {
		work <- i
	}
	close(work)
	all.Wait()
	shown.end()
	return collect(names, results, errs)
}

// collect returns the results of hosts without an error, in their order, and the errors
// of the others with their names.
func collect[T any](names []string, results []T, errs []error) ([]result[T], error) {
	var out []result[T]
	for i := range names {
		if errs[i] == nil {
			out = append(out, result[T]{names[i], results[i]})
		} else if len(names) > 1 {
			errs[i] = fmt.Errorf("%s: %w", names[i], errs[i])
		}
	}
	return out, errors.Join(errs...)
}

// forHosts calls a function for every host that a pattern selects, and prints the
// values. Those of a pattern have the column HOST, and are an object by host in
// JSON and YAML.
func forHosts[T any](c *cobra.Command, o *options, pattern string, do func(lab *control.Client, host string) (T, error), rows func(T) [][]string) error {
	lab := control.NewClient(o.state)
	all, err := forEach(c.Context(), lab, pattern, c.ErrOrStderr(), func(host string) (T, error) { return do(lab, host) })
	switch {
	case len(all) == 0:
		return err
	case !isPattern(pattern):
		return errors.Join(err, o.output.print(c.OutOrStdout(), all[0].value, rows(all[0].value)))
	}
	byHost := map[string]T{}
	var joined [][]string
	for _, r := range all {
		byHost[r.host] = r.value
		for n, row := range rows(r.value) {
			switch {
			case n > 0:
				joined = append(joined, append([]string{r.host}, row...))
			case len(joined) == 0:
				joined = append(joined, append([]string{"HOST"}, row...))
			}
		}
	}
	return errors.Join(err, o.output.print(c.OutOrStdout(), byHost, joined))
}

// completeHosts completes the names of hosts of a running lab, and further arguments.
func completeHosts(o *options, then ...string) cobra.CompletionFunc {
	return completeAfterHost(o, func(*cobra.Command, []string) []string { return then })
}

// completeAllHosts completes the names of hosts of a running lab at every place, without
// those that are there already.
func completeAllHosts(o *options) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		names, how := completeHosts(o)(c, nil, part)
		return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) }), how
	}
}

// completeAfterHost completes the names of hosts of a running lab. A function returns
// the completions of further arguments.
func completeAfterHost(o *options, then func(c *cobra.Command, args []string) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if o.resolve(c) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) > 0 {
			return then(c, args), cobra.ShellCompDirectiveNoFileComp
		}
		hosts, err := control.NewClient(o.state).Hosts(c.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, h := range hosts {
			names = append(names, h.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
