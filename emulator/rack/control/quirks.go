package control

import (
	"context"
	"net/http"
	"net/url"

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

func quirksOf(c *apiRequest) (any, error) { return append([]quirk.Setting{}, c.host.Quirks()...), nil }

// setQuirks replaces a host's quirks.
func setQuirks(c *apiRequest) (any, error) {
	var all []quirk.Setting
	if err := c.decodeBody(&all); err != nil {
		return nil, err
	}
	if err := c.host.SetQuirks(all); err != nil {
		return nil, err
	}
	return quirksOf(c)
}

// Quirks returns the quirks of a host's BMC, without the deviations of its dialect.
func (c *Client) Quirks(ctx context.Context, host string) ([]quirk.Setting, error) {
	var out []quirk.Setting
	err := c.do(ctx, http.MethodGet, "/v1/hosts/"+url.PathEscape(host)+"/quirks", nil, &out)
	return out, err
}

// SetQuirks replaces a host's quirks. An empty list removes them all.
func (c *Client) SetQuirks(ctx context.Context, host string, all []quirk.Setting) ([]quirk.Setting, error) {
	var out []quirk.Setting
	err := c.do(ctx, http.MethodPut, "/v1/hosts/"+url.PathEscape(host)+"/quirks", append([]quirk.Setting{}, all...), &out)
	return out, err
}
