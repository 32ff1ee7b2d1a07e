package disk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/agent/configdrive"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
)

// Writer writes images to root devices.
type Writer struct {
	System sys.System
	// HTTP fetches images and checksum files; nil means http.Client's defaults.
	HTTP *http.Client
	// Progress, if set, receives the percentage done, which never decreases.
	Progress func(percent int)
	// Stall is how long a server may be silent (in wall time); 0 means a minute.
	Stall time.Duration
	// Pause is the wait before the second resumption of a broken download, which
	// doubles each time (in wall time); 0 means half a second.
	Pause time.Duration
}

// Image formats that can be written.
const (
	formatRaw   = "raw"
	formatQcow2 = "qcow2"
	formatVDI   = "vdi"
	formatVMDK  = "vmdk"
)

// maxSums is the maximum size of a checksum file in bytes.
const maxSums = 1 << 20

// Write writes an image to the root device that the hints choose among disks. A
// raw image is written while it is downloaded; one in another format is downloaded
// and its checksum verified before the disk is touched. In both cases the disk
// cannot boot before everything is written and verified.
func (w Writer) Write(ctx context.Context, spec job.WriteSpec, disks []job.Disk) (job.Written, error) {
	if unpackers[spec.Format] == nil && spec.Format != "" && spec.Format != formatRaw {
		return job.Written{}, fmt.Errorf("disk: image format %q is not supported, want raw, qcow2, vdi or vmdk", shortened(spec.Format))
	}
	oci := strings.HasPrefix(strings.ToLower(spec.URL), ociScheme+"://")
	var image blob
	var err error
	if !oci {
		if image.url, err = parseURL("image URL", spec.URL); err != nil {
			return job.Written{}, err
		}
	}
	root, err := Choose(disks, spec.Root)
	if spec.Array != "" {
		root, err = chooseArray(disks, spec.Array)
	}
	if err != nil {
		return job.Written{}, err
	}
	if oci {
		image, err = w.resolve(ctx, spec)
	} else {
		image.want, err = w.expectedDigest(ctx, spec, image.url)
	}
	if err != nil {
		return job.Written{}, err
	}
	var drive []byte
	if spec.ConfigDrive != nil {
		if drive, err = configdrive.Build(*spec.ConfigDrive); err != nil {
			return job.Written{}, fmt.Errorf("disk: %w", err)
		}
	}
	block, err := w.System.OpenBlock(kernelName(root.Name))
	if err != nil {
		return job.Written{}, fmt.Errorf("disk: open %s: %w", root.Name, err)
	}
	t := &target{block: block, name: root.Name, drive: drive, driveOptional: spec.ConfigDrive != nil && spec.ConfigDrive.Optional}
	size, err := w.write(ctx, image, spec.Format, t)
	if err != nil && t.wiped {
		err = joinErrors(err, t.sync()) // at least the wiped head must be durable
	}
	if closeErr := block.Close(); closeErr != nil && err == nil {
		err = fmt.Errorf("disk: close %s: %w", root.Name, closeErr)
	}
	if err != nil {
		return job.Written{}, err
	}
	return job.Written{Device: root.Name, Bytes: size, Sum: image.want.hex, ConfigDrive: t.driveAt}, nil
}

// expectedDigest returns the digest that the image must have.
func (w Writer) expectedDigest(ctx context.Context, spec job.WriteSpec, image *url.URL) (digest, error) {
	text := strings.TrimSpace(spec.Checksum)
	if text == "" {
		return digest{}, errors.New("disk: checksum is missing")
	}
	if !strings.Contains(text, "://") {
		d, err := parseDigest(text, spec.ChecksumType)
		if err != nil {
			return digest{}, fmt.Errorf("disk: %w", err)
		}
		return d, nil
	}
	u, err := parseURL("checksum URL", text)
	if err != nil {
		return digest{}, err
	}
	file, err := w.open(ctx, u, true, nil)
	if err != nil {
		return digest{}, err
	}
	defer file.close()
	sums, err := readSmall(ctx, file, maxSums)
	if err != nil {
		return digest{}, err
	}
	d, err := parseSums(string(sums), path.Base(image.Path), spec.ChecksumType)
	if err != nil {
		return digest{}, fmt.Errorf("disk: %s: %w", redactURL(u), err)
	}
	return d, nil
}

func (w Writer) write(ctx context.Context, image blob, format string, t *target) (int64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	file, err := w.open(ctx, image.url, false, image.registry)
	if err != nil {
		return 0, err
	}
	defer file.close()
	bar := &progress{report: w.Progress}
	var to sink
	h := image.want.make()
	from, hashed, total := source(file), io.Writer(h), file.size
	if image.registry != nil {
		layer, err := openLayer(ctx, file, h, image.size, image.wrapping)
		if err != nil {
			return 0, err
		}
		from, hashed, total = layer, io.Discard, layer.size
	}
	n, err := pump(ctx, stop, from, hashed, func(off int64, p []byte) error {
		if to == nil {
			if to, err = w.sink(format, p, total, t, bar); err != nil {
				return err
			}
		}
		if err := to.take(off, p); err != nil {
			return err
		}
		bar.part(off+int64(len(p)), total)
		return nil
	})
	if to != nil {
		defer to.release()
	}
	if err != nil {
		return 0, err
	}
	if to == nil {
		return 0, fmt.Errorf("disk: image %s is empty", redactURL(image.url))
	}
	if have := hex.EncodeToString(h.Sum(nil)); have != image.want.hex {
		return 0, fmt.Errorf("disk: checksum mismatch: %s has %s %s, want %s", redactURL(image.url), image.want.name, have, image.want.hex)
	}
	size, err := to.finish(ctx, n)
	if err != nil {
		return 0, err
	}
	bar.next(100)
	if err := t.verify(ctx, bar.part); err != nil {
		return 0, joinErrors(err, wipeEnds(t.block, 0, t.block.Size(), headSize))
	}
	return size, nil
}
