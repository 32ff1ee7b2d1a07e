package redfish

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// The machine's serial console is offered over LAN by IPMI alone, to one client
// at a time. It has no graphical one, and the BMC no command shell.

// consoleOn says whether it is.
func consoleOn(v view) bool { return v.b.Network().IPMI.On && !v.b.SOL().Off }

// serialConsole is ComputerSystem.SerialConsole.
func serialConsole(v view) object {
	port := v.b.SOL().Port
	if port == 0 {
		port = v.b.Network().IPMI.Port
	}
	return object{"MaxConcurrentSessions": 1, "IPMI": object{"ServiceEnabled": consoleOn(v), "Port": port}}
}

// managerConsole is Manager.SerialConsole, where older clients look.
func managerConsole(v view) object {
	return object{"MaxConcurrentSessions": 1, "ServiceEnabled": consoleOn(v), "ConnectTypesSupported": []string{"IPMI"}}
}

var (
	serialConsoleInputs  = []input{{name: "IPMI", kind: group, of: managerConsoleInputs}}
	managerConsoleInputs = []input{{name: "ServiceEnabled", kind: boolean}}
)

// setConsole switches the console on or off as a client wants it, once all else
// was done. It cannot be on without IPMI.
func setConsole(c operation, name string) (do func(context.Context) error, err error) {
	on, sent := c.set[name].(bool)
	is := c.view.b.SOL()
	switch {
	case on && !c.view.b.Network().IPMI.On:
		return nil, decline(http.StatusConflict, message.PropertyValueConflict.With(name, "NetworkProtocol/IPMI/ProtocolEnabled").About("#/"+name))
	case !sent || on == !is.Off:
		return func(context.Context) error { return nil }, nil
	}
	s, host := *is, c.host
	s.Off = !on
	return func(ctx context.Context) error {
		_, err := host.ApplyBMC(ctx, bmc.SetSOL{SOL: s})
		return err
	}, nil
}
