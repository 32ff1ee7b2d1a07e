// Package unit has the systemd units of agents (systemd.unit(5), systemd.service(5)).
package unit

// Program is where the agents' program is installed.
const Program = "/usr/local/bin/lab-agent"

// Service returns the unit of an agent that runs as long as the server does: Program with args,
// started when the network is online, and again five seconds after it has ended. Each line of
// service, such as "EnvironmentFile=/etc/proxy\n", is added to its section.
func Service(description, args, service string) string {
	return "[Unit]\nDescription=" + description + "\nWants=network-online.target\nAfter=network-online.target\n\n" +
		"[Service]\n" + service + "ExecStart=" + Program + " " + args + "\nRestart=always\nRestartSec=5\n\n" +
		"[Install]\nWantedBy=multi-user.target\n"
}
