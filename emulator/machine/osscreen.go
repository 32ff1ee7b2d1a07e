package machine

import (
	"fmt"
	"time"
)

// This file has what a loaded operating system prints on the console. The code
// that runs in the system's place adds lines with Print.

// loginText follows the host name in a login prompt.
const loginText = " login: "

// kernelLine formats a kernel message with the time since the system was
// loaded.
func kernelLine(up time.Duration, format string, args ...any) string {
	return fmt.Sprintf("[%5d.%06d] ", up/time.Second, up%time.Second/time.Microsecond) + fmt.Sprintf(format, args...)
}

// uptime returns the time since the system was loaded.
func (m *Machine) uptime(now time.Time) time.Duration {
	up := now.Sub(m.st.ProgressAt)
	if m.st.Progress == OSRunning {
		up += m.profile.Timings.OSBoot.Duration
	}
	return max(up, 0)
}

// printLoading prints that the boot loader starts the system.
func (m *Machine) printLoading() {
	if !m.consoleQuiet() {
		m.printLines("ok")
	}
	m.printLines("Loading "+m.systemName()+" ...", kernelLine(0, "DMI: %s, BIOS %s", joinNonEmpty(m.profile.Manufacturer, m.profile.Model), joinNonEmpty(m.profile.BIOS.Version, m.profile.BIOS.Date)))
}

// systemName returns the name of the loaded system.
func (m *Machine) systemName() string {
	if m.st.OS.Name == "" {
		return "system"
	}
	return m.st.OS.Name
}

// printBooted prints the hardware that the system has found, and its login
// prompt.
func (m *Machine) printBooted() {
	boot := m.profile.Timings.OSBoot.Duration
	p := m.settingsView().Processors()
	var found []string
	if p.Sockets > 0 {
		found = append(found, fmt.Sprintf("smp: Brought up %d nodes, %d CPUs", p.Sockets, p.Sockets*p.Threads))
	}
	if mem := m.profile.MemoryMiB; mem > 0 {
		found = append(found, fmt.Sprintf("Memory: %dK", mem<<10))
	}
	for i, d := range m.disks.View().Devices() {
		what, bytes := "", int64(0)
		if d.Drive != nil {
			what, bytes = joinNonEmpty(d.Drive.Vendor, d.Drive.Product), d.Drive.Capacity
		} else {
			what, bytes = "volume "+d.Volume.ID, d.Volume.Size()
		}
		found = append(found, fmt.Sprintf("scsi disk %d: %s, %d 512-byte logical blocks", i, what, bytes/512))
	}
	for _, n := range m.identity.NICs {
		link := "down"
		if m.cabling().Linked(n.ID) {
			link = fmt.Sprintf("up, %d Mbps full duplex", n.SpeedMbps)
		}
		found = append(found, fmt.Sprintf("%s: %s, link %s", n.Name, n.MAC, link))
	}
	var out []string
	for i, f := range found {
		out = append(out, kernelLine(boot*time.Duration(i+1)/time.Duration(len(found)+1), "%s", f))
	}
	m.printLines(append(out, "\r\n"+m.systemName()+" on "+m.identity.Name+", console ttyS1")...)
	m.printLoginPrompt()
}

// printLoginPrompt prints the login prompt.
func (m *Machine) printLoginPrompt() {
	m.print("\r\n" + m.identity.Name + loginText)
}

// shutdownLines are the last lines of a system, by whether it restarts.
var shutdownLines = map[bool]string{true: "reboot: Restarting system", false: "reboot: Power down"}

// printShutdown prints that a system stops, before the transition is made.
func (m *Machine) printShutdown(on trigger, now time.Time) {
	again, up := m.st.RestartAfterOff, m.uptime(now)
	switch {
	case m.st.OS == nil:
	case m.st.Phase == Running && on == shutdownRequested:
		m.printLines("\r\n"+map[bool]string{true: "The system will restart now", false: "The system will power off now"}[again],
			kernelLine(up, "systemd-shutdown: stopping all services"))
	case m.st.Phase == Stopping && (on == elapsed || on == restartFromOff):
		m.printLines(kernelLine(up, "%s", shutdownLines[again]))
	case m.st.Phase == Running && (on == osPowerOff || on == osRestart):
		m.printLines("\r\n" + kernelLine(up, "%s", shutdownLines[on == osRestart]))
	}
}

// printPanic prints why a system crashes.
func (m *Machine) printPanic(now time.Time, why string) {
	up := m.uptime(now)
	out := []string{"\r\n" + kernelLine(up, "Kernel panic - not syncing: %s", why)}
	if m.dumpTime() != never {
		out = append(out, kernelLine(up, "kdump: saving memory, then restarting"))
	} else {
		out = append(out, kernelLine(up, "---[ end Kernel panic - not syncing: %s ]---", why))
	}
	m.printLines(out...)
}
