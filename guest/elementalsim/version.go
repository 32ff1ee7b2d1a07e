package elementalsim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/metalab-dev/metalab/agent/elemental"
)

// ReconcileOSVersion implements elemental.Plugin. It takes the image of the wanted version, and
// names it in /etc/os-release (IMAGE_ID, IMAGE_VERSION); the files of the system stay. A version
// other than the last one needs a reboot.
func (p *plugin) ReconcileOSVersion(ctx context.Context, input []byte) (reboot bool, err error) {
	if _, err := p.Dummy.ReconcileOSVersion(ctx, input); err != nil {
		return false, err
	}
	var want struct {
		OSVersion struct {
			ImageURI string `json:"imageUri"`
		} `json:"osVersion"`
	}
	if err := json.Unmarshal(input, &want); err != nil {
		return false, fmt.Errorf("%s: %w", elemental.OSVersionFile, err)
	}
	image := want.OSVersion.ImageURI
	if image == "" {
		return false, nil
	}
	boot, err := p.bootID()
	if err != nil {
		return false, err
	}
	done, found, err := p.mark(versionFile)
	if err != nil {
		return false, err
	}
	if found && done.Sum == image { // it was taken; the reboot may be due
		return done.Boot == boot, nil
	}
	digest := ""
	if scheme, _, _ := strings.Cut(image, "://"); scheme == "http" || scheme == "https" {
		h := sha256.New()
		if err := p.fetch(ctx, image, h); err != nil {
			return false, fmt.Errorf("osVersion.imageUri: %w", err)
		}
		digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	}
	if err := p.setRelease(image, digest); err != nil {
		return false, err
	}
	return true, p.setMark(versionFile, mark{Boot: boot, Sum: image, Done: true})
}

// setRelease names an image in /etc/os-release (os-release(5)).
func (p *plugin) setRelease(image, digest string) error {
	b, err := p.System.ReadFile(osReleaseFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "IMAGE_ID=") && !strings.HasPrefix(line, "IMAGE_VERSION=") {
			out.WriteString(line)
		}
	}
	fmt.Fprintf(&out, "IMAGE_VERSION=%q\n", image)
	if digest != "" {
		fmt.Fprintf(&out, "IMAGE_ID=%q\n", digest)
	}
	return p.put(osReleaseFile, 0o644, out.String())
}
