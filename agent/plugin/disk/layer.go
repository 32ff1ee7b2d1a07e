package disk

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// source is the input of an image.
type source interface {
	read(ctx context.Context, p []byte) (int, error)
}

// layerImage reads the image in a layer. All bytes of the layer pass through its
// digest, to the last one.
type layerImage struct {
	layer *layerReader
	image io.Reader
	tar   *tar.Reader // if the image is the single file of a tar
	size  int64       // size of the image in bytes; -1 if unknown
}

// maxWindow bounds the window of a compressed layer, which is also its memory.
const maxWindow = 32 << 20

// layerReader is a download as an io.Reader, for one context at a time.
type layerReader struct {
	ctx  context.Context //nolint:containedctx // the context of the read that is under way
	from *download
	hash io.Writer
	left int64 // bytes that the layer may still have
}

func (l *layerReader) Read(p []byte) (int, error) {
	n, err := l.from.read(l.ctx, p)
	_, _ = l.hash.Write(p[:n]) // a hash never fails
	if l.left -= int64(n); l.left < 0 {
		return n, errors.New("disk: oci: the layer is longer than its manifest says")
	}
	return n, err
}

// openLayer opens a layer.
func openLayer(ctx context.Context, from *download, hash io.Writer, size int64, how layerFormat) (*layerImage, error) {
	u := &layerImage{layer: &layerReader{ctx: ctx, from: from, hash: hash, left: size}, size: -1}
	u.image = u.layer
	var err error
	switch how.packed {
	case "gzip":
		u.image, err = gzip.NewReader(u.image)
	case "zstd":
		// With one goroutine, which is the caller's, there is nothing to close.
		u.image, err = zstd.NewReader(u.image, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	default:
		if !how.tar {
			u.size = size
		}
	}
	if err == nil && how.tar {
		err = u.openTar()
	}
	if err != nil {
		return nil, fmt.Errorf("disk: oci: layer: %w", err)
	}
	return u, nil
}

// openTar finds the single file of a tar. Its folders do not count.
func (u *layerImage) openTar() error {
	u.tar = tar.NewReader(u.image)
	h, err := u.nextFile()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the tar holds no file")
	case err != nil:
		return err
	}
	u.image, u.size = u.tar, h.Size
	return nil
}

// maxFolders bounds the number of skipped entries.
const maxFolders = 64

func (u *layerImage) nextFile() (*tar.Header, error) {
	for range maxFolders {
		h, err := u.tar.Next()
		switch {
		case err != nil:
			return nil, err
		case h.Typeflag == tar.TypeReg:
			return h, nil
		case h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeXGlobalHeader:
			return nil, fmt.Errorf("the tar holds %q, which is no file", shortened(h.Name))
		}
	}
	return nil, errors.New("the tar holds too many folders")
}

// read implements source. After the image's last byte it reads the layer to its
// end, and checks that it contains nothing else.
func (u *layerImage) read(ctx context.Context, p []byte) (int, error) {
	u.layer.ctx = ctx
	n, err := u.image.Read(p)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return n, fmt.Errorf("disk: oci: layer: %w", err)
	}
	if u.tar != nil {
		if _, err := u.nextFile(); err == nil {
			return n, errors.New("disk: oci: layer: the tar holds more than one file")
		} else if !errors.Is(err, io.EOF) {
			return n, fmt.Errorf("disk: oci: layer: %w", err)
		}
	}
	if _, err := io.Copy(io.Discard, u.layer); err != nil {
		return n, err
	}
	return n, io.EOF
}
