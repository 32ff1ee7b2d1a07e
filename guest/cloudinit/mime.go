package cloudinit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"slices"
	"strings"
)

// MIME messages are read as Python's email package reads them for cloud-init: what begins with
// no header is the body, and a part without an end reaches to that of the message.

const (
	mimeHead  = 4096 // bytes in which MIME-Version makes user data a message (user_data.convert_string)
	maxNested = 16   // messages within each other
	maxHeader = 64 << 10
)

// message is a MIME message or a part of one.
type message struct {
	kind     string // its type, in lower case
	params   map[string]string
	headers  map[string]string // the first of each name, in lower case
	filename string
	body     []byte
}

// parseMessage reads the headers of a message (RFC 5322 §2.2).
func parseMessage(data []byte) message {
	m := message{headers: map[string]string{}, kind: unknown}
	last := ""
	m.body = data
	for read := 0; read < maxHeader; {
		line, rest, _ := bytes.Cut(m.body, []byte("\n"))
		text := strings.TrimRight(string(line), "\r")
		name, value, isHeader := strings.Cut(text, ":")
		if text == "" {
			m.body = rest
			break
		}
		switch {
		case last != "" && (text[0] == ' ' || text[0] == '\t'):
			m.headers[last] += " " + strings.TrimSpace(text)
		case isHeader && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }):
			last = strings.ToLower(name)
			if _, has := m.headers[last]; has {
				last = " " // the first counts
				delete(m.headers, last)
			}
			m.headers[last] = strings.TrimSpace(value)
		case read == 0 && strings.HasPrefix(text, "From "):
		default:
			read = maxHeader // no header: the body has begun
			continue
		}
		read += len(line) + 1
		m.body = rest
		if len(rest) == 0 {
			break
		}
	}
	if kind, params, err := mime.ParseMediaType(m.headers["content-type"]); kind != "" && (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) && strings.Count(kind, "/") == 1 {
		m.kind, m.params = kind, params
	}
	_, disposition, _ := mime.ParseMediaType(m.headers["content-disposition"])
	if m.filename = disposition["filename"]; m.filename == "" {
		m.filename = m.params["name"]
	}
	return m
}

// merge returns how a message is merged into those before it.
func (m message) merge() string {
	if how := m.headers["merge-type"]; how != "" {
		return how
	}
	return m.headers["x-merge-type"]
}

// message reads a message and those within it.
func (s *splitter) message(m message, depth int) {
	if depth > maxNested {
		s.r.ignore("a part of %s is not applied: more than %d MIME messages are within each other", s.of, maxNested)
		return
	}
	switch {
	case m.kind == "message/rfc822":
		s.message(parseMessage(m.body), depth+1)
	case !strings.HasPrefix(m.kind, "multipart/"):
		s.leaf(m, "")
	case m.params["boundary"] == "":
		s.r.ignore("a MIME message of %s is not applied: its Content-Type names no boundary", s.of)
	default:
		parts := split(m.body, m.params["boundary"])
		if len(parts) == 0 {
			s.r.ignore("a MIME message of %s is not applied: it has no line --%.80s", s.of, m.params["boundary"])
		}
		for _, p := range parts {
			if s.full {
				return
			}
			s.message(parseMessage(p), depth+1)
		}
	}
}

// split returns the parts between the boundaries of a multipart message (RFC 2046 §5.1.1). The line
// end before a boundary belongs to it.
func split(body []byte, boundary string) (parts [][]byte) {
	start, at := -1, 0
	for at < len(body) && len(parts) <= maxParts {
		end := len(body)
		if n := bytes.IndexByte(body[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		rest, is := bytes.CutPrefix(body[at:end], []byte("--"+boundary))
		rest, last := bytes.CutPrefix(rest, []byte("--"))
		if is && len(bytes.TrimSpace(rest)) == 0 {
			if start >= 0 {
				parts = append(parts, bytes.TrimSuffix(bytes.TrimSuffix(body[start:max(start, at)], []byte("\n")), []byte("\r")))
			}
			if start = end; last {
				return parts
			}
		}
		at = end
	}
	if start >= 0 && start < len(body) {
		parts = append(parts, body[start:])
	}
	return parts
}

// content decodes the body of a message (RFC 2045 §6). Characters that base64 does not have are
// overlooked, as Python does.
func (m message) content() ([]byte, error) {
	switch e := strings.ToLower(m.headers["content-transfer-encoding"]); e {
	case "base64":
		digits := slices.Collect(func(yield func(byte) bool) {
			for _, c := range m.body {
				if ('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/') && !yield(c) {
					return
				}
			}
		})
		out, err := base64.RawStdEncoding.DecodeString(string(digits))
		if err != nil {
			return nil, fmt.Errorf("Content-Transfer-Encoding base64: %w", err)
		}
		return out, nil
	case "quoted-printable":
		out, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(m.body)))
		if err != nil {
			return nil, fmt.Errorf("Content-Transfer-Encoding quoted-printable: %w", err)
		}
		return out, nil
	case "x-uuencode", "uuencode", "uue", "x-uue":
		return nil, fmt.Errorf("Content-Transfer-Encoding %s is not read: use base64", e)
	}
	return m.body, nil
}
