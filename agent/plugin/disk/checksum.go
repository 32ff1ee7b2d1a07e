package disk

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"path"
	"strings"
)

// algorithm is a digest algorithm for checksums of images.
type algorithm struct {
	name string // in the spelling of checksumType
	size int    // bytes
	make func() hash.Hash
}

// algorithms lists those of BareMetalHost. MD5 does not protect against attackers,
// but many images are published with it.
var algorithms = []algorithm{
	{"md5", md5.Size, md5.New},
	{"sha256", sha256.Size, sha256.New},
	{"sha512", sha512.Size, sha512.New},
}

// digest is the expected checksum of an image.
type digest struct {
	algorithm
	hex string // lower case
}

// parseDigest decodes hex digits. kind is a checksumType, or "" to detect the
// algorithm by the length.
func parseDigest(text, kind string) (digest, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	sum, err := hex.DecodeString(text)
	if err != nil {
		return digest{}, fmt.Errorf("checksum %q is not hexadecimal", shortened(text))
	}
	for _, a := range algorithms {
		switch {
		case kind == a.name && len(sum) != a.size:
			return digest{}, fmt.Errorf("checksum has %d hex digits, checksumType %s needs %d", len(text), kind, 2*a.size)
		case kind == a.name, kind == "" && len(sum) == a.size:
			return digest{a, text}, nil
		}
	}
	if kind == "" {
		return digest{}, fmt.Errorf("checksum has %d hex digits, want 32 (md5), 64 (sha256) or 128 (sha512)", len(text))
	}
	return digest{}, fmt.Errorf("checksumType %q is unknown, want md5, sha256 or sha512", kind)
}

// parseSums finds the digest of the file called name in a checksum file: lines of
// md5sum and similar programs ("<hash>  <name>", "<hash> *name"), BSD lines
// ("SHA256 (name) = <hash>"), or a single hash. It skips other lines, such as
// comments and signatures.
func parseSums(text, name, kind string) (digest, error) {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return digest{}, fmt.Errorf("checksum file is empty")
	}
	if len(lines) == 1 && !strings.ContainsAny(lines[0], " \t") {
		return parseDigest(lines[0], kind)
	}
	named := false
	var last error
	for _, line := range lines {
		file, sum, kindOfLine := parseSumLine(line)
		if file == "" || path.Base(file) != name {
			continue
		}
		named = true
		if kindOfLine != "" && kind != "" && kindOfLine != kind {
			continue // a file may list each name with several algorithms
		}
		d, err := parseDigest(sum, kind)
		if err == nil && kindOfLine != "" && kindOfLine != d.name {
			err = fmt.Errorf("checksum file: %s line holds %d hex digits", strings.ToUpper(kindOfLine), len(sum))
		}
		if err == nil {
			return d, nil
		}
		last = err
	}
	switch {
	case last != nil:
		return digest{}, last
	case named:
		return digest{}, fmt.Errorf("checksum file has no %s digest of %q", kind, name)
	}
	return digest{}, fmt.Errorf("checksum file does not name %q", name)
}

// parseSumLine splits a line into file name and hash; kind is the algorithm in a
// BSD line.
func parseSumLine(line string) (file, sum, kind string) {
	if head, sum, ok := strings.Cut(line, ") = "); ok {
		if kind, file, ok := strings.Cut(head, " ("); ok {
			return file, strings.TrimSpace(sum), strings.ToLower(strings.ReplaceAll(kind, "-", ""))
		}
	}
	sum, file, ok := strings.Cut(line, " ")
	if !ok {
		if sum, file, ok = strings.Cut(line, "\t"); !ok {
			return "", "", ""
		}
	}
	return strings.TrimPrefix(strings.TrimSpace(file), "*"), sum, ""
}

// shortened limits foreign text in errors.
func shortened(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
