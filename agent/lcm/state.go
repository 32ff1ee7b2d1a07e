package lcm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// state is the content of stateFile, which outlives the process.
type state struct {
	// SSHKeys are the lines that the agent has written to authorized_keys. Others are not
	// its to remove.
	SSHKeys []string `json:"sshKeys,omitempty"`
	// Args are those of spec.agentConfig, after an upgrade.
	Args []string `json:"args,omitempty"`
	// RebootFrom is the ID of the boot in which the agent has asked for a reboot.
	RebootFrom string `json:"rebootFrom,omitempty"`
	// Results are those that the API has not taken yet: the items have run.
	Results map[string]lcmv1.StateItemStatus `json:"results,omitempty"`
}

// loadState reads the state; without a file it is empty. After an error the agent goes on with
// an empty state, and determines its content again or repeats the work.
func loadState(files Files) (state, error) {
	var s state
	b, err := files.ReadFile(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return state{}, fmt.Errorf("lcm: %s: %w", stateFile, err)
	}
	return s, nil
}

// Args returns the arguments that spec.agentConfig has given to the agent when it was
// upgraded.
func Args(files Files) ([]string, error) {
	s, err := loadState(files)
	return s.Args, err
}

// change changes the state and writes it if it differs.
func (a *agent) change(f func(*state)) error {
	next := a.state
	next.Results = map[string]lcmv1.StateItemStatus{}
	for name, s := range a.state.Results {
		next.Results[name] = s
	}
	f(&next)
	if len(next.Results) == 0 {
		next.Results = nil
	}
	if reflect.DeepEqual(next, a.state) {
		return nil
	}
	b, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("lcm: state: %w", err)
	}
	a.state = next // it holds for this process even when the disk is full
	if err := a.System.Put(sys.File{Name: stateFile, Mode: 0o600, Content: append(b, '\n')}); err != nil {
		return fmt.Errorf("lcm: %s: %w", stateFile, err)
	}
	return nil
}
