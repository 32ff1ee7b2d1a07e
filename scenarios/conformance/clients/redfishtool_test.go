package clients

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestRedfishtoolManagesEveryModel(t *testing.T) {
	s := startScript(t, "testdata/withredfishtool.py", "redfishtoollib")
	runOnModels(t, "redfishtool", allOperations, func(b *testServer) client {
		x := &redfishtoolClient{script: s}
		x.rawClient = rawClient{b: b, send: x.raw}
		return x
	})
}

// redfishtoolClient implements client with redfishtool, which has commands for
// systems, and raw requests for the rest.
type redfishtoolClient struct {
	rawClient
	script *script
}

// run runs a command and returns the response that it prints.
func (x *redfishtoolClient) run(args ...string) (map[string]any, error) {
	user, password := x.b.lab.Credentials(x.b.server)
	base := []string{"-r", x.b.server.Address().String(), "-u", user, "-p", password, "-S", "Always", "-N"} // -N: it does not wait for tasks
	var a struct {
		Printed string
		Status  int
	}
	if err := x.script.ask(append(base, args...), &a); err != nil {
		return nil, err
	}
	if a.Status != 0 {
		return nil, fmt.Errorf("redfishtool %s: exit %d\n%.600s", strings.Join(args, " "), a.Status, a.Printed)
	}
	var body map[string]any
	if i := strings.IndexByte(a.Printed, '{'); i >= 0 {
		if err := json.Unmarshal([]byte(a.Printed[i:]), &body); err != nil {
			return nil, fmt.Errorf("redfishtool %s: %w\n%.600s", strings.Join(args, " "), err, a.Printed)
		}
	}
	return body, nil
}

func (x *redfishtoolClient) inventory() (inventory, error) {
	s, err := x.run("Systems", "-1", "get")
	if err != nil {
		return inventory{}, err
	}
	for _, more := range []string{"Chassis", "Managers"} {
		if _, err := x.run(more, "-1", "get"); err != nil {
			return inventory{}, err
		}
	}
	return inventory{Serials: []string{fmt.Sprint(s["SerialNumber"]), fmt.Sprint(s["SKU"])}, Power: fmt.Sprint(s["PowerState"])}, nil
}

func (x *redfishtoolClient) reset(kind string) error {
	_, err := x.run("Systems", "-1", "reset", kind)
	return err
}

// boot sets a target without a mode, for which redfishtool has no option.
func (x *redfishtoolClient) boot(target, _ string) error {
	_, err := x.run("Systems", "-1", "setBootOverride", "Once", target)
	return err
}

func (x *redfishtoolClient) raw(method, uri string, body any) (map[string]any, error) {
	args := []string{"raw", method, uri}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		args = append(args, "-d", string(text))
	}
	return x.run(args...)
}
