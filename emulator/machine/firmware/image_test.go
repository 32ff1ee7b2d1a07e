package firmware

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func build(t testing.TB, h Image, payload string) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := BuildImage(&b, h, strings.NewReader(payload)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var nicImage = Image{Kind: KindNIC, Vendor: "Metalab", Model: "ML25G", Version: "2.0.0", Lowest: "1.5.0", Released: "2026-03-14"}

func TestImagesSurviveTheirForm(t *testing.T) {
	in := strings.NewReader("not this: payload")
	if _, err := in.Seek(10, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	made, err := BuildImage(&b, nicImage, in)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("payload"))
	want := nicImage
	want.Size, want.SHA256 = 7, hex.EncodeToString(sum[:])
	got, err := ParseImage(iotest.OneByteReader(&b))
	if err != nil || got != want || made != want {
		t.Errorf("ParseImage() = %+v, %v, want %+v", got, err, want)
	}
}

func TestImagesOfOneContentAreTheSame(t *testing.T) {
	if !bytes.Equal(build(t, nicImage, "x"), build(t, nicImage, "x")) {
		t.Error("two images of the same differ")
	}
}

// An image with any one bit changed is refused.
func TestTamperedImagesAreRefused(t *testing.T) {
	good := build(t, nicImage, "payload")
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			var got *ImageError
			if _, err := ParseImage(bytes.NewReader(bad)); !errors.As(err, &got) {
				t.Fatalf("bit %d of byte %d changed: %v, want an ImageError", bit, i, err)
			}
		}
	}
	for n := range good {
		var got *ImageError
		if _, err := ParseImage(bytes.NewReader(good[:n])); !errors.As(err, &got) {
			t.Fatalf("cut after %d bytes: %v, want an ImageError", n, err)
		}
	}
}

func TestParseImageNamesTheDefect(t *testing.T) {
	good := build(t, nicImage, "payload")
	other := build(t, Image{Kind: KindNIC, Vendor: "Other", Model: "ML25G", Version: "2.0.0"}, "payload")
	foreign := bytes.Replace(other, []byte(`"Other"`), []byte(`"Metal"`), 1) // signed by another vendor
	for _, tt := range []struct {
		name string
		in   []byte
		want Defect
		head bool // the header is told
	}{
		{"empty", nil, Malformed, false},
		{"page of a web server", []byte("<!DOCTYPE html><html><body>404</body></html>"), Malformed, false},
		{"another format", bytes.Replace(good, []byte("FW\n\x00\x01"), []byte("FW\n\x00\x02"), 1), Malformed, false},
		{"huge header", append([]byte(imageMagic), 0, 1, 0xff, 0xff, 0xff, 0xff), Malformed, false},
		{"more after it", append(bytes.Clone(good), 'x'), Damaged, true},
		{"less", good[:len(good)-1], Damaged, true},
		{"another payload", append(bytes.Clone(good[:len(good)-1]), 'x'), Damaged, true},
		{"another vendor", foreign, Unsigned, true},
	} {
		h, err := ParseImage(bytes.NewReader(tt.in))
		var got *ImageError
		if !errors.As(err, &got) || got.Defect != tt.want || (h.Model != "") != tt.head {
			t.Errorf("%s: ParseImage() = %+v, %v, want %q", tt.name, h, err, tt.want)
		}
	}
}

func TestImagesAreBuiltOnlyOfWhatCanBeRead(t *testing.T) {
	for field, change := range map[string]func(*Image){
		"kind":     func(h *Image) { h.Kind = "toaster" },
		"vendor":   func(h *Image) { h.Vendor = "" },
		"model":    func(h *Image) { h.Model = strings.Repeat("x", 65) },
		"version":  func(h *Image) { h.Version = "1\n2" },
		"lowest":   func(h *Image) { h.Lowest = "\xff" },
		"released": func(h *Image) { h.Released = "14.3.2026" },
	} {
		h := nicImage
		change(&h)
		if _, err := BuildImage(io.Discard, h, strings.NewReader("x")); err == nil || !strings.HasPrefix(err.Error(), "firmware: build image: "+field) {
			t.Errorf("BuildImage(%+v) = %v, want an error that names %s", h, err, field)
		}
	}
}

func TestErrorsOfTheReaderComeAsTheyAre(t *testing.T) {
	good := build(t, nicImage, "payload")
	broken := errors.New("broken")
	for _, n := range []int{0, 20, len(good) - 2} {
		_, err := ParseImage(io.MultiReader(bytes.NewReader(good[:n]), iotest.ErrReader(broken)))
		if defect := (*ImageError)(nil); !errors.Is(err, broken) || errors.As(err, &defect) {
			t.Errorf("after %d bytes: %v, want %v", n, err, broken)
		}
	}
}

func FuzzParseImage(f *testing.F) {
	f.Add(build(f, nicImage, "payload"))
	f.Add(build(f, Image{Kind: KindBIOS, Vendor: "v", Model: "m", Version: "1"}, ""))
	f.Add([]byte(imageMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := ParseImage(bytes.NewReader(in))
		if err != nil {
			if bad := (*ImageError)(nil); !errors.As(err, &bad) {
				t.Fatalf("ParseImage(% x) = %v, want an ImageError", in, err)
			}
			return
		}
		again, err := ParseImage(bytes.NewReader(build(t, h, string(in[int64(len(in))-h.Size:]))))
		if err != nil || again != h {
			t.Fatalf("ParseImage of what was built of %+v = %+v, %v", h, again, err)
		}
	})
}
