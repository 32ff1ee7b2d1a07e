package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/agent/plugin/inventory"
	"github.com/metalab-dev/metalab/controller/mosk/provider/userdata"
)

// labAgent is the program of the product that units of a server start. It runs in this
// process, over the server's files and disks.
const labAgent = "lab-agent"

// AgentFile is where user data install it.
const AgentFile = "/usr/local/bin/" + labAgent

// services are the commands of labAgent that run as services.
var services = map[string]func(context.Context, *systems, *system, []string) error{
	"lcm": runLCM, "node": runNode, "mcd": runMachineConfigDaemon, "machine-config-daemon": runMachineConfigDaemon, "elemental": runElemental,
}

// run is labAgent as a service of a system.
func (y *systems) run(ctx context.Context, x *system, unit string, args, env []string) error {
	if args[0] == userdata.FetchProgram {
		return y.fetchAgent(ctx, x, unit, args[1:], env)
	}
	if len(args) < 2 || services[args[1]] == nil {
		return fmt.Errorf("%s: %s: give %s one of the commands %s", unit, strings.Join(args, " "), labAgent, strings.Join(slices.Sorted(maps.Keys(services)), ", "))
	}
	return services[args[1]](ctx, y, x, args[2:])
}

// runLCM is the LCM agent. After the agent has replaced its program by another of the lab's own,
// runLCM starts it again as the new program would start.
func runLCM(ctx context.Context, y *systems, x *system, args []string) error {
	host := x.Host()
	for {
		o, err := lcm.ParseArgs(args, host)
		if err != nil {
			return err
		}
		in, err := x.program(AgentFile)
		if err != nil {
			return err
		}
		if in.foreign { // an upgrade has replaced it: the unit starts again, and the file then
			return nil
		}
		err = lcm.Run(ctx, lcm.Config{
			Account: o.Account, System: host, Poll: o.Poll, KeepUser: o.KeepUser,
			Hardware: x.hardware, Broker: x.broker,
			Version: in.version, SHA256: in.sum, Program: AgentFile, Accept: y.acceptAgent,
			Clock: agentClock{labClock{y.clock}}, Enter: x.countSteps(y.clock.Enter), Log: agentLog(y.clock, y.log, x.host, x.os.Boot),
		})
		if upgraded := new(lcm.UpgradedError); !errors.As(err, &upgraded) {
			return err
		}
	}
}

// Steps count the looks of a server's LCM agent at its LCMMachine: those that have begun, and
// those that have ended with all that followed. A look follows each change of the object.
type Steps struct{ Begun, Ended uint64 }

// countSteps returns Config.Enter of an LCM agent, which counts its looks.
func (x *system) countSteps(enter func() func()) func() func() {
	return func() func() {
		leave := enter()
		x.steps.Lock()
		x.steps.Begun++
		x.steps.Unlock()
		return func() {
			x.steps.Lock()
			x.steps.Ended++
			x.steps.Unlock()
			leave()
		}
	}
}

// AgentSteps returns the looks of the LCM agent in this boot of a host; zero when no agent
// runs there.
func (l *Lab) AgentSteps(host string) Steps {
	y := l.agents.systems
	y.mu.Lock()
	x := y.running[host]
	y.mu.Unlock()
	if x == nil {
		return Steps{}
	}
	x.steps.Lock()
	defer x.steps.Unlock()
	return x.steps.Steps
}

// hardware is the inventory of the server, with the host name of its system and the
// addresses that it obtains by DHCP.
func (x *system) hardware(ctx context.Context) (job.Hardware, error) {
	hw, err := inventory.Collect(ctx, systemOf(x.host, x.os.Boot, ""))
	if err != nil {
		return hw, err
	}
	if b, rerr := x.ReadFile("etc/hostname"); rerr == nil {
		hw.Hostname = strings.TrimSpace(string(b))
	}
	netplan, err := x.netplan()
	if err != nil {
		return hw, err
	}
	obtainAddresses(netplan, x.host.Number(), hw.NICs)
	return hw, nil
}
