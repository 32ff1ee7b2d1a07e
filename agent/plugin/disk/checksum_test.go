package disk

import (
	"encoding/hex"
	"strings"
	"testing"
)

const (
	md5Sum    = "d41d8cd98f00b204e9800998ecf8427e"
	sha256Sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	sha512Sum = "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
)

func TestParseDigest(t *testing.T) {
	for _, tt := range []struct{ text, kind, name, err string }{
		{text: md5Sum, name: "md5"},
		{text: sha256Sum, name: "sha256"},
		{text: sha512Sum, name: "sha512"},
		{text: " " + strings.ToUpper(sha256Sum) + "\n", kind: "sha256", name: "sha256"},
		{text: md5Sum, kind: "md5", name: "md5"},
		{text: md5Sum, kind: "sha256", err: "32 hex digits, checksumType sha256 needs 64"},
		{text: sha256Sum, kind: "sha1", err: `checksumType "sha1" is unknown`},
		{text: "abcd", err: "4 hex digits, want 32 (md5), 64 (sha256) or 128 (sha512)"},
		{text: "not hex", err: "not hexadecimal"},
		{text: strings.Repeat("z", 500), err: "zzz…"},
	} {
		got, err := parseDigest(tt.text, tt.kind)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("parseDigest(%.40q, %q) error = %v, want %q", tt.text, tt.kind, err, tt.err)
			}
			continue
		}
		if err != nil || got.name != tt.name || got.hex != strings.ToLower(strings.TrimSpace(tt.text)) {
			t.Errorf("parseDigest(%.40q, %q) = %s %s, %v; want %s", tt.text, tt.kind, got.name, got.hex, err, tt.name)
		}
	}
}

func TestParseSums(t *testing.T) {
	other := strings.Repeat("0", 64)
	for _, tt := range []struct{ name, text, kind, want, err string }{
		{name: "bare", text: sha256Sum + "\n", want: sha256Sum},
		{name: "bare, of another name's file", text: "\n" + md5Sum, want: md5Sum},
		{name: "coreutils", text: other + "  other.img\n" + sha256Sum + "  disk.img\n", want: sha256Sum},
		{name: "coreutils, binary", text: sha256Sum + " *disk.img\r\n", want: sha256Sum},
		{name: "with a directory", text: sha256Sum + "  ./images/disk.img", want: sha256Sum},
		{name: "tab", text: sha256Sum + "\tdisk.img", want: sha256Sum},
		{name: "BSD", text: "MD5 (disk.img) = " + md5Sum + "\nSHA256 (disk.img) = " + sha256Sum, want: md5Sum},
		{name: "BSD, by type", text: "MD5 (disk.img) = " + md5Sum + "\nSHA256 (disk.img) = " + sha256Sum, kind: "sha256", want: sha256Sum},
		{name: "BSD with a dash", text: "SHA-512 (disk.img) = " + sha512Sum, kind: "sha512", want: sha512Sum},
		{name: "coreutils, by type", text: md5Sum + "  disk.img\n" + sha256Sum + "  disk.img\n", kind: "sha256", want: sha256Sum},
		{
			name: "signed",
			text: "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# disk.img: 42 bytes\nSHA256 (disk.img) = " + sha256Sum +
				"\n-----BEGIN PGP SIGNATURE-----\n\niQIzBAEBCAAdFiEE\n-----END PGP SIGNATURE-----\n",
			want: sha256Sum,
		},
		{name: "not there", text: sha256Sum + "  disk.img.xz\n", err: `does not name "disk.img"`},
		{name: "no such type", text: "MD5 (disk.img) = " + md5Sum, kind: "sha256", err: `no sha256 digest of "disk.img"`},
		{name: "wrong length", text: md5Sum + "  disk.img", kind: "sha256", err: "32 hex digits"},
		{name: "BSD that lies", text: "SHA512 (disk.img) = " + sha256Sum, err: "SHA512 line holds 64 hex digits"},
		{name: "empty", text: " \n\t\n", err: "empty"},
		{name: "HTML", text: "<!DOCTYPE html>\n<html><body>not found</body></html>", err: "does not name"},
	} {
		got, err := parseSums(tt.text, "disk.img", tt.kind)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("parseSums(%s) error = %v, want %q", tt.name, err, tt.err)
			}
		} else if err != nil || got.hex != tt.want {
			t.Errorf("parseSums(%s) = %q, %v; want %q", tt.name, got.hex, err, tt.want)
		}
	}
}

func FuzzParseSums(f *testing.F) {
	f.Add(sha256Sum, "disk.img", "")
	f.Add(sha256Sum+" *disk.img\n", "disk.img", "sha256")
	f.Add("MD5 (disk.img) = "+md5Sum, "disk.img", "md5")
	f.Add(") = (", "", "")
	f.Fuzz(func(t *testing.T, text, name, kind string) {
		d, err := parseSums(text, name, kind)
		if err != nil {
			return
		}
		sum, err := hex.DecodeString(d.hex)
		if err != nil || len(sum) != d.size || d.hex != strings.ToLower(d.hex) {
			t.Errorf("parseSums(%q, %q, %q) = %s %q, which is no digest", text, name, kind, d.name, d.hex)
		}
		if kind != "" && d.name != kind {
			t.Errorf("parseSums(%q, %q, %q) is a %s", text, name, kind, d.name)
		}
		if again, err := parseDigest(d.hex, d.name); err != nil || again.hex != d.hex {
			t.Errorf("parseDigest(%q) = %q, %v", d.hex, again.hex, err)
		}
	})
}
