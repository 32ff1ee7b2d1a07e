package clients

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestRedfishtoolManagesEveryModel(t *testing.T) {
	s := startScript(t, "testdata/withredfishtool.py", "redfishtoollib", "redfishtool")
	everyModel(t, "redfishtool", everything, func(b *bench) client {
		x := &tool{script: s}
		x.byHand = byHand{b: b, does: x.raw}
		return x
	})
}

// tool is redfishtool. It has commands for systems, and is told the rest by hand.
type tool struct {
	byHand
	script *script
}

// run is what a command prints: what the BMC has answered.
func (x *tool) run(args ...string) (map[string]any, error) {
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

func (x *tool) inventory() (inventory, error) {
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

func (x *tool) reset(kind string) error {
	_, err := x.run("Systems", "-1", "reset", kind)
	return err
}

// boot: it has no word for the mode.
func (x *tool) boot(target, _ string) error {
	_, err := x.run("Systems", "-1", "setBootOverride", "Once", target)
	return err
}

func (x *tool) raw(method, uri string, body any) (map[string]any, error) {
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
