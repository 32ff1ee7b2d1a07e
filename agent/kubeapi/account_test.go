package kubeapi

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// memory is a system with some files.
type memory map[string]string

// ReadFile implements Files.
func (m memory) ReadFile(name string) ([]byte, error) {
	if text, ok := m[name]; ok {
		return []byte(text), nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

func TestCommandReadsItsFile(t *testing.T) {
	const good = "server: https://192.0.2.1:6443\ncaFile: /ca\ntokenFile: /token\nmore: yes\n"
	c := Command{Name: "lab-agent test", File: "/etc/test.yaml", Fields: "all"}
	files := memory{"/etc/test.yaml": good, "/other": "server: https://192.0.2.2\n", "/bad": "server: [\n"}
	for _, tt := range []struct {
		name string
		args []string
		want string // server, or in the error
	}{
		{"by default", nil, "https://192.0.2.1:6443"},
		{"by the flag", []string{"--config", "/other"}, "https://192.0.2.2"},
		{"a file that is not there", []string{"--config", "/nowhere"}, "configuration: /nowhere"},
		{"a file that is no YAML", []string{"--config", "/bad"}, "/bad: yaml"},
		{"an argument", []string{"x"}, `argument "x": lab-agent test takes flags only`},
		{"an unknown flag", []string{"--y"}, "unknown flag"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a Account
			name, err := c.Read(tt.args, files, &a)
			if got := fmt.Sprint(a.Server, err); !strings.Contains(got, tt.want) || err == nil && files[name] == "" {
				t.Errorf("Read(%q) = %q, %+v, %v: want %q", tt.args, name, a, err, tt.want)
			}
		})
	}
}

func TestAccountReportsAllMistakes(t *testing.T) {
	good := Account{Server: "https://192.0.2.1:6443", CAFile: "/ca", TokenFile: "/token"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Account{{}, {Server: "http://192.0.2.1", CAFile: "ca", TokenFile: "token"}, {Server: "https://"}} {
		err := bad.Validate()
		for _, field := range []string{"server", "caFile", "tokenFile"} {
			if err == nil || !strings.Contains(err.Error(), field+` "`) {
				t.Errorf("%+v: %v, want a mistake in %s", bad, err, field)
			}
		}
	}
}
