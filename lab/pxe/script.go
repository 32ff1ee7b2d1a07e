package pxe

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/netboot/cpio"
)

// Size limits of what a script loads, in bytes.
const (
	maxScript = 64 << 10
	maxKernel = 64 << 20
	maxInitrd = 512 << 20 // for all initrds together
)

// bootScript is what a script has loaded so far.
type bootScript struct {
	kernel  bool
	cmdline string
	initrds []cpio.Entry
	room    int // bytes left for initrds
	booted  bool
}

// commands are the supported commands of iPXE. A script fails at any other, as it
// does where iPXE was built without it.
var commands = map[string]func(ctx context.Context, l *bootScript, base *url.URL, args []string) error{
	"kernel": func(ctx context.Context, l *bootScript, base *url.URL, args []string) error {
		b, err := image(ctx, base, args, maxKernel)
		if err == nil && !isKernel(b) {
			err = errNoKernel
		}
		l.kernel, l.cmdline = err == nil, strings.Join(args[min(1, len(args)):], " ")
		return err
	},
	"initrd": func(ctx context.Context, l *bootScript, base *url.URL, args []string) error {
		b, err := image(ctx, base, args, l.room)
		if err != nil {
			return err
		}
		l.room -= len(b)
		entries, _, err := cpio.Read(b) // the kernel unpacks the rest, which is compressed
		l.initrds = append(l.initrds, entries...)
		return err
	},
	"boot": func(_ context.Context, l *bootScript, _ *url.URL, args []string) error {
		if len(args) > 0 || !l.kernel {
			return errors.New("nothing to boot")
		}
		l.booted = true
		return nil
	},
}

// runScript runs the script at a URL, and returns the agent's configuration, or the seed,
// from the initrds that it boots.
func runScript(ctx context.Context, uri string, nic NIC) (System, error) {
	base, err := url.Parse(uri)
	if err != nil {
		return System{}, fmt.Errorf("script: %w", err)
	}
	text, err := fetch(ctx, base, maxScript)
	if err != nil {
		return System{}, err
	}
	l, err := run(ctx, base, expand(string(text), nic))
	if err != nil {
		return System{}, err
	}
	if seed := seedOf(l.initrds); seed != nil {
		return System{Seed: seed, Cmdline: l.cmdline}, nil
	}
	config, ok := cpio.Find(l.initrds, job.MediaConfigPath)
	if !ok {
		return System{}, fmt.Errorf("%s: %s is in no initrd", public(base), job.MediaConfigPath)
	}
	m, err := parseMedia(config)
	return System{Media: m, Cmdline: l.cmdline}, err
}

// seedOf returns the seed in initrds, nil when there is none.
func seedOf(initrds []cpio.Entry) *netboot.Seed {
	meta, ok := cpio.Find(initrds, path.Join(netboot.SeedDir, netboot.SeedMetaData))
	if !ok {
		return nil
	}
	user, _ := cpio.Find(initrds, path.Join(netboot.SeedDir, netboot.SeedUserData)) // cloud-init does without, too
	return &netboot.Seed{MetaData: meta, UserData: user}
}

// setting matches a setting of iPXE in a script, such as ${netX/mac:hexhyp}.
var setting = regexp.MustCompile(`\$\{[^}]*\}`)

// expand replaces settings in a script. netX is the NIC that booted; an unknown
// setting is empty, as in iPXE.
func expand(script string, nic NIC) string {
	known := map[string]string{
		"${netX/mac}": strings.ToLower(nic.MAC), "${netX/mac:hexhyp}": strings.ReplaceAll(strings.ToLower(nic.MAC), ":", "-"),
		"${uuid}": nic.UUID,
	}
	return setting.ReplaceAllStringFunc(script, func(s string) string { return known[s] })
}

func run(ctx context.Context, base *url.URL, text string) (*bootScript, error) {
	head, text, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(head) != "#!ipxe" {
		return nil, errors.New("script: does not begin with #!ipxe")
	}
	l := &bootScript{room: maxInitrd}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		do := commands[words[0]]
		if do == nil {
			return nil, fmt.Errorf("script: %s: command not found", words[0])
		}
		if err := do(ctx, l, base, words[1:]); err != nil {
			return nil, fmt.Errorf("script: %s: %w", words[0], err)
		}
		if l.booted {
			return l, nil
		}
	}
	return nil, errors.New("script: ends without booting")
}

// image fetches the image of a command: [--name NAME] URI [ARGUMENT…].
func image(ctx context.Context, base *url.URL, args []string, most int) ([]byte, error) {
	if i := slices.IndexFunc(args, func(s string) bool { return !strings.HasPrefix(s, "-") }); i == 1 && args[0] == "--name" {
		args = args[2:]
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return nil, errors.New("names nothing")
	}
	at, err := base.Parse(args[0])
	if err != nil {
		return nil, err
	}
	return fetch(ctx, at, most)
}
