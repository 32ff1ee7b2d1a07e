package message

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestBaseListsEveryMessage(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "base.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, e := range Base {
		d, _ := e.Definition()
		if slices.Contains(listed, d.Key) {
			t.Errorf("%s is listed twice", d.Key)
		}
		listed = append(listed, d.Key)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		lit, ok := v.Values[0].(*ast.CompositeLit)
		if kind, _ := lit.Type.(*ast.Ident); !ok || kind == nil {
			return true
		}
		key := strings.Trim(lit.Elts[0].(*ast.BasicLit).Value, `"`)
		if name := v.Names[0].Name; !strings.EqualFold(name, key) || !slices.Contains(listed, key) {
			t.Errorf("%s has the key %s; listed: %t", name, key, slices.Contains(listed, key))
		}
		return true
	})
}

func TestTextsUseTheirArguments(t *testing.T) {
	for _, e := range Base {
		d, args := e.Definition()
		if d.Text == "" || d.Resolution == "" {
			t.Errorf("%s says nothing", d.Key)
		}
		used := regexp.MustCompile(`%\d`).FindAllString(d.Text, -1)
		slices.Sort(used)
		if got, want := strings.Join(used, ""), strings.Join([]string{"%1", "%2", "%3"}[:args], ""); got != want {
			t.Errorf("%s: text has %q, want %q", d.Key, got, want)
		}
	}
}

func TestArgumentsAreFilledInOnceAndBounded(t *testing.T) {
	m := PropertyValueNotInList.With("%2", strings.Repeat("ä", maxArg))
	if !strings.Contains(m.Text, "value %2 is") || len(m.Args[1]) > maxArg+3 || !json.Valid(Error("Base.1.22", m)) {
		t.Errorf("message %+v", m)
	}
}

func TestSeveralMessagesStandUnderAGeneralError(t *testing.T) {
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
		if err := json.Unmarshal(Error("Base.1.22", tt.in...), &got); err != nil || got.Error.Code != tt.code || len(got.Error.Info) != len(tt.in) {
			t.Errorf("Error(%v) = %+v (%v), want code %s", tt.in, got, err, tt.code)
		}
	}
}
