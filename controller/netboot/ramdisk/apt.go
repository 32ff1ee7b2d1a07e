package ramdisk

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// DefaultKernel is the package that depends on a distribution's newest kernel
// for servers.
const DefaultKernel = "linux-image-amd64"

// dependsOnKernel matches the package with the kernel itself in the output of apt-cache.
var dependsOnKernel = regexp.MustCompile(`(?m)^\s*Depends: (linux-image-[0-9]\S*)$`)

// Download downloads the packages for an image into a directory with apt-get and returns
// their paths. It installs nothing.
func Download(ctx context.Context, kernel, dir string) ([]string, error) {
	shown, err := run(ctx, dir, "apt-cache", "depends", kernel)
	if err != nil {
		return nil, err
	}
	if found := dependsOnKernel.FindSubmatch(shown); found != nil { // else kernel is the package itself
		kernel = string(found[1])
	}
	names := []string{kernel}
	for _, name := range loaders { // packages repeat
		names = append(names, name)
	}
	slices.Sort(names)
	if _, err := run(ctx, dir, "apt-get", append([]string{"download", "-q"}, slices.Compact(names)...)...); err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return nil, err
	}
	return found, nil
}

func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return out, nil
}
