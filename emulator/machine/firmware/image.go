package firmware

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// An image is, in this order:
//
//	magic      10 bytes, "METALABFW\n"
//	format      2 bytes, big endian: 1
//	length      4 bytes, big endian: of the header, at most 8192
//	header        JSON object, see Image; UTF-8
//	signature  64 bytes, Ed25519 over all before it
//	payload       as many bytes as the header says, and nothing after them
//
// The header carries the payload's SHA-256, so the signature covers it too.
// The key that signs is the vendor's, see VendorKey.
const (
	imageMagic    = "METALABFW\n"
	imageFormat   = 1
	maxHeader     = 8 << 10
	maxHeaderText = 64
	imagePrefix   = len(imageMagic) + 2 + 4
)

// MaxPayload is the largest payload in bytes.
const MaxPayload = 1 << 30

// Image is the header of an image.
type Image struct {
	Kind     Kind   `json:"kind"`   // kind of component
	Vendor   string `json:"vendor"` // signer
	Model    string `json:"model"`  // model of component
	Version  string `json:"version"`
	Lowest   string `json:"lowest,omitempty"`   // lowest version that the component accepts once it runs this one
	Released string `json:"released,omitempty"` // 2026-03-14
	Size     int64  `json:"size"`               // payload, in bytes
	SHA256   string `json:"sha256"`             // digest of the payload in hexadecimal, lower case
}

// Defect is a reason to refuse an image.
type Defect string

// The defects.
const (
	Malformed Defect = "it is no firmware image"
	Unsigned  Defect = "its signature is wrong"
	Damaged   Defect = "its content is not what was signed"
	TooLarge  Defect = "it is too large"
)

// ImageError reports an image that cannot be used.
type ImageError struct {
	Defect Defect
	Detail string // for display
}

// Error implements error.
func (e *ImageError) Error() string {
	return fmt.Sprintf("firmware: image: %s: %s", e.Defect, e.Detail)
}

// VendorKey returns the signing key of an emulated vendor. It derives
// from the name, so that images built anywhere work in every rack; it
// protects against damage and mix-ups, and is no secret.
func VendorKey(vendor string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("metalab firmware vendor key 1: " + vendor))
	return ed25519.NewKeyFromSeed(seed[:])
}

// check checks a header.
func (h *Image) check() error {
	for _, f := range []struct {
		field, s string
		least    int
	}{{"vendor", h.Vendor, 1}, {"model", h.Model, 1}, {"version", h.Version, 1}, {"lowest", h.Lowest, 0}} {
		if len(f.s) < f.least || len(f.s) > maxHeaderText || !utf8.ValidString(f.s) || strings.ContainsFunc(f.s, unicode.IsControl) {
			return fmt.Errorf("%s: must be %d to %d bytes of text", f.field, f.least, maxHeaderText)
		}
	}
	sum, err := hex.DecodeString(h.SHA256)
	switch {
	case !slices.Contains(Kinds, h.Kind):
		return fmt.Errorf("kind %q: must be one of %v", h.Kind, Kinds)
	case h.Size < 0 || h.Size > MaxPayload:
		return fmt.Errorf("size %d: must be from 0 to %d", h.Size, MaxPayload)
	case err != nil || len(sum) != sha256.Size || h.SHA256 != strings.ToLower(h.SHA256):
		return errors.New("sha256: must be 64 hexadecimal digits in lower case")
	}
	if h.Released != "" {
		if _, err := time.Parse(time.DateOnly, h.Released); err != nil {
			return fmt.Errorf("released %q: must be a date like 2026-03-14", h.Released)
		}
	}
	return nil
}

// BuildImage writes an image with the rest of r as payload. It fills in Size
// and SHA256.
func BuildImage(w io.Writer, h Image, r io.ReadSeeker) (Image, error) {
	begin, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return Image{}, fmt.Errorf("firmware: build image: payload: %w", err)
	}
	sum := sha256.New()
	if h.Size, err = io.Copy(sum, r); err != nil {
		return Image{}, fmt.Errorf("firmware: build image: payload: %w", err)
	}
	h.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err := h.check(); err != nil {
		return Image{}, fmt.Errorf("firmware: build image: %w", err)
	}
	if _, err := r.Seek(begin, io.SeekStart); err != nil {
		return Image{}, fmt.Errorf("firmware: build image: payload: %w", err)
	}
	header, err := json.Marshal(h)
	if err != nil {
		return Image{}, fmt.Errorf("firmware: build image: %w", err)
	}
	head := append([]byte(imageMagic), 0, imageFormat)
	head = binary.BigEndian.AppendUint32(head, uint32(len(header)))
	head = append(head, header...)
	head = append(head, ed25519.Sign(VendorKey(h.Vendor), head)...)
	if _, err := w.Write(head); err != nil {
		return Image{}, fmt.Errorf("firmware: build image: %w", err)
	}
	if _, err := io.CopyN(w, r, h.Size); err != nil {
		return Image{}, fmt.Errorf("firmware: build image: payload: %w", err)
	}
	return h, nil
}

// Name returns the image's name for display.
func (h *Image) Name() string { return h.Model + " " + h.Version }

// ParseImage reads and verifies an image of any length with little memory. An
// invalid image is an *ImageError; with Unsigned, Damaged and TooLarge the
// header is returned as well. Errors of r are returned unchanged.
func ParseImage(r io.Reader) (Image, error) {
	var h Image
	head := make([]byte, imagePrefix)
	if err := fill(r, head); err != nil {
		return h, err
	}
	n := binary.BigEndian.Uint32(head[len(head)-4:])
	switch {
	case !bytes.HasPrefix(head, []byte(imageMagic)):
		return h, &ImageError{Malformed, "it does not begin as one"}
	case binary.BigEndian.Uint16(head[len(imageMagic):]) != imageFormat:
		return h, &ImageError{Malformed, "it has another format"}
	case n > maxHeader:
		return h, &ImageError{Malformed, fmt.Sprintf("its header has %d bytes", n)}
	}
	head = append(head, make([]byte, int(n)+ed25519.SignatureSize)...)
	if err := fill(r, head[imagePrefix:]); err != nil {
		return h, err
	}
	signed, signature := head[:imagePrefix+int(n)], head[imagePrefix+int(n):]
	d := json.NewDecoder(bytes.NewReader(signed[imagePrefix:]))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return Image{}, &ImageError{Malformed, "header: " + err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Image{}, &ImageError{Malformed, "header: more than one value"}
	}
	if err := h.check(); err != nil {
		return Image{}, &ImageError{Malformed, "header: " + err.Error()}
	}
	if !ed25519.Verify(VendorKey(h.Vendor).Public().(ed25519.PublicKey), signed, signature) {
		return h, &ImageError{Unsigned, "not signed by " + h.Vendor}
	}
	sum := sha256.New()
	got, err := io.Copy(sum, io.LimitReader(r, h.Size+1))
	switch {
	case err != nil:
		return h, fmt.Errorf("firmware: image: %w", err)
	case got > h.Size:
		return h, &ImageError{Damaged, fmt.Sprintf("more than %d bytes of payload", h.Size)}
	case got < h.Size:
		return h, &ImageError{Damaged, fmt.Sprintf("%d bytes of payload, not %d", got, h.Size)}
	case hex.EncodeToString(sum.Sum(nil)) != h.SHA256:
		return h, &ImageError{Damaged, "another SHA-256"}
	}
	return h, nil
}

// fill reads all of b, or returns why the image is invalid.
func fill(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &ImageError{Malformed, "it ends early"}
	case err != nil:
		return fmt.Errorf("firmware: image: %w", err)
	}
	return nil
}
