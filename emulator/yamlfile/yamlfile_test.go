package yamlfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

type host struct {
	Profile string `json:"profile"`
	Count   int8   `json:"count"`
	Suites  []byte
	Delay   time.Duration
	On      bool
	Ratio   float64
	Any     any
	Codes   map[byte]string
	Next    *host
	Oldest  uint64
	hidden  int //nolint:unused // that unexported fields are no keys
	Hook    func()
	SystemID, BMC,
	NICs string
}

type words []string

func (w *words) UnmarshalScalar(text string) error {
	*w = words{text}
	return nil
}

type version struct{ text string }

func (v *version) UnmarshalText(b []byte) error {
	if v.text = string(b); !strings.Contains(v.text, ".") {
		return errors.New("needs a dot")
	}
	return nil
}

type lab struct {
	Name    string
	Hosts   []host
	Words   words
	Version version
}

func decode(t *testing.T, text string) (lab, error) {
	t.Helper()
	f, err := yamlfile.Read("f.yaml", []byte(text), "name: x")
	if err != nil {
		return lab{}, err
	}
	f.Renamed(map[string]map[string]string{"yamlfile_test.host": {"profil": "profile"}})
	var l lab
	err = f.Decode(&l)
	return l, err
}

func TestDecodeReadsEveryKindOfValue(t *testing.T) {
	got, err := decode(t, `
name: 7
words: one
version: 1.2
hosts:
- &a {profile: x, count: -128, suites: [17, 0x11], delay: 90s, on: yes, ratio: 2, oldest: 18446744073709551615}
- {<<: *a, count: 2, any: {a: [1, 1.5, null, "2", true, 2026-03-14]}, codes: {1: one}, next: {systemID: s, bmc: b, nics: n}}
- *a
`)
	if err != nil {
		t.Fatal(err)
	}
	first := host{Profile: "x", Count: -128, Suites: []byte{17, 17}, Delay: 90 * time.Second, On: true, Ratio: 2, Oldest: 1<<64 - 1}
	second := first
	second.Count, second.Codes = 2, map[byte]string{1: "one"}
	second.Any = map[string]any{"a": []any{1, 1.5, nil, "2", true, "2026-03-14"}}
	second.Next = &host{SystemID: "s", BMC: "b", NICs: "n"}
	want := lab{Name: "7", Words: words{"one"}, Version: version{"1.2"}, Hosts: []host{first, second, first}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(host{}, version{})); d != "" {
		t.Errorf("Decode (-want +got):\n%s", d)
	}
}

