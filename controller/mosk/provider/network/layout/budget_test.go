package layout

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// rendered runs a template as the controller does, with an address for each need.
func rendered(text string) ([]byte, *Template, error) {
	r, err := NewTemplate(templateOf(text), server(), networks)
	if err != nil {
		return nil, nil, err
	}
	needs, err := r.Needs()
	if err != nil {
		return nil, r, err
	}
	addresses := map[Need]netip.Addr{}
	for _, n := range needs {
		addresses[n] = netip.MustParseAddr("10.0.0.7")
	}
	out, err := r.Render(addresses)
	return out, r, err
}

// A template that would run for ever, or take all memory, is refused with its field.
func TestTemplatesHaveABudget(t *testing.T) {
	const head = "version: 2\n"
	const steps, texts = "it takes more than 100000 steps: make its loops shorter", "a text in it has more than 65536 bytes"
	doubling := `{{$s := "xxxxxxxxxxxxxxxx"}}{{range 64}}{{$s = %s $s $s}}{{end}}`
	long := `{{$s := "x"}}{{range 15}}{{$s = print $s $s}}{{end}}` // 32 KiB
	for name, tt := range map[string]struct{ text, want string }{
		"range without end":              {"{{range 1000000000000000}}{{end}}", steps},
		"range of a variable":            {"{{$n := 1000000000}}{{range $n}}{{range $n}}x{{end}}{{end}}", steps},
		"loop that continues":            {"{{range 1000000000}}{{continue}}{{end}}", steps},
		"else of loops":                  {"{{range 1000000000}}{{range 0}}{{else}}{{end}}{{end}}", steps},
		"long body":                      {"{{range 100000}}" + strings.Repeat("{{eq 1 1}}", 1000) + "{{end}}", steps},
		"conditions":                     {"{{range 1000000000}}{{if true}}{{with 1}}{{end}}{{end}}{{end}}", steps},
		"values within each other":       {"{{range 100000}}" + strings.Repeat("{{not (not (not (not true)))}}", 100) + "{{end}}", steps},
		"template that calls itself":     {`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, "more than 64 templates call each other"},
		"templates that call each other": {`{{define "a"}}{{template "b"}}{{template "b"}}{{end}}{{define "b"}}{{template "a"}}{{end}}{{template "a"}}`, "more than 64 templates call each other"},
		"templates that double":          {doublingTemplates(60), steps},
		"width":                          {`{{printf "%0999999d" 1}}`, `printf "%0999999d": widths and precisions of 256 at most`},
		"width of a second verb":         {`{{printf "%d %-257s" 1 "a"}}`, `printf "%-257s": widths`},
		"precision":                      {`{{printf "%.1000f" 1.5}}`, `printf "%.1000f": widths`},
		"width of an argument":           {`{{printf "%*d" 1000000 1}}`, `printf "%*": give the width as a number`},
		"width of argument 1":            {`{{printf "%[1]*d" 1000000}}`, `printf "%*": give the width as a number`},
		"argument printed again":         {long + `{{printf "` + strings.Repeat("%[1]s", 1000) + `" $s}}`, `it may make more than 65536 bytes`},
		"arguments beyond the verbs":     {long + `{{printf "" ` + strings.Repeat("$s ", 100) + `}}`, `it may make more than 65536 bytes`},
		"printf that doubles":            {fmt.Sprintf(doubling, `printf "%s%s"`), `printf "%s%s": it may make more than 65536 bytes`},
		"print that doubles":             {fmt.Sprintf(doubling, "print"), texts},
		"println that doubles":           {fmt.Sprintf(doubling, "println"), texts},
		"html":                           {long + `{{html $s $s $s $s $s $s $s $s $s $s}}`, texts},
		"js":                             {`{{$s := "<"}}{{range 15}}{{$s = print $s $s}}{{end}}{{js $s}}`, texts},
		"urlquery":                       {`{{$s := "<"}}{{range 15}}{{$s = print $s $s}}{{end}}{{urlquery $s}}`, texts},
		"many texts":                     {long + `{{range 100}}{{$t := print $s}}{{end}}`, "the texts that its functions make have more than 1048576 bytes"},
		"long result":                    {"{{range 10000}}" + strings.Repeat("#", 60) + "\n{{end}}", "the configuration has more than 262144 bytes"},
		"many addresses":                 {`{{range $i := 1000}}{{ip (printf "%d:lcm" $i)}}{{end}}`, "it asks for more than 256 addresses"},
		"aliases":                        {"a: &a [" + strings.Repeat("xxxxxxxxxx, ", 1000) + "x]\nb: &b [" + strings.Repeat("*a, ", 1000) + "*a]", "with its aliases the document has more than"},
		"a version of aliases":           {"version: &a [" + strings.Repeat("x", 60000) + "]\nb: [" + strings.Repeat("*a, ", 1000) + "*a]", "with its aliases the document has more than"},
	} {
		if !strings.HasPrefix(tt.text, "version") {
			tt.text = head + tt.text
		}
		const field = `L2Template "default": spec.npTemplate: `
		_, r, err := rendered(tt.text)
		if err == nil || !strings.HasPrefix(err.Error(), field) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error = %.300v, want %s%s", name, err, field, tt.want)
		}
		if r == nil || r.budget.steps > 2*maxSteps || r.budget.texts > maxTexts+maxText || r.budget.result > maxResult+maxText {
			t.Errorf("%s: it has used %+v", name, r.budget)
		}
	}
}

// doublingTemplates returns n templates, each of which calls the next one twice: 2^n calls.
func doublingTemplates(n int) string {
	out := ""
	for i := range n {
		out += fmt.Sprintf(`{{define "t%d"}}{{template "t%d"}}{{template "t%d"}}{{end}}`, i, i+1, i+1)
	}
	return out + fmt.Sprintf(`{{define "t%d"}}{{end}}{{template "t0"}}`, n)
}

// The budget leaves the meaning of a template alone.
func TestBudgetLeavesTemplatesAsTheyAre(t *testing.T) {
	text := `{{define "nic"}}  {{nic .}}:
    match: {macaddress: "{{mac .}}"}
    set-name: {{nic .}}
{{end}}version: 2
ethernets:
{{range $i := 2}}{{if eq $i 1}}{{else}}{{template "nic" $i}}{{end}}{{end}}{{range 9}}{{break}}{{end}}{{with 1}}{{template "nic" .}}{{end}}{{block "more" 0}}    mtu: {{printf "%05.1f|%-3d|%q|%%" 1.5 7 "a" | len}}{{end}}
`
	got, _, err := rendered(text)
	const want = `{"ethernets":{"eno1":{"match":{"macaddress":"02:00:00:00:00:aa"},"set-name":"eno1"},` +
		`"enp1s0":{"match":{"macaddress":"02:00:00:00:00:01"},"mtu":15,"set-name":"enp1s0"}},"version":2}`
	if err != nil || string(got) != want {
		t.Errorf("Render() = %s, %v, want %s", got, err, want)
	}
}

// A template cannot reset its budget by the functions that count it.
func TestTemplateCannotCallTheBudget(t *testing.T) {
	for _, name := range []string{stepFunction, enterFunction, leaveFunction} {
		if _, _, err := rendered("version: 2\n{{" + name + " -1000000}}"); err == nil || !strings.Contains(err.Error(), "function \""+name+"\" not defined") {
			t.Errorf("%s: error = %v, want that it is not defined", name, err)
		}
	}
}

// A message that quotes the template is short: objects have it in their statuses.
func TestMessageOfATemplateIsShort(t *testing.T) {
	_, _, err := rendered(`version: 2` + "\n" + `{{ip "0:` + strings.Repeat("x", 60000) + `"}}`)
	if err == nil || len(err.Error()) > maxError+100 || !strings.Contains(err.Error(), "npTemplate:2:2: executing") {
		t.Errorf("the error has %d bytes, want at most %d: %.300v", len(err.Error()), maxError+100, err)
	}
}
