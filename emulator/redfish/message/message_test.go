package message

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRegistriesListEveryMessage(t *testing.T) {
	listed := map[string]bool{} // by registry and key
	for _, r := range Registries {
		for _, e := range r.Entries {
			d, _ := e.Definition()
			id := r.Prefix + "." + d.Key
			if listed[id] || d.Registry != r.Registry {
				t.Errorf("%s is listed twice, or under another registry than its own", id)
			}
			listed[id] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	look := func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		lit, ok := v.Values[0].(*ast.CompositeLit)
		if !ok || len(lit.Elts) != 6 {
			return true
		}
		found++
		registry, key := lit.Elts[0].(*ast.Ident).Name, strings.Trim(lit.Elts[2].(*ast.BasicLit).Value, `"`)
		registry = strings.ToUpper(registry[:1]) + registry[1:]
		if name := v.Names[0].Name; !strings.EqualFold(name, key) && name != registry+key || !listed[registry+"."+key] {
			t.Errorf("%s has the key %s of %s; listed: %t", name, key, registry, listed[registry+"."+key])
		}
		return true
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name == "message" {
			ast.Inspect(f, look)
		}
	}
	if found != len(listed) {
		t.Errorf("%d messages are defined, %d listed", found, len(listed))
	}
}

func TestMessageTextsUseTheirArguments(t *testing.T) {
	for _, r := range Registries {
		for _, e := range r.Entries {
			d, args := e.Definition()
			if d.Text == "" || d.Resolution == "" {
				t.Errorf("%s says nothing", d.Key)
			}
			used := regexp.MustCompile(`%\d`).FindAllString(d.Text, -1)
			slices.Sort(used)
			if got, want := strings.Join(used, ""), strings.Join([]string{"%1", "%2", "%3", "%4", "%5"}[:args], ""); got != want {
				t.Errorf("%s: text has %q, want %q", d.Key, got, want)
			}
		}
	}
}

func TestMessageArgumentsAreSubstitutedOnceAndBounded(t *testing.T) {
	m := PropertyValueNotInList.With("%2", strings.Repeat("ä", maxArg))
	if !strings.Contains(m.Text, "value %2 is") || len(m.Args[1]) > maxArg+3 || !json.Valid(Versions(nil).Error(m)) {
		t.Errorf("message %+v", m)
	}
}

func TestMessageDataFillPlaceholders(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want []string
	}{{nil, []string{`""`, `""`}}, {[]string{"a"}, []string{"a", `""`}}, {[]string{"a", "b", "c"}, []string{"a", "b"}}} {
		if m := Fill(VolumeOK, tt.args...); !cmp.Equal(m.Args, tt.want) || strings.Contains(m.Text, "%") {
			t.Errorf("Fill(%q) = %+v", tt.args, m)
		}
	}
}

func TestMessageIDsUseRegistryVersion(t *testing.T) {
	v := Versions{"Base": "1.8.4", "Update": "1.0.3"}
	for _, tt := range []struct {
		m    Message
		want string
	}{
		{Success.With(), "Base.1.8.Success"}, {TransferFailed.With("a", "b"), "Update.1.0.TransferFailed"},
		{TaskStarted.With("1"), "TaskEvent.1.0.TaskStarted"}, {VolumeRebuilding.With("1", "0"), "StorageDevice.1.5.VolumeRebuilding"},
	} {
		if got := v.ID(tt.m); got != tt.want {
			t.Errorf("ID(%s) = %s, want %s", tt.m.Key, got, tt.want)
		}
	}
}

func TestOldRegistryVersionsUseOldMessages(t *testing.T) {
	for _, tt := range []struct {
		base string
		in   Message
		key  string
		args []string
	}{
		{"1.22.1", ActionParameterValueOutOfRange.With("9", "n", "A"), "ActionParameterValueOutOfRange", []string{"9", "n", "A"}},
		{"1.17.2", ActionParameterValueOutOfRange.With("9", "n", "A"), "ActionParameterValueNotInList", []string{"9", "n", "A"}},
		{"1.4.2", ActionParameterValueOutOfRange.With("9", "n", "A"), "ActionParameterValueFormatError", []string{"9", "n", "A"}},
		{"1.6.3", PropertyValueResourceConflict.With("p", "v", "/x"), "PropertyValueNotInList", []string{"v", "p"}},
		{"1.14.1", QueryParameterUnsupported.With("$x"), "QueryNotSupported", nil},
		{"1.20.2", PasswordIncorrectLength.With(), "PropertyValueError", []string{"Password"}},
		{"1.4.2", PasswordIncorrectLength.With(), "GeneralError", nil},
		{"1.4.2", PreconditionFailed.With(), "GeneralError", nil},
		{"1.4.2", SubscriptionTerminated.With(), "Success", nil},
		{"1.2", PropertyValueOutOfRange.With("9", "n"), "GeneralError", nil},
	} {
		v := Versions{"Base": tt.base}
		got := v.In(tt.in.About("#/x"))
		if got.Key != tt.key || !slices.Equal(got.Args, tt.args) || !cmp.Equal(got.Related, []string{"#/x"}) {
			t.Errorf("Base %s: %s is told as %s %q %q, want %s %q", tt.base, tt.in.Key, got.Key, got.Args, got.Related, tt.key, tt.args)
		}
		if got.Key == "GeneralError" && !strings.Contains(got.Resolution, tt.in.Text) {
			t.Errorf("Base %s: %s is lost in %+v", tt.base, tt.in.Key, got)
		}
	}
}

func TestFormerMessagesPrecedeStandardOnes(t *testing.T) {
	for _, e := range Base {
		d, n := e.Definition()
		m := Fill(e, "a", "b", "c")
		if got := (Versions{"Base": "1.0.0"}).In(m); got.Since > 0 {
			t.Errorf("%s is told as %s, which is no older", d.Key, got.Key)
		}
		instead, ok := older[d.Key]
		if !ok {
			continue
		}
		was, takes := instead.is.Definition()
		if was.Since >= d.Since || takes != len(instead.args) {
			t.Errorf("%s: %s is of 1.%d and takes %d arguments", d.Key, was.Key, was.Since, takes)
		}
		for _, a := range instead.args {
			if a[0] == '%' && int(a[1]-'0') > n {
				t.Errorf("%s has no argument %s", d.Key, a)
			}
		}
	}
}

func TestSeveralMessagesReturnGeneralError(t *testing.T) {
	type head struct {
		Error struct {
			Code string           `json:"code"`
			Info []map[string]any `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	for _, tt := range []struct {
		in   []Message
		code string
	}{
		{[]Message{MalformedJSON.With()}, "Base.1.22.MalformedJSON"},
		{[]Message{PropertyUnknown.With("a").About("#/a"), PropertyMissing.With("b")}, "Base.1.22.GeneralError"},
	} {
		var got head
		if err := json.Unmarshal(Versions(nil).Error(tt.in...), &got); err != nil || got.Error.Code != tt.code || len(got.Error.Info) != len(tt.in) {
			t.Errorf("Error(%v) = %+v (%v), want code %s", tt.in, got, err, tt.code)
		}
	}
}
