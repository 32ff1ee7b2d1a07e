package cloudinit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
)

// Kinds of user data, by their MIME types (cloud-init, "User-data formats").
const (
	cloudConfig = "text/cloud-config"
	shellScript = "text/x-shellscript"
	includeURL  = "text/x-include-url"
	boothook    = "text/cloud-boothook"
	jinja       = "text/jinja2"
	partHandler = "text/part-handler"
	ignition    = "application/ignition"
	unknown     = "text/plain"
)

// starts are the first characters by which a kind is recognized.
var starts = []struct{ prefix, kind string }{
	{"#cloud-config", cloudConfig},
	{"#!", shellScript},
	{"#include", includeURL},
	{"#cloud-boothook", boothook},
	{"## template: jinja", jinja},
	{"#part-handler", partHandler},
	{"{\"ignition\"", ignition},
}

// unapplied gives the reason for each kind that Configure leaves out.
var unapplied = map[string]string{
	includeURL:  "URLs of #include are not fetched",
	boothook:    "boot hooks are not executed",
	jinja:       "Jinja templates are not rendered",
	partHandler: "part handlers are not executed",
	ignition:    "it is an Ignition configuration, which Ignition reads",
	unknown:     "it begins with no known header, such as #cloud-config",
}

// part is one piece of user data.
type part struct {
	name    string // for messages and file names
	kind    string
	content []byte
}

// maxUnpacked bounds user data that are compressed.
const maxUnpacked = 64 << 20

// partsOf splits user data: a MIME archive into its parts, anything else into one.
func partsOf(data []byte, r *Result) []part {
	data, err := unpack(data)
	if err != nil {
		r.ignore("the user data are not applied: %v", err)
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if parts, ok, err := archive(data); ok {
		if err != nil {
			r.ignore("the rest of the MIME archive is not applied: %v", err)
		}
		return parts
	}
	return []part{{name: "the user data", kind: kindOf(data), content: data}}
}

// unpack decompresses data that are compressed by gzip.
func unpack(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxUnpacked+1))
	if err == nil && len(out) > maxUnpacked {
		err = fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
	}
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return out, nil
}

func kindOf(data []byte) string {
	head := bytes.TrimLeft(data, "\r\n\t ")
	for _, s := range starts {
		if bytes.HasPrefix(head, []byte(s.prefix)) {
			return s.kind
		}
	}
	if bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head[:min(len(head), 200)], []byte(`"ignition"`)) {
		return ignition
	}
	return unknown
}

// archive reads a MIME multipart message (RFC 2046 §5.1). ok is false if data is none.
func archive(data []byte) (parts []part, ok bool, err error) {
	m, err := mail.ReadMessage(bufio.NewReader(bytes.NewReader(data)))
	if err != nil {
		return nil, false, nil //nolint:nilerr // it is no message
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil, false, nil //nolint:nilerr // likewise
	}
	if params["boundary"] == "" {
		return nil, true, errors.New("its Content-Type names no boundary")
	}
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, true, nil
		}
		if err != nil {
			return parts, true, err
		}
		content, err := readPart(p)
		if err != nil {
			return parts, true, fmt.Errorf("part %d: %w", len(parts)+1, err)
		}
		name := p.FileName()
		if name == "" {
			name = fmt.Sprintf("part-%03d", len(parts)+1)
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		// The content decides where the type says little, and for scripts: each begins with #!
		// (cloud-init, UserDataProcessor._process_msg).
		known := kindOf(content)
		switch kind {
		case "", unknown, "text/x-not-multipart":
			kind = known
		case shellScript:
			if known != unknown {
				kind = known
			}
		}
		if known == jinja {
			kind = jinja
		}
		if _, listed := unapplied[kind]; !listed && kind != cloudConfig && kind != shellScript {
			kind = unknown
		}
		parts = append(parts, part{name: name, kind: kind, content: content})
	}
}

func readPart(p *multipart.Part) ([]byte, error) {
	var r io.Reader = p
	switch strings.ToLower(p.Header.Get("Content-Transfer-Encoding")) {
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, p)
	case "quoted-printable":
		r = quotedprintable.NewReader(p)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxUnpacked))
	if err != nil {
		return nil, err
	}
	return unpack(b)
}
