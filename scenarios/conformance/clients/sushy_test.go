package clients

import (
	"errors"
	"testing"
)

func TestSushyManagesEveryModel(t *testing.T) {
	runOnModels(t, "sushy", allOperations, func(b *testServer) client {
		s := &sushyClient{script: startScript(b.T, "testdata/withsushy.py", "sushy")}
		user, password := b.lab.Credentials(b.server)
		if err := s.do(nil, "open", b.server.URL(), user, password, b.lab.CAFile()); err != nil {
			b.Fatal(err)
		}
		return s
	})
}

// sushyClient implements client with sushy.
type sushyClient struct{ script *script }

func (s *sushyClient) do(result any, question ...any) error {
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

func (s *sushyClient) inventory() (is inventory, err error) {
	err = s.do(&is, "inventory")
	return is, err
}

func (s *sushyClient) settings() (all map[string]any, err error) {
	err = s.do(&all, "settings")
	return all, err
}

func (s *sushyClient) raw(method, uri string, body any) (out map[string]any, err error) {
	err = s.do(&out, "raw", method, uri, body)
	return out, err
}

func (s *sushyClient) reset(kind string) error            { return s.do(nil, "reset", kind) }
func (s *sushyClient) boot(target, mode string) error     { return s.do(nil, "boot", target, mode) }
func (s *sushyClient) insert(image string) error          { return s.do(nil, "insert", image) }
func (s *sushyClient) eject() error                       { return s.do(nil, "eject") }
func (s *sushyClient) set(name, value, when string) error { return s.do(nil, "set", name, value, when) }
func (s *sushyClient) createMirror(name string) error     { return s.do(nil, "mirror", name) }
func (s *sushyClient) deleteVolumes() error               { return s.do(nil, "unmake") }
