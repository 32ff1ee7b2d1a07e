package resource

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"
)

// A URI can contain secrets of others: the password of its user information, and a token in
// its query, as in that of a presigned image or of an event receiver. Nobody reads a
// password (RedactURI). Users who may not change a resource read neither the user
// information nor the query (HideURISecrets). Messages, logs, events and the payloads of
// tasks do not show them either, because other users read those.

// hidden replaces the hidden parts of a URI. URIs may contain its characters.
const hidden = "..."

// inURI matches a character of a URI in a text, in JSON text that the text contains as
// well, where slashes and ampersands may be escaped.
const inURI = `(?:[^\s"'<>\\]|\\/|\\u[0-9a-fA-F]{4})`

// The parts of URIs that are hidden. The query of a URI that has been split into host and
// path, as some OEM resources have them, is known by its first parameter; the parameters of
// Redfish begin with a dollar sign, or have no value.
var (
	userInformation = regexp.MustCompile(`(:(?:\\?/){2}|^[^\s"'<>/?#@:\\]+:)[^\s"'<>/?#@\\]*@`)
	queryOfURI      = regexp.MustCompile(`(:(?:\\?/){2}(?:[^\s"'<>?\\]|\\/)+\?)` + inURI + `+`)
	queryOfPath     = regexp.MustCompile(`(\?)[A-Za-z0-9_.~%+-]+=` + inURI + `*`)
)

// HideURISecrets returns a text with the user information and the queries of the URIs in it
// hidden.
func HideURISecrets(text string) string {
	if strings.Contains(text, "@") {
		text = userInformation.ReplaceAllString(text, "${1}"+hidden+"@")
	}
	if strings.Contains(text, "?") {
		text = queryOfURI.ReplaceAllString(text, "${1}"+hidden)
		text = queryOfPath.ReplaceAllString(text, "${1}"+hidden)
	}
	return text
}

// HideURISecretsIn returns a JSON value with the secrets of the URIs in its strings hidden.
func HideURISecretsIn(value any) any {
	switch x := value.(type) {
	case string:
		return HideURISecrets(x)
	case Object:
		o := make(Object, len(x))
		for name, v := range x {
			o[name] = HideURISecretsIn(v)
		}
		return o
	case []any:
		all := make([]any, len(x))
		for i, v := range x {
			all[i] = HideURISecretsIn(v)
		}
		return all
	}
	return value
}

// hasUserInformation matches a body that may have user information.
var hasUserInformation = regexp.MustCompile(`[:/][^\s"/@]*@[^"]`)

// HideURISecretsInBody returns the JSON text of an object with the secrets of the URIs in
// its strings hidden; body itself when there are none.
func HideURISecretsInBody(body []byte) []byte {
	if bytes.IndexByte(body, '?') < 0 && !hasUserInformation.Match(body) {
		return body
	}
	return Encode(HideURISecretsIn(Decode(body)).(Object))
}

// RedactURI returns a text without the password that it contains if it is a URI.
func RedactURI(raw string) string {
	if !strings.Contains(raw, "@") || !strings.Contains(raw, ":") {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "…"
	}
	if _, has := u.User.Password(); !has {
		return raw
	}
	return u.Redacted()
}
