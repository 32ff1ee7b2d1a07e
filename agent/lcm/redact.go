package lcm

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// hiddenText replaces a value of a Secret in an output.
const hiddenText = "******"

// shortSecret is the length below which a value is replaced as a word alone: "1" is in
// every output.
const shortSecret = 4

// redactor replaces the values of a Secret in texts, also as JSON, Python, URLs and base64
// have them, and each line of those with several. The zero value replaces nothing.
type redactor struct {
	long   []string         // the longest first: a value may contain another
	short  []*regexp.Regexp // words, with their neighbours on both sides
	widest int              // bytes of the longest form
}

// newRedactor returns the redactor of a Secret's values, by key.
func newRedactor(hidden map[string]string) (r redactor) {
	var forms []string
	for _, value := range hidden {
		all := append([]string{value, strings.TrimSpace(value)}, strings.Split(value, "\n")...)
		for _, one := range all {
			b, err := json.Marshal(one)
			if one == "" || err != nil {
				continue
			}
			escaped := strings.Trim(string(b), `"`)
			forms = append(forms, one, escaped, strings.ReplaceAll(one, `\`, `\\`), strings.ReplaceAll(one, "'", `\'`), strings.ReplaceAll(one, `"`, `\"`),
				unescapeHTML.Replace(escaped), url.QueryEscape(one), base64.StdEncoding.EncodeToString([]byte(one)))
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, form := range slices.Compact(forms) {
		r.widest = max(r.widest, len(form))
		if len(form) < shortSecret {
			r.short = append(r.short, regexp.MustCompile(`(^|[^\pL\pN_])`+regexp.QuoteMeta(form)+`($|[^\pL\pN_])`))
			continue
		}
		r.long = append(r.long, form)
	}
	return r
}

// redact returns a text without the values.
func (r redactor) redact(text string) string {
	for _, form := range r.long {
		text = strings.ReplaceAll(text, form, hiddenText)
	}
	for _, word := range r.short {
		text = word.ReplaceAllString(text, "${1}"+hiddenText+"${2}")
	}
	return text
}

// unescapeHTML reverses the escapes for HTML of encoding/json, which other encoders do not write.
var unescapeHTML = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