func TestDecodeKeepsWhatTheFileDoesNotName(t *testing.T) {
	f, err := yamlfile.Read("f.yaml", []byte("hosts: null\nname: b\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	l := lab{Name: "a", Words: words{"w"}, Hosts: []host{{}}}
	if err := f.Decode(&l); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(lab{Name: "b", Words: words{"w"}}, l, cmp.AllowUnexported(host{}, version{})); d != "" {
		t.Errorf("Decode (-want +got):\n%s", d)
	}
}

func TestMistakesAreNamedByFileLineAndField(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"empty":            {"", "f.yaml: is empty: begin with name: x"},
		"not YAML":         {"name: [\n", "f.yaml:1: is not YAML: "},
		"two documents":    {"name: a\n---\nname: b\n", "f.yaml: holds more than one document"},
		"unknown field":    {"hosts:\n- prfile: x\n", "f.yaml:2: hosts[0].prfile: there is no such field: use one of profile, count,"},
		"nearest field":    {"hosts:\n- prfile: x\n", "Did you mean profile?"},
		"renamed field":    {"hosts:\n- profil: x\n", "f.yaml:2: hosts[0].profil: is now called profile"},
		"unexported":       {"hosts:\n- hidden: 1\n", "hosts[0].hidden: there is no such field"},
		"function":         {"hosts:\n- hook: 1\n", "hosts[0].hook: there is no such field"},
		"duplicate key":    {"name: a\nname: b\n", "f.yaml:2: name: is there already in line 1"},
		"text for integer": {"hosts:\n- {profile: x,\n   count: two}\n", `f.yaml:3: hosts[0].count: "two": must be an integer from -128 to 127`},
		"out of range":     {"hosts: [{count: 128}]\n", `f.yaml:1: hosts[0].count: "128": must be an integer from -128 to 127`},
		"fraction":         {"hosts: [{count: 1.5}]\n", `hosts[0].count: "1.5": must be an integer`},
		"quoted integer":   {"hosts: [{count: '1'}]\n", `hosts[0].count: "1": must be an integer`},
		"negative byte":    {"hosts: [{suites: [-1]}]\n", `hosts[0].suites[0]: "-1": must be an integer from 0 to 255`},
		"not a number":     {"hosts: [{ratio: .nan}]\n", `hosts[0].ratio: ".nan": must be a number`},
		"boolean":          {"hosts: [{on: perhaps}]\n", `hosts[0].on: "perhaps": must be true or false`},
		"duration":         {"hosts: [{delay: 90}]\n", `hosts[0].delay: "90": must be a duration, such as 90s`},
		"list":             {"hosts: 3\n", `f.yaml:1: hosts: "3": must be a list`},
		"mapping":          {"hosts:\n- [1]\n", "f.yaml:2: hosts[0]: must be a mapping, such as {name: value}, not a list"},
		"text":             {"name: {a: b}\n", "f.yaml:1: name: must be a text, not a mapping"},
		"top":              {"- a\n", "f.yaml:1: must be a mapping"},
		"own type":         {"version: 7\n", "f.yaml:1: version: needs a dot"},
		"key of a map":     {"hosts: [{codes: {256: x}}]\n", `hosts[0].codes.256: "256": must be an integer from 0 to 255`},
		"infinite JSON":    {"hosts: [{any: .inf}]\n", `hosts[0].any: ".inf": must be a number as JSON has it`},
		"endless alias":    {"hosts: &a [{any: *a}]\n", "nested more than 60 deep"},
	} {
		_, err := decode(t, tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want one with %q", name, err, tt.want)
		}
	}
}

func TestAllMistakesAreListedAtOnce(t *testing.T) {
	_, err := decode(t, "nam: x\nhosts:\n- {count: two}\n- {on: 1}\n")
	if got := strings.Count(err.Error(), "\n") + 1; got != 3 {
		t.Errorf("%d mistakes, want 3:\n%v", got, err)
	}
	_, err = decode(t, "hosts: ["+strings.Repeat("{count: x},", 1000)+"]\n")
	if got := strings.Count(err.Error(), "\n") + 1; got != 51 || !strings.HasSuffix(err.Error(), "\nf.yaml: and 950 more mistakes") {
		t.Errorf("%d lines for a thousand mistakes, want 51, and the last to count the others:\n%v", got, err)
	}
	_, err = decode(t, "hosts: ["+strings.Repeat("{count: x},", 51)+"]\n")
	if !strings.HasSuffix(err.Error(), "\nf.yaml: and 1 more mistake") {
		t.Errorf("51 mistakes: %v", err)
	}
	_, err = decode(t, "hosts: ["+strings.Repeat("{count: x},", 50)+"]\n")
	if got := strings.Count(err.Error(), "\n") + 1; got != 50 || strings.Contains(err.Error(), "more mistake") {
		t.Errorf("%d lines for 50 mistakes:\n%v", got, err)
	}
}

// Findings are cut with the mistakes of the text, and counted. A field that could not be decoded has
// none, even where its own mistake is not listed.
func TestMistakesBeyondTheListAreCounted(t *testing.T) {
	const text = "hosts: [%s]\n"
	var found []error
	for i := range 60 {
		found = append(found, yamlfile.Errorf(fmt.Sprintf("hosts[%d].count", i), "0: must be 1 or more"))
	}
	for name, tt := range map[string]struct {
		hosts string
		last  string
	}{
		"findings":           {strings.Repeat("{count: 0},", 60), "f.yaml: and 10 more mistakes"},
		"both":               {strings.Repeat("{count: x},", 30) + strings.Repeat("{count: 0},", 30), "f.yaml: and 10 more mistakes"},
		"mistakes of a text": {strings.Repeat("{count: x},", 60), "f.yaml: and 10 more mistakes"},
	} {
		f, err := yamlfile.Read("f.yaml", fmt.Appendf(nil, text, tt.hosts), "")
		if err != nil {
			t.Fatal(err)
		}
		var v lab
		all := strings.Split(f.All(f.Decode(&v), found...).Error(), "\n")
		if len(all) != 51 || all[50] != tt.last {
			t.Errorf("%s: %d lines, the last is %q; want 51 and %q", name, len(all), all[len(all)-1], tt.last)
		}
	}
}

// bomb returns a small file whose aliases stand for 8^10 values.
func bomb() string {
	var b strings.Builder
	b.WriteString("hosts:\n- any:\n  - &a [1,1,1,1,1,1,1,1]\n")
	for c := byte('b'); c < 'l'; c++ {
		p := "*" + string(c-1)
		b.WriteString("  - &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat(p+",", 8), ",") + "]\n")
	}
	return b.String()
}

func TestAliasesCannotMakeAFileLarge(t *testing.T) {
	if _, err := decode(t, bomb()); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Decode of a bomb = %v", err)
	}
}

