package elementalsim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/agent/elemental"
	"github.com/metalab-dev/metalab/agent/sys"
)

// Config configures the plugin.
type Config struct {
	Devices sys.System // has the disks
	// Image and Checksum are the URL and the checksum, or the URL of a file with checksums, of
	// the image that is installed when the instructions name none.
	Image, Checksum string
	HTTP            *http.Client // fetches images; nil means http.Client's defaults
	CompatReset     bool         // see elemental.Dummy
}

// New returns the maker of the plugin.
func New(c Config) func(elemental.System) elemental.Plugin {
	return func(s elemental.System) elemental.Plugin {
		return &plugin{Dummy: &elemental.Dummy{System: s, CompatReset: c.CompatReset}, c: c}
	}
}

// plugin is elemental-sim.
type plugin struct {
	*elemental.Dummy
	c       Config
	context elemental.PluginContext
}

var (
	_ elemental.Starter   = (*plugin)(nil)
	_ elemental.Finisher  = (*plugin)(nil)
	_ elemental.Installer = (*plugin)(nil)
)

// Files of the plugin in the work directory, beside the dummy's.
const (
	deviceFile    = "device"             // the disk that the system was installed on
	appliedFile   = "bootstrap.applied"  // a mark
	versionFile   = "os-version.applied" // a mark
	osReleaseFile = "/etc/os-release"
)

// Init implements elemental.Plugin.
func (p *plugin) Init(ctx context.Context, c elemental.PluginContext) error {
	p.context = c
	return p.Dummy.Init(ctx, c)
}

// mark remembers that something was done, in which boot, and with what result.
type mark struct {
	Boot  string `json:"boot"`
	Sum   string `json:"sum,omitempty"`
	Done  bool   `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
}

func (p *plugin) mark(name string) (m mark, found bool, err error) {
	b, err := p.System.ReadFile(p.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return m, false, fmt.Errorf("%s: %w", p.Path(name), err)
	}
	return m, true, nil
}

func (p *plugin) setMark(name string, m mark) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return p.put(p.Path(name), 0o644, string(b)+"\n")
}

func (p *plugin) put(name string, mode fs.FileMode, text string) error {
	return p.System.Put(sys.File{Name: name, Mode: mode, Content: []byte(text)})
}

func (p *plugin) bootID() (string, error) {
	b, err := p.System.Boot()
	return b.ID, err
}

// maxOutput is how many bytes of a command's output an error has.
const maxOutput = 512

// exec runs a command.
func (p *plugin) exec(ctx context.Context, args ...string) error {
	var out bytes.Buffer
	code, err := p.System.Exec(ctx, sys.Command{Args: args, Dir: "/", Stdout: &out, Stderr: &out})
	if err == nil && code != 0 {
		text := strings.TrimSpace(out.String())
		err = fmt.Errorf("it ended with code %d: %s", code, text[max(0, len(text)-maxOutput):])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

// maxImage bounds the image of a version of the operating system.
const maxImage = 64 << 30

// fetch reads an image, and passes it to w.
func (p *plugin) fetch(ctx context.Context, url string, w io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	c := p.c.HTTP
	if c == nil {
		c = http.DefaultClient
	}
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, answer.Status)
	}
	n, err := io.Copy(w, io.LimitReader(answer.Body, maxImage+1))
	if err == nil && n > maxImage {
		err = fmt.Errorf("GET %s: it has more than %d bytes", url, int64(maxImage))
	}
	return err
}
