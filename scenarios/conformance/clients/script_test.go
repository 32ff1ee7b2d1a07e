package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
)

// pythons are the interpreters to try. Debian's packages are of the second one,
// which need not be first in the path.
var pythons = []string{"python3", "/usr/bin/python3"}

var (
	found   = map[string]string{} // interpreters by module; "" is none
	finding sync.Mutex
)

// pythonWith returns an interpreter that has a module, or "".
func pythonWith(module string) string {
	finding.Lock()
	defer finding.Unlock()
	if _, known := found[module]; !known {
		found[module] = ""
		for _, python := range pythons {
			if exec.Command(python, "-c", "import "+module).Run() == nil {
				found[module] = python
				break
			}
		}
	}
	return found[module]
}

// script is a running program of testdata. It reads requests and writes responses,
// each a line of JSON.
type script struct {
	mu     sync.Mutex
	in     io.WriteCloser
	out    *bufio.Reader
	stderr stderr
}

// startScript starts a script that runs until the test ends. It needs a Python
// module, which is in a package of Debian.
func startScript(t *testing.T, file, module, debian string) *script {
	t.Helper()
	if python := pythonWith(module); python != "" {
		s := &script{}
		cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", file)
		cmd.Stderr = &s.stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.in, s.out = in, bufio.NewReader(out)
		t.Cleanup(func() {
			_ = in.Close()
			_ = cmd.Wait()
		})
		return s
	}
	skipMissing(t, "Python has no module "+module+": Debian's package "+debian+" has it")
	return nil
}

// ask sends a request and reads the response.
func (s *script) ask(question, answer any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	line, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("script: %w: %s", err, s.stderr.String())
	}
	line, err = s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("script: %w: %s", err, s.stderr.String())
	}
	return json.Unmarshal(line, answer)
}

// stderr is what a script has printed to its standard error.
type stderr struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
