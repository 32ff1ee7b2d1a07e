package lcm

import (
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

// redact replaces the values of a Secret in a text, also as JSON, Python, URLs and base64
// have them, and each line of those with several.
func redact(text string, hidden map[string]string) string {
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
	// The longest first: a value may contain another.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	for _, form := range slices.Compact(forms) {
		if len(form) < shortSecret {
			text = regexp.MustCompile(`(^|[^\pL\pN_])`+regexp.QuoteMeta(form)+`($|[^\pL\pN_])`).ReplaceAllString(text, "${1}"+hiddenText+"${2}")
			continue
		}
		text = strings.ReplaceAll(text, form, hiddenText)
	}
	return text
}

// unescapeHTML reverses the escapes for HTML of encoding/json, which other encoders do not write.
var unescapeHTML = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
