package lcm

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

const (
	maxDownload = 256 << 20 // bytes; a program of an agent is the largest
	batch       = 4 << 20   // bytes of files that are written at once
)

// sumSuffix is the suffix of the file beside a directory that has the SHA-256 of the
// archive which was unpacked there. It is written last: without it the directory is
// incomplete.
const sumSuffix = ".sha256"

// fetch downloads a file and checks its SHA-256, through the proxy of the LCMMachine.
func (a *agent) fetch(ctx context.Context, m *lcmv1.LCMMachine, address, sum string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: use a URL of HTTP or HTTPS", item.ParamURL)
	}
	if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%s %q: give 64 hexadecimal digits in lower case", item.ParamSHA256, sum)
	}
	transport := a.Downloads.Clone()
	defer transport.CloseIdleConnections()
	if m.Spec.ProxySecretName != "" {
		s, err := a.api.secret(ctx, a.Namespace, m.Spec.ProxySecretName)
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		through, err := proxyFunc(s)
		if err != nil {
			return nil, fmt.Errorf("proxy: Secret %s/%s: %w", a.Namespace, m.Spec.ProxySecretName, err)
		}
		if err := trust(transport, s.Data[item.ProxyCAKey]); err != nil {
			return nil, fmt.Errorf("proxy: Secret %s/%s: %w", a.Namespace, m.Spec.ProxySecretName, err)
		}
		transport.Proxy = func(r *http.Request) (*url.URL, error) { return through(r.URL) }
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil, err // it names the URL, and no password of it or of the proxy
	}
	defer resp.Body.Close()
	failed := func(err error) error { return &url.Error{Op: "Get", URL: u.Redacted(), Err: err} }
	if resp.StatusCode != http.StatusOK {
		return nil, failed(errors.New(resp.Status))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDownload+1))
	if err != nil {
		return nil, failed(err)
	}
	if len(data) > maxDownload {
		return nil, failed(fmt.Errorf("the file has more than %d MiB", maxDownload>>20))
	}
	if got := module.Sum(data); got != sum {
		return nil, &module.SumError{Got: got, Want: sum}
	}
	return data, nil
}

// proxyFunc returns which proxy of a Secret a URL is fetched through. A value that is no URL
// is an error, which does not show it: httpproxy would ignore the value, and the download
// would go past the proxy.
func proxyFunc(s *secret) (func(*url.URL) (*url.URL, error), error) {
	value := func(key string) string { return strings.TrimSpace(string(s.Data[key])) }
	for _, key := range []string{item.ProxyHTTPKey, item.ProxyHTTPSKey} {
		u, err := url.Parse(value(key))
		if err != nil || value(key) != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return nil, fmt.Errorf("%s: give a URL of http or https", key)
		}
	}
	c := httpproxy.Config{HTTPProxy: value(item.ProxyHTTPKey), HTTPSProxy: value(item.ProxyHTTPSKey), NoProxy: value(item.ProxyNoneKey)}
	return c.ProxyFunc(), nil
}

// trust adds the certificates of a proxy that reads TLS to those that a transport trusts.
func trust(t *http.Transport, ca []byte) error {
	if len(ca) == 0 {
		return nil
	}
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	roots := t.TLSClientConfig.RootCAs
	if roots == nil {
		var err error
		if roots, err = x509.SystemCertPool(); err != nil {
			return err
		}
	}
	roots = roots.Clone()
	if !roots.AppendCertsFromPEM(ca) {
		return fmt.Errorf("%s: give certificates in PEM", item.ProxyCAKey)
	}
	t.TLSClientConfig.RootCAs = roots
	return nil
}

// gzipMagic begins a file that gzip has compressed (RFC 1952, §2.3.1).
var gzipMagic = []byte{0x1f, 0x8b}

// download executes an item of the runner downloader: it unpacks an archive in a directory,
// or writes any other file. Nothing is written before all of the archive is checked.
func (a *agent) download(ctx context.Context, m *lcmv1.LCMMachine, it lcmv1.LCMStateItem, _ *itemLog) result {
	p := it.Params
	dir := p[item.ParamPath]
	if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
		return failed(fmt.Errorf("%s %q: give an absolute path below /, without . and .. in it", item.ParamPath, dir))
	}
	mode, err := strconv.ParseUint(orElse(p[item.ParamMode], "644"), 8, 32)
	if err != nil || mode > 0o777 {
		return failed(fmt.Errorf("%s %q: give permissions in octal, like 0755", item.ParamMode, p[item.ParamMode]))
	}
	data, err := a.fetch(ctx, m, p[item.ParamURL], p[item.ParamSHA256])
	if err != nil {
		return failed(err)
	}
	if !bytes.HasPrefix(data, gzipMagic) || p[item.ParamUnpack] == "false" {
		if err := a.System.Put(sys.File{Name: dir, Mode: fs.FileMode(mode), Content: data}); err != nil {
			return failed(err)
		}
		return result{message: fmt.Sprintf("%d bytes are in %s", len(data), dir)}
	}
	archive, err := module.Read(bytes.NewReader(data))
	if err != nil {
		return failed(err)
	}
	if err := a.unpack(archive, dir, p[item.ParamSHA256]); err != nil {
		return failed(err)
	}
	return result{message: fmt.Sprintf("%d files are in %s", len(archive.Files()), dir)}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// unpack replaces a directory by the files of an archive. A directory that no archive was
// unpacked in is not touched. After a failure nothing is left.
func (a *agent) unpack(archive *module.Archive, dir, sum string) (err error) {
	names, err := a.System.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, known := a.System.ReadFile(dir + sumSuffix)
	if len(names) > 0 && known != nil && !a.incomplete(dir) {
		return fmt.Errorf("%s %q: the directory has files, and not of an archive: give another directory", item.ParamPath, dir)
	}
	if err := a.System.Put(sys.File{Name: dir + partSuffix, Mode: 0o600}); err != nil {
		return err
	}
	if err := a.System.Remove(dir+sumSuffix, dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.System.Remove(dir))
		}
		err = errors.Join(err, a.System.Remove(dir+partSuffix))
	}()
	files := []sys.File{{Name: dir, Mode: fs.ModeDir | 0o755}}
	size := 0
	put := func() error {
		err := a.System.Put(files...)
		files, size = nil, 0
		return err
	}
	err = archive.Each(func(f module.File) error {
		file := sys.File{Name: path.Join(dir, f.Name), Mode: f.Mode, Link: f.Link}
		if f.Content != nil {
			content, err := io.ReadAll(f.Content)
			if err != nil {
				return err
			}
			file.Content = content
		}
		files = append(files, file)
		if size += len(file.Content); size < batch {
			return nil
		}
		return put()
	})
	if err == nil {
		err = put()
	}
	if err == nil {
		err = a.System.Put(sys.File{Name: dir + sumSuffix, Mode: 0o644, Content: []byte(sum + "\n")})
	}
	return err
}

// partSuffix is the suffix of the file beside a directory in which an archive is being
// unpacked: an agent that was ended then finds its own work again.
const partSuffix = ".part"

func (a *agent) incomplete(dir string) bool {
	_, err := a.System.ReadFile(dir + partSuffix)
	return err == nil
}
