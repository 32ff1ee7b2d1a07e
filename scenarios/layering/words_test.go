package layering

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestNoPrivateWords keeps private words from coming back as identifiers.
func TestNoPrivateWords(t *testing.T) {
	found, err := CheckWords(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	open, unused := Unexcused(found, allowed)
	for _, w := range open {
		t.Error(w)
	}
	for _, entry := range unused {
		t.Errorf("%s: nothing is called that any longer: remove the entry from allowed", entry)
	}
}

// TestSeededPrivateWords declares a private word in each way that Go has.
func TestSeededPrivateWords(t *testing.T) {
	for src, want := range map[string]string{
		"package face":                                             "face",
		"package a; func tellAll() {}":                             "tellAll",
		"package a; func (t T) Told() {}":                          "Told",
		"package a; type Saying struct{}":                          "Saying",
		"package a; type T struct{ Own int }":                      "Own",
		"package a; type T struct{ OwnTLS, x int }":                "OwnTLS",
		"package a; type I interface{ TellBMC() }":                 "TellBMC",
		"package a; var kept_2 = 1":                                "kept_2",
		"package a; const whole = 1":                               "whole",
		"package a; func f(doors int) {}":                          "doors",
		"package a; func f() (said string) { return }":             "said",
		"package a; func f() { isKept := 1; _ = isKept }":          "isKept",
		"package a; func f() { for _, face := range x() {} }":      "face",
		"package a; func f() { realm: for { break realm } }":       "realm",
		"package a; import mail \"net/mail\"":                      "mail",
		"package a; func f(func(anew bool)) {}":                    "anew",
		"package a; func f() { var mailSocket int }":               "mailSocket",
		"package a; func f() { known, chown, owner := 1, 2, 3 }":   "",
		"package a; type Interface struct{ Surface, Retell int }":  "",
		"package a; func f() { b.told(); x.Own = 1; y.whole = 2 }": "", // declared elsewhere
		"package a // told, said, kept\nvar s = \"told\"":          "",
	} {
		got, err := wordsIn("agent/sys/a.go", []byte(src))
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		name := ""
		if len(got) > 0 {
			name = got[0].Name
		}
		if name != want || len(got) > 1 {
			t.Errorf("%s: found %v, want %q", src, got, want)
		}
	}
}

func TestIdentifiersAreSplitIntoWords(t *testing.T) {
	for name, want := range map[string][]string{
		"ownTLSConfig": {"own", "tls", "config"}, "Told": {"told"}, "HTTPURI": {"httpuri"}, "x": {"x"},
		"IPMIMail": {"ipmi", "mail"}, "unknown": {"unknown"}, "a_whole2Own": {"a", "whole", "own"},
	} {
		if diff := cmp.Diff(want, parts(name)); diff != "" {
			t.Errorf("parts(%q) (-want +got):\n%s", name, diff)
		}
	}
}

func TestPrivateWordsAreExcusedByNameAndPackage(t *testing.T) {
	tree := fstest.MapFS{
		"agent/sys/a.go":          {Data: []byte("package sys\nvar own, told, face = 1, 2, 3\n")},
		"agent/sys/testdata/b.go": {Data: []byte("package b\nvar own = 1\n")},
		"agent/a.go":              {Data: []byte("package agent\nvar told = 1\n")},
	}
	found, err := CheckWords(tree)
	if err != nil {
		t.Fatal(err)
	}
	open, unused := Unexcused(found, []Allowed{{In: "agent/...", Name: "told"}, {In: "agent/sys", Name: "own"}, {In: "agent/...", Name: "kept"}, {In: "agent", Name: "own"}})
	want := []Word{{Package: "agent/sys", File: "agent/sys/a.go", Line: 2, Name: "face", Word: "face"}}
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"agent/... kept", "agent own"}, unused); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
}
