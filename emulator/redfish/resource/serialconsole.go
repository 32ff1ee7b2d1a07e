package resource

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// The BMC offers the machine's serial console over LAN by IPMI only, to one client
// at a time. There is no graphical console, and the BMC has no command shell.

// consoleEnabled reports whether the serial console can be used: IPMI and serial over LAN
// are both on.
func consoleEnabled(v View) bool { return v.BMC.Network().IPMI.On && !v.BMC.SOL().Off }

// serialConsole returns ComputerSystem.SerialConsole.
func serialConsole(v View) Object {
	port := v.BMC.SOL().Port
	if port == 0 {
		port = v.BMC.Network().IPMI.Port
	}
	return Object{"MaxConcurrentSessions": 1, "IPMI": Object{"ServiceEnabled": consoleEnabled(v), "Port": port}}
}

// managerConsole returns Manager.SerialConsole, which older clients read.
func managerConsole(v View) Object {
	return Object{"MaxConcurrentSessions": 1, "ServiceEnabled": consoleEnabled(v), "ConnectTypesSupported": []string{"IPMI"}}
}

var (
	serialConsoleInputs  = []Input{{Name: "IPMI", Kind: Group, Of: managerConsoleInputs}}
	managerConsoleInputs = []Input{{Name: "ServiceEnabled", Kind: Boolean}}
)

// setConsole returns a function that switches the console on or off as the client asks, to
// be called after all other changes. The console cannot be on without IPMI: setConsole then
// returns a conflict.
func setConsole(c Call, name string) (do func(context.Context) error, err error) {
	on, sent := c.Values[name].(bool)
	is := c.View.BMC.SOL()
	switch {
	case on && !c.View.BMC.Network().IPMI.On:
		return nil, Reject(http.StatusConflict, message.PropertyValueConflict.With(name, "NetworkProtocol/IPMI/ProtocolEnabled").About("#/"+name))
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
