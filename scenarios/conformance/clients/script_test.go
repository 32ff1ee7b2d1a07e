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

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// script is a running program of testdata. It reads requests and writes responses,
// each a line of JSON.
type script struct {
	mu     sync.Mutex
	in     io.WriteCloser
	out    *bufio.Reader
	stderr stderr
}

// startScript starts a script that runs until the test ends. It needs a Python module.
func startScript(t *testing.T, file, module string) *script {
	t.Helper()
	python := prerequisites.Need(t, module)
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
