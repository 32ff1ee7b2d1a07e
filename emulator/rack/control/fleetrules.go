package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// faults returns the rules of all shards. A rule that several have is listed once.
func (f *fleet) faults(r *http.Request) (any, error) { return f.listFaults(r.Context()) }

// listFaults returns the rules of the shards that answer, with the errors of the others.
func (f *fleet) listFaults(ctx context.Context) ([]fault.Listed, error) {
	all, err := each(f.up(), func(s Shard) ([]fault.Listed, error) { return s.Client.Faults(ctx) })
	out, at := []fault.Listed{}, map[string]int{} // [] in JSON
	for _, rules := range all {
		for _, r := range rules {
			i, ok := at[r.ID]
			if !ok {
				at[r.ID] = len(out)
				out = append(out, r)
				continue
			}
			out[i].Hits += r.Hits
			if r.Phase == fault.Active {
				out[i].Phase = r.Phase
			}
		}
	}
	return out, err
}

// addFaults adds all of the rules to the shards that have the hosts, or none. Each has the
// same ID in all of them.
func (f *fleet) addFaults(r *http.Request) (any, error) {
	var rules []fault.Rule
	if err := decode(r, &rules); err != nil {
		return nil, err
	}
	known, err := f.listFaults(r.Context())
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, k := range known {
		taken[k.ID] = true
	}
	for n, i := 0, 0; i < len(rules); i++ {
		for rules[i].ID == "" {
			if n++; !taken[fmt.Sprintf("fault-%d", n)] {
				rules[i].ID = fmt.Sprintf("fault-%d", n)
			}
		}
		if taken[rules[i].ID] {
			return nil, &Refused{http.StatusConflict, fmt.Sprintf("%s: %v", rules[i].ID, fault.ErrTaken)}
		}
		taken[rules[i].ID] = true
	}
	type addition struct {
		to    Shard
		rules []fault.Rule
	}
	var todo []addition
	for _, s := range f.c.Shards() {
		for _, rule := range rules {
			if !f.concerns(rule, s) {
				continue
			}
			if err := s.running(); err != nil && rule.BMC != "" {
				return nil, err
			} else if err != nil { // it would not have the rule when it runs again
				return nil, fmt.Errorf("the rule is for all hosts, and %w", err)
			}
			if n := len(todo); n == 0 || todo[n-1].to.Name != s.Name {
				todo = append(todo, addition{to: s})
			}
			todo[len(todo)-1].rules = append(todo[len(todo)-1].rules, rule)
		}
	}
	for i, a := range todo {
		if _, err := a.to.Client.AddFaults(r.Context(), a.rules...); err != nil {
			for _, done := range todo[:i] {
				for _, rule := range done.rules {
					err = errors.Join(err, done.to.Client.RemoveFault(r.Context(), rule.ID))
				}
			}
			return nil, err
		}
	}
	return rules, nil
}

// concerns reports whether a rule is for hosts of a shard. One that is for no host at all is
// for every shard, so that it is listed and checked.
func (f *fleet) concerns(rule fault.Rule, s Shard) bool {
	if rule.BMC == "" {
		return s.Client != nil || s.Off != ScaledIn
	}
	matches := func(of Shard) bool {
		for name := range f.namesOf(of) {
			if ok, err := path.Match(rule.BMC, name); ok || err != nil {
				return true
			}
		}
		return false
	}
	return matches(s) || s.Client != nil && !slices.ContainsFunc(f.c.Shards(), matches)
}

// ScaledIn is Shard.Off of a shard that is kept, and not meant to run.
const ScaledIn = "scaled in: its state is kept, and it comes back with more shards"

func (f *fleet) removeFault(r *http.Request) (any, error) {
	id := r.PathValue("id")
	found, err := each(f.up(), func(s Shard) (bool, error) {
		rules, err := s.Client.Faults(r.Context())
		if err != nil || !slices.ContainsFunc(rules, func(l fault.Listed) bool { return l.ID == id }) {
			return false, err
		}
		return true, s.Client.RemoveFault(r.Context(), id)
	})
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(found, true):
		return nil, &Refused{http.StatusNotFound, fmt.Sprintf("%v: %s", fault.ErrUnknown, id)}
	}
	return f.listFaults(r.Context())
}
