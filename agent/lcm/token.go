package lcm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// minTokenLife is the remaining life at which the agent looks for its next token: the
// default of LCMCluster.spec.minTokenRemainingTTL.
const minTokenLife = time.Hour

// expiry returns the time at which a token of a service account expires (RFC 7519,
// §4.1.4); the zero time when it has none. The signature is the server's to check.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if json.Unmarshal(b, &claims) != nil || claims.Exp == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Exp, 0).UTC()
}

// tokenAdvice says what to do about a token that the server refuses.
func (c *client) tokenAdvice(token string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	advice := "write a new token of the agent's service account to " + c.TokenFile
	if c.tokenSecret != "" {
		advice = fmt.Sprintf("write the token of Secret %s/%s to %s", c.account.Namespace, c.tokenSecret, c.TokenFile)
	}
	if at := expiry(token); !at.IsZero() {
		return fmt.Sprintf("the token is valid until %s at most: %s", at.Format(time.RFC3339), advice)
	}
	return advice
}

// renewToken replaces a token that expires soon by that of the Secret which
// status.tokenSecret names.
func (a *agent) renewToken(ctx context.Context, m *lcmv1.LCMMachine) error {
	expires := expiry(a.api.Token())
	a.api.mu.Lock()
	a.api.tokenSecret = m.Status.TokenSecret
	a.api.mu.Unlock()
	if m.Status.TokenSecret == "" || expires.IsZero() || expires.Sub(a.Clock.Now()) > minTokenLife {
		return nil
	}
	s, err := a.api.secret(ctx, a.Namespace, m.Status.TokenSecret)
	if err != nil {
		return fmt.Errorf("next token: %w", err)
	}
	next := strings.TrimSpace(string(s.Data[item.TokenKey]))
	if !expiry(next).After(expires) { // the controller has not renewed it yet
		return nil
	}
	if err := a.System.Put(sys.File{Name: a.TokenFile, Mode: 0o600, Content: []byte(next + "\n")}); err != nil {
		return fmt.Errorf("next token: %w", err)
	}
	_, err = a.api.Load()
	return err
}
