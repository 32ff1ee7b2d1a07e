package lab

import (
	"context"
	"time"

	"github.com/metalab-dev/metalab/agent/machineconfig"
	"github.com/metalab-dev/metalab/guest/staging"
)

// runMachineConfigDaemon is the machine-config daemon of a server. It boots images from the
// roots on the server's disk.
func runMachineConfigDaemon(ctx context.Context, y *systems, x *system, args []string) error {
	host := x.Host()
	account, err := machineconfig.ParseArgs(args, host)
	if err != nil {
		return err
	}
	hw, err := x.hardware(ctx)
	if err != nil {
		return err
	}
	images := staging.New(x.System, registryArch[hw.CPU.Arch])
	return machineconfig.Run(ctx, machineconfig.Config{
		Account: account, System: host, OS: images, Monitor: images, Broker: x.broker,
		Clock: daemonClock{agentClock{labClock{y.clock}}}, Enter: y.clock.Enter, Log: agentLog(y.clock, y.log, x.host, x.os.Boot),
	})
}

// daemonClock has the time that timers of an agentClock take: the hour that a drain may need is
// not over when lab time has jumped.
type daemonClock struct{ agentClock }

// Now returns client time.
func (d daemonClock) Now() time.Time { return d.c.ClientNow() }

// registryArch are the names that registries have for uname's architectures (OCI Image Index
// Specification, "platform.architecture").
var registryArch = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}
