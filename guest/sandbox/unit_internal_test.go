package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandLine(t *testing.T) {
	for line, want := range map[string]struct {
		words  []string
		ignore bool
		err    bool
	}{
		"/bin/a b":              {[]string{"/bin/a", "b"}, false, false},
		"-/bin/a":               {[]string{"/bin/a"}, true, false},
		"+-/bin/a":              {[]string{"/bin/a"}, true, false},
		"@/bin/a name b":        {[]string{"/bin/a", "b"}, false, false},
		"-@/bin/a name":         {[]string{"/bin/a"}, true, false},
		"!!:/bin/a 'b c' \"d\"": {[]string{"/bin/a", "b c", "d"}, false, false},
		"-":                     {nil, false, true},
		"@":                     {nil, false, true},
		"":                      {nil, false, true},
		"- ":                    {nil, false, true},
		`-""`:                   {nil, false, true},
	} {
		words, ignore, err := commandLine(line)
		if diff := cmp.Diff(want.words, words); diff != "" || ignore != want.ignore || (err != nil) != want.err {
			t.Errorf("commandLine(%q) = ignore %t, error %v, want %t, %t; (-want +got):\n%s", line, ignore, err, want.ignore, want.err, diff)
		}
	}
}

// FuzzUnit reads unit files of any content.
func FuzzUnit(f *testing.F) {
	f.Add("[Unit]\nAfter=a b\n[Service]\nExecStart=-\nRestartSec=1min 5s\nEnvironment=\"a=b c\" d\n[Install]\nWantedBy=multi-user.target\n")
	f.Add("[\n=\n\\\n]\nExecStart=@@\n")
	f.Fuzz(func(t *testing.T, text string) {
		u := parseUnit("x.service", "etc/systemd/system/x.service", text)
		for key, values := range u.keys {
			u.duration(key, startInterval)
			u.words(key)
			u.is(key)
			for _, v := range values {
				if words, _, err := commandLine(v); err == nil && (len(words) == 0 || words[0] == "") {
					t.Errorf("commandLine(%q) = %q without a program", v, words)
				}
			}
		}
		u.installs()
	})
}
