package machine

import (
	"fmt"
	"time"
)

// This is what a loaded system shows on the console. What runs there in truth
// adds its own lines with Print.

// loginText follows the name of the host where a system asks who is there.
const loginText = " login: "

// kernel words a line of the kernel, which has the time since it was loaded.
func kernel(up time.Duration, format string, args ...any) string {
	return fmt.Sprintf("[%5d.%06d] ", up/time.Second, up%time.Second/time.Microsecond) + fmt.Sprintf(format, args...)
}

// uptime is for how long the loaded system has been there.
func (m *Machine) uptime(now time.Time) time.Duration {
	up := now.Sub(m.st.ProgressAt)
	if m.st.Progress == OSRunning {
		up += m.profile.Timings.OSBoot.Duration
	}
	return max(up, 0)
}

// loads shows that the boot loader hands over.
func (m *Machine) loads() {
	if !m.consoleQuiet() {
		m.printLines("ok")
	}
	m.printLines("Loading "+m.systemName()+" ...", kernel(0, "DMI: %s, BIOS %s", words(m.profile.Manufacturer, m.profile.Model), words(m.profile.BIOS.Version, m.profile.BIOS.Date)))
}

// systemName is the name of the loaded system.
func (m *Machine) systemName() string {
	if m.st.OS.Name == "" {
		return "system"
	}
	return m.st.OS.Name
}

// runs shows what a system has found, and its login prompt.
func (m *Machine) runs() {
	boot := m.profile.Timings.OSBoot.Duration
	p := m.settings().Processors()
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
			what, bytes = words(d.Drive.Vendor, d.Drive.Product), d.Drive.Capacity
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
		out = append(out, kernel(boot*time.Duration(i+1)/time.Duration(len(found)+1), "%s", f))
	}
	m.printLines(append(out, "\r\n"+m.systemName()+" on "+m.identity.Name+", console ttyS1")...)
	m.prompt()
}

// prompt asks who is there.
func (m *Machine) prompt() {
	m.print("\r\n" + m.identity.Name + loginText)
}

// farewells are what a system shows when it goes by itself.
var farewells = map[bool]string{true: "reboot: Restarting system", false: "reboot: Power down"}

// leaves shows that a system goes, before the machine does what follows.
func (m *Machine) leaves(on trigger, now time.Time) {
	again, up := m.st.RestartAfterOff, m.uptime(now)
	switch {
	case m.st.OS == nil:
	case m.st.Phase == Running && on == askOff:
		m.printLines("\r\n"+map[bool]string{true: "The system will restart now", false: "The system will power off now"}[again],
			kernel(up, "systemd-shutdown: stopping all services"))
	case m.st.Phase == Stopping && (on == elapsed || on == comeBack):
		m.printLines(kernel(up, "%s", farewells[again]))
	case m.st.Phase == Running && (on == selfOff || on == selfBoot):
		m.printLines("\r\n" + kernel(up, "%s", farewells[on == selfBoot]))
	}
}

// panics shows why a system crashes.
func (m *Machine) panics(now time.Time, why string) {
	up := m.uptime(now)
	out := []string{"\r\n" + kernel(up, "Kernel panic - not syncing: %s", why)}
	if m.dumpTime() != never {
		out = append(out, kernel(up, "kdump: saving memory, then restarting"))
	} else {
		out = append(out, kernel(up, "---[ end Kernel panic - not syncing: %s ]---", why))
	}
	m.printLines(out...)
}
