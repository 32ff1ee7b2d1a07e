package resource

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// The machine's serial console is offered over LAN by IPMI alone, to one client
// at a time. It has no graphical one, and the BMC no command shell.

// consoleOn says whether it is.
func consoleOn(v View) bool { return v.BMC.Network().IPMI.On && !v.BMC.SOL().Off }

// serialConsole is ComputerSystem.SerialConsole.
func serialConsole(v View) Object {
	port := v.BMC.SOL().Port
	if port == 0 {
		port = v.BMC.Network().IPMI.Port
	}
	return Object{"MaxConcurrentSessions": 1, "IPMI": Object{"ServiceEnabled": consoleOn(v), "Port": port}}
}

// managerConsole is Manager.SerialConsole, where older clients look.
func managerConsole(v View) Object {
	return Object{"MaxConcurrentSessions": 1, "ServiceEnabled": consoleOn(v), "ConnectTypesSupported": []string{"IPMI"}}
}

var (
	serialConsoleInputs  = []Input{{Name: "IPMI", Kind: Group, Of: managerConsoleInputs}}
	managerConsoleInputs = []Input{{Name: "ServiceEnabled", Kind: Boolean}}
)

// setConsole switches the console on or off as a client wants it, once all else
// was done. It cannot be on without IPMI.
func setConsole(c Call, name string) (do func(context.Context) error, err error) {
	on, sent := c.Values[name].(bool)
	is := c.View.BMC.SOL()
	switch {
	case on && !c.View.BMC.Network().IPMI.On:
		return nil, Decline(http.StatusConflict, message.PropertyValueConflict.With(name, "NetworkProtocol/IPMI/ProtocolEnabled").About("#/"+name))
	case !sent || on == !is.Off:
		return func(context.Context) error { return nil }, nil
	}
	s, host := *is, c.Host
	s.Off = !on
	return func(ctx context.Context) error {
		_, err := host.ApplyBMC(ctx, bmc.SetSOL{SOL: s})
		return err
	}, nil
}
