package clients

import (
	"errors"
	"testing"
)

func TestSushyManagesEveryModel(t *testing.T) {
	everyModel(t, "sushy", everything, func(b *bench) client {
		s := &fishPaste{script: startScript(b.T, "testdata/withsushy.py", "sushy", "python3-sushy")}
		user, password := b.lab.Credentials(b.server)
		if err := s.do(nil, "open", b.server.URL(), user, password, b.lab.CAFile()); err != nil {
			b.Fatal(err)
		}
		return s
	})
}

// fishPaste is sushy.
type fishPaste struct{ script *script }

func (s *fishPaste) do(result any, question ...any) error {
	answer := struct {
		Result any
		Error  string
	}{Result: result}
	if err := s.script.ask(question, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

func (s *fishPaste) inventory() (is inventory, err error) {
	err = s.do(&is, "inventory")
	return is, err
}

func (s *fishPaste) settings() (all map[string]any, err error) {
	err = s.do(&all, "settings")
	return all, err
}

func (s *fishPaste) raw(method, uri string, body any) (out map[string]any, err error) {
	err = s.do(&out, "raw", method, uri, body)
	return out, err
}

func (s *fishPaste) reset(kind string) error            { return s.do(nil, "reset", kind) }
func (s *fishPaste) boot(target, mode string) error     { return s.do(nil, "boot", target, mode) }
func (s *fishPaste) insert(image string) error          { return s.do(nil, "insert", image) }
func (s *fishPaste) eject() error                       { return s.do(nil, "eject") }
func (s *fishPaste) set(name, value, when string) error { return s.do(nil, "set", name, value, when) }
func (s *fishPaste) mirror(name string) error           { return s.do(nil, "mirror", name) }
func (s *fishPaste) unmake() error                      { return s.do(nil, "unmake") }
