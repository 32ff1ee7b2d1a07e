package cloudinit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Kinds of user data, by their MIME types (cloud-init, "User-data formats").
const (
	cloudConfig    = "text/cloud-config"
	configArchive  = "text/cloud-config-archive"
	jsonPatch      = "text/cloud-config-jsonp"
	shellScript    = "text/x-shellscript"
	scriptPerBoot  = "text/x-shellscript-per-boot"
	scriptPerInst  = "text/x-shellscript-per-instance"
	scriptOnce     = "text/x-shellscript-per-once"
	includeURL     = "text/x-include-url"
	includeOnceURL = "text/x-include-once-url"
	boothook       = "text/cloud-boothook"
	jinja          = "text/jinja2"
	partHandler    = "text/part-handler"
	ignition       = "application/ignition"
	notMultipart   = "text/x-not-multipart"
	unknown        = "text/plain"
)

// starts are the first characters by which a kind is recognized, whatever their case. The longest
// is first.
var starts = []struct{ prefix, kind string }{
	{"#cloud-config-archive", configArchive},
	{"#cloud-config-jsonp", jsonPatch},
	{"## template: jinja", jinja},
	{"#cloud-boothook", boothook},
	{"#include-once", includeOnceURL},
	{"#cloud-config", cloudConfig},
	{"#part-handler", partHandler},
	{"#include", includeURL},
	{"#!", shellScript},
}

// unapplied gives the reason for each kind that Configure leaves out.
var unapplied = map[string]string{
	includeURL:     "URLs are read in user data and in MIME messages, not in an archive",
	includeOnceURL: "URLs are read in user data and in MIME messages, not in an archive",
	configArchive:  "an archive is read in user data and in MIME messages, not in an archive",
	jsonPatch:      "JSON patches of a cloud-config are not applied",
	partHandler:    "part handlers are programs of Python within cloud-init, which is not here",
	ignition:       "it is an Ignition configuration, which Ignition reads",
	unknown:        "it begins with no known header, such as #cloud-config",
}

// applied are the kinds that Configure applies.
var applied = map[string]bool{cloudConfig: true, shellScript: true, scriptPerBoot: true, scriptPerInst: true, scriptOnce: true, boothook: true, jinja: true}

// part is one piece of user data.
type part struct {
	label   string // for messages
	name    string // of its file
	kind    string
	merge   string // how it is merged, by its header Merge-Type
	content []byte
	launch  string // its header Launch-Index; "": absent
}

// Bounds of user data, which those of a server come nowhere near.
const (
	maxUnpacked = 64 << 20 // bytes of all parts that are compressed
	maxParts    = 1024
)

// errUnpacked reports user data that are too large.
var errUnpacked = fmt.Errorf("compressed parts unpack to more than %d bytes", maxUnpacked)

// splitter collects the parts of user data.
type splitter struct {
	of       string // name of the data in messages
	r        *Result
	out      []part
	unpacked int  // bytes
	full     bool // it has reported maxParts
}

// partsOf splits user data as cloud-init does: a MIME message and an archive into their parts,
// anything else into one. of is their name in messages.
func partsOf(data []byte, of string, r *Result) []part {
	s := splitter{of: of, r: r}
	if bytes.HasPrefix(data, gzipMagic) {
		out, err := s.unpack(data)
		if err != nil {
			r.ignore("%s are not applied: %v", of, err)
			return nil
		}
		data = out
	}
	if bytes.Contains(bytes.ToLower(data[:min(len(data), mimeHead)]), []byte("mime-version:")) {
		s.message(parseMessage(data), 0)
	} else {
		s.leaf(message{kind: notMultipart, body: data}, of)
	}
	return s.out
}

var gzipMagic = []byte{0x1f, 0x8b}

// unpack decompresses data that are compressed by gzip.
func (s *splitter) unpack(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	left := maxUnpacked - s.unpacked
	out, err := io.ReadAll(io.LimitReader(z, int64(left)+1))
	if err == nil && len(out) > left {
		err = errUnpacked
	}
	s.unpacked += len(out)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return out, nil
}

// compressed are the MIME types of parts that cloud-init decompresses. It reads no other part so,
// whatever the part begins with.
var compressed = map[string]bool{
	"application/gzip": true, "application/gzip-compressed": true, "application/gzipped": true,
	"application/x-compress": true, "application/x-compressed": true, "application/x-gunzip": true,
	"application/x-gzip": true, "application/x-gzip-compressed": true,
}

// leaf reads a message that has no parts. label is its name in messages; "" is its file's
// name.
func (s *splitter) leaf(m message, label string) {
	content, err := m.content()
	if label == "" {
		label = s.nameOf(m.filename)
	}
	kind := m.kind
	if err == nil && compressed[kind] {
		kind = unknown
		content, err = s.unpack(content)
	}
	if err != nil {
		s.r.ignore("%s is not applied: %v", label, err)
		return
	}
	// The content decides where the type says little, and for scripts, each of which begins with #!
	// (cloud-init, UserDataProcessor).
	if kind == unknown || kind == notMultipart || kind == shellScript {
		if known := kindOf(content); known != "" {
			kind = known
		}
	}
	switch kind {
	case includeURL, includeOnceURL:
		s.include(content)
	case configArchive:
		s.archive(content, label)
	default:
		s.add(part{label: label, name: m.filename, kind: kind, merge: m.merge(), content: content, launch: m.headers["launch-index"]})
	}
}

// nameOf returns the name of the next part, which is counted where it has none.
func (s *splitter) nameOf(filename string) string {
	if filename != "" {
		return filename
	}
	return fmt.Sprintf("part-%03d", len(s.out)+1)
}

// add adds a part.
func (s *splitter) add(p part) {
	if len(s.out) >= maxParts {
		if !s.full {
			s.r.ignore("the rest of %s is not applied: it has more than %d parts", s.of, maxParts)
		}
		s.full = true
		return
	}
	p.name = s.nameOf(p.name)
	if p.label == "" {
		p.label = p.name
	}
	if strings.TrimSpace(string(p.content)) == "" && (p.kind == unknown || p.kind == notMultipart) {
		p.content = nil
	}
	if _, why := unapplied[p.kind]; !why && !applied[p.kind] {
		p.kind = unknown
	}
	if p.kind == unknown && isIgnition(p.content) {
		p.kind = ignition
	}
	s.out = append(s.out, p)
}

// include names the URLs of #include: what is behind them is not here.
func (s *splitter) include(content []byte) {
	const most = 20
	named := 0
	for line := range strings.SplitSeq(strings.ReplaceAll(string(content), "\r", "\n"), "\n") {
		for _, head := range []string{"#include-once", "#include"} {
			if len(line) >= len(head) && strings.EqualFold(line[:len(head)], head) {
				line = line[len(head):]
				break
			}
		}
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if named++; named <= most {
			s.r.ignore("%.200q of #include is not fetched: servers of a lab fetch no user data, so put what is there into them", line)
		}
	}
	if named > most {
		s.r.ignore("%d more URLs of #include are not fetched", named-most)
	}
}

// kindOf returns the kind of a text by its first characters, or "".
func kindOf(data []byte) string {
	head := bytes.TrimSpace(data)
	for _, s := range starts {
		if len(head) >= len(s.prefix) && strings.EqualFold(string(head[:len(s.prefix)]), s.prefix) {
			return s.kind
		}
	}
	return ""
}

func isIgnition(data []byte) bool {
	head := bytes.TrimSpace(data)
	return bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head[:min(len(head), 200)], []byte(`"ignition"`))
}

var errNoText = errors.New("its content is no text")
