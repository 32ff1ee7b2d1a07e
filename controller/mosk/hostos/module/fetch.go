package module

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Fetch fetches an archive of at most MaxArchive bytes. The client's transport has the proxy
// and the trusted authorities; ctx has the deadline. The texts of its errors are the
// product's, which operators search for.
func Fetch(ctx context.Context, c *http.Client, address string) ([]byte, error) {
	data, err := fetch(ctx, c, address)
	if err != nil {
		return nil, fmt.Errorf("failed to perform request to fetch the module archive: %w", err)
	}
	return data, nil
}

func fetch(ctx context.Context, c *http.Client, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	failed := func(err error) error { return &url.Error{Op: "Get", URL: r.URL.Redacted(), Err: err} }
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" || r.URL.Host == "" {
		return nil, failed(errors.New("use a URL of HTTP or HTTPS"))
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, reason, _ := strings.Cut(resp.Status, " ") // as net/http has it for a proxy's refusal of CONNECT
		return nil, failed(errors.New(reason))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxArchive+1))
	if err != nil {
		return nil, failed(err)
	}
	if len(data) > MaxArchive {
		return nil, failed(fmt.Errorf("the archive has more than %d MiB", MaxArchive>>20))
	}
	return data, nil
}
