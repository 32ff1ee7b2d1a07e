package control

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// addFaults adds all of the rules or none.
func addFaults(c *apiRequest) (any, error) {
	var in []fault.Rule
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	out := []fault.Rule{} // [] in JSON
	for _, r := range in {
		r, err := c.rack.AddFault(r)
		if err != nil {
			for _, done := range out {
				err = errors.Join(err, c.rack.RemoveFault(done.ID))
			}
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func removeFault(c *apiRequest) (any, error) {
	if err := c.rack.RemoveFault(c.PathValue("id")); err != nil {
		return nil, err
	}
	return c.rack.Faults(), nil
}

// Faults returns the fault rules with their hits.
func (c *Client) Faults(ctx context.Context) ([]fault.Listed, error) {
	var out []fault.Listed
	err := c.do(ctx, http.MethodGet, "/v1/faults", nil, &out)
	return out, err
}

// AddFaults adds all of the rules or none. It returns them with their IDs.
func (c *Client) AddFaults(ctx context.Context, rules ...fault.Rule) ([]fault.Rule, error) {
	var out []fault.Rule
	err := c.do(ctx, http.MethodPost, "/v1/faults", rules, &out)
	return out, err
}

// RemoveFault removes a rule.
func (c *Client) RemoveFault(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/faults/"+url.PathEscape(id), nil, new([]fault.Listed))
}