func TestLocateFindsTheClosestField(t *testing.T) {
	f, err := yamlfile.Read("f.yaml", []byte("name: a\nhosts:\n- profile: x\n- &b\n  count: 2\n  codes: {a.b: c}\n- *b\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]int{
		"": 0, "name": 1, "hosts": 2, "hosts[0]": 3, "hosts[0].count": 3, "hosts[1].count": 5, "hosts[2].count": 5, "hosts[9]": 2, "hosts[1].codes.a.b": 6, "none": 0,
	} {
		e := yamlfile.Errorf(field, "is wrong")
		wrapped := errors.Join(errors.New("other"), errors.Join(e))
		if err := f.Locate(wrapped); err != wrapped || //nolint:errorlint // it returns its argument
			e.Line != want || e.File != "f.yaml" {
			t.Errorf("Locate(%q) = %s:%d, want line %d", field, e.File, e.Line, want)
		}
	}
	if f.Has("hosts[0].count") || !f.Has("hosts[2].count") || f.Has("hosts[9].count") {
		t.Error("Has does not know which fields there are")
	}
}

func TestTakeHidesAKeyFromDecode(t *testing.T) {
	f, err := yamlfile.Read("f.yaml", []byte("base: generic\nname: a\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	var base string
	var l lab
	if err := errors.Join(f.Take("base", &base), f.Decode(&l)); err != nil || base != "generic" || l.Name != "a" {
		t.Errorf("base %q, name %q, %v", base, l.Name, err)
	}
}

// Mistakes in values are told with those of the form, by line, and none of a field without a value.
func TestAllMistakesAreTold(t *testing.T) {
	f, err := yamlfile.Read("f.yaml", []byte("name: a\nhosts:\n- {count: x}\n- {count: 1, colour: red}\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	var l lab
	err = f.All(f.Decode(&l), yamlfile.Errorf("hosts[0].count", "0: must be 1 or more"), errors.Join(yamlfile.Errorf("hosts[1].count", "1: is odd"), yamlfile.Errorf("name", "%q: is short", "a")), nil)
	want := []string{`f.yaml:1: name: "a": is short`, `f.yaml:3: hosts[0].count: "x": must be an integer`, `f.yaml:4: hosts[1].colour: there is no such field`, `f.yaml:4: hosts[1].count: 1: is odd`}
	lines := strings.Split(fmt.Sprint(err), "\n")
	for i, w := range want {
		if len(lines) != len(want) || !strings.HasPrefix(lines[i], w) {
			t.Fatalf("All() =\n%v\nwant lines that begin with\n%s", err, strings.Join(want, "\n"))
		}
	}
	if err := f.All(nil, nil); err != nil {
		t.Errorf("All() of no mistakes = %v", err)
	}
}

func TestWriteIsReadBack(t *testing.T) {
	in := lab{Name: "yes", Hosts: []host{{Profile: "1", Suites: []byte{3}, Delay: time.Minute, On: true, Ratio: 2, Any: map[string]any{"a": []any{1, 2.5, nil, "x"}}, Codes: map[byte]string{7: "seven"}, Next: &host{Count: -1}}}}
	b, err := yamlfile.Write(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := decode(t, string(b))
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if d := cmp.Diff(in, out, cmp.AllowUnexported(host{}, version{})); d != "" {
		t.Errorf("read back (-want +got):\n%s\n%s", d, b)
	}
}

// FuzzDecode holds that no text panics, and that every error names the file.
func FuzzDecode(f *testing.F) {
	f.Add("hosts: [&a {count: 2}, *a, {<<: *a}]\n")
	f.Add("hosts: &a [*a]\n")
	f.Add("<<: {<<: [{name: a}]}\n")
	f.Add("? {a: b}\n: c\n")
	f.Add(bomb())
	f.Fuzz(func(t *testing.T, text string) {
		_, err := decode(t, text)
		if err == nil {
			return
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, "f.yaml") {
				t.Errorf("%q does not name the file", line)
			}
		}
	})
}
