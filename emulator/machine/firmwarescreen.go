package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// This is what the machine's firmware shows on the serial console, unless it is
// set not to.

// consoleQuiet reports whether a BIOS setting keeps the firmware off the serial
// console.
func (m *Machine) consoleQuiet() bool {
	_, off := m.fw.View().Acts(firmware.NoConsole, "")
	return off
}

// postTexts are what each step of a POST shows when it begins.
var postTexts = map[Progress]func(m *Machine) []string{
	ProcessorStarted:  banner,
	MemoryStarted:     memoryText,
	ProcessorsStarted: processorText,
	PCIStarted:        cardText,
	HardwareComplete:  driveText,
}

// posting shows what a step of the POST does.
func (m *Machine) posting(step Progress) {
	if text := postTexts[step]; text != nil && !m.consoleQuiet() {
		m.printLines(text(m)...)
	}
}

func banner(m *Machine) []string {
	p := m.profile
	out := []string{
		"\r\n" + words(p.BIOS.Vendor, "BIOS", p.BIOS.Version, parenthesis(p.BIOS.Date)),
		words(m.identity.Manufacturer, m.identity.Model),
		"Serial number " + m.identity.Serial + ", UUID " + m.identity.UUID,
	}
	if m.hangs() {
		return out[:1] // it does not come further
	}
	return append(out, "F2: set-up  F12: boot from the network")
}

func memoryText(m *Machine) []string {
	d := m.profile.Memory
	if d.Modules == 0 {
		return []string{"Testing memory"}
	}
	return []string{fmt.Sprintf("Testing memory: %d x %d MiB %s, %d MT/s", d.Modules, d.MiB, words(d.Type, d.Form), d.MHz)}
}

func processorText(m *Machine) []string {
	v := m.settings()
	out := []string{fmt.Sprintf("Memory: %d MiB, no errors", m.profile.MemoryMiB)}
	if p := v.Processors(); p.Sockets > 0 {
		out = append(out, fmt.Sprintf("Processors: %d x %s, %d cores and %d threads each", p.Sockets, p.Model, p.Cores, p.Threads))
	}
	return out
}

func cardText(m *Machine) []string {
	var out []string
	for _, c := range m.profile.Cards {
		at := c.PCIAddress
		if f := m.profile.Functions(c); at == "" && len(f) > 0 {
			at = f[0].PCIAddress
		}
		out = append(out, words("PCI", at, c.Vendor, c.Product))
	}
	for _, n := range m.identity.NICs {
		link := "link down"
		if m.cabling().Linked(n.ID) {
			link = fmt.Sprintf("link up, %d Mb/s", n.SpeedMbps)
		}
		out = append(out, "NIC "+n.Name+" "+n.MAC+": "+link)
	}
	if v := m.settings(); v.HasTPM() {
		out = append(out, words(v.Profile.TPM.Vendor, v.Profile.TPM.Product))
	}
	return out
}

func driveText(m *Machine) []string {
	var out []string
	for _, c := range m.disks.View().Controllers() {
		out = append(out, words("Storage controller", c.ID, c.Vendor, c.Product))
		for _, d := range c.Drives {
			state := ""
			switch {
			case d.State == storage.DriveFailed:
				state = ": FAILED"
			case d.Predicted:
				state = ": will fail soon"
			}
			out = append(out, fmt.Sprintf("  Bay %d: %s, %s, serial number %s%s", d.Bay, words(d.Vendor, d.Product), size(d.Capacity), d.Serial, state))
		}
		for _, v := range c.Volumes {
			state := "optimal"
			switch {
			case v.Failed:
				state = "FAILED"
			case v.Degraded():
				state = "DEGRADED"
			}
			out = append(out, fmt.Sprintf("  Volume %s: %s, %s, %s", v.ID, v.Name, size(v.Size()), state))
		}
	}
	return out
}

// tries shows which boot source is tried; what becomes of it comes into the
// same line.
func (m *Machine) tries(s Source) {
	if !m.consoleQuiet() {
		m.print("Booting from " + m.sourceName(s) + ": ")
	}
}

// failures are why a source of a kind is not booted if nobody knows better.
var failures = map[SourceKind]string{
	Hdd:         "no boot loader",
	Cd:          "no medium, or none to boot from",
	Usb:         "no medium, or none to boot from",
	Pxe:         "no answer from a boot server",
	UefiHTTP:    "no answer from a boot server",
	RemoteDrive: "no answer from a target",
}

// gaveUp shows why a source was not booted.
func (m *Machine) gaveUp(s Source, why string) {
	if m.consoleQuiet() {
		return
	}
	network := s.Kind == Pxe || s.Kind == UefiHTTP
	switch {
	case why != "":
	case network && s.Device != "" && !m.cabling().Linked(s.Device):
		why = "no link"
	case failures[s.Kind] != "":
		why = failures[s.Kind]
	default:
		why = "nothing to boot"
	}
	m.printLines(why)
}

// sourceName names a boot source for people.
func (m *Machine) sourceName(s Source) string {
	switch s.Kind {
	case Cd:
		return "virtual CD"
	case Usb:
		return "virtual USB drive"
	case Pxe, UefiHTTP:
		name := map[SourceKind]string{Pxe: "PXE", UefiHTTP: "HTTP"}[s.Kind]
		for _, n := range m.identity.NICs {
			if n.ID == s.Device {
				return words(name, n.Name, n.MAC, s.URI)
			}
		}
	case Hdd:
		if d, ok := m.disks.View().Drive(s.Device); ok {
			return fmt.Sprintf("drive %d %s %s", d.Bay, d.Product, d.Serial)
		}
	}
	return words(string(s.Kind), s.Device)
}

// screens are what the programs of the firmware show.
var screens = map[SourceKind]string{
	BiosSetup: "Set-up", Utilities: "Utilities", Diags: "Diagnostics", UefiShell: "UEFI Interactive Shell",
}

// program shows that a program of the firmware is on the screen.
func (m *Machine) program(app SourceKind) {
	if !m.consoleQuiet() {
		m.printLines(screens[app] + " of " + words(m.profile.Manufacturer, m.profile.Model) + " " + m.identity.Serial + ". F10: leave it and restart")
	}
}

// tryAgain shows that a boot that found nothing begins anew.
func (m *Machine) tryAgain() {
	if !m.consoleQuiet() {
		m.printLines(fmt.Sprintf("Nothing to boot from. Attempt %d follows", m.st.Retries+1))
	}
}

// nothing shows that a boot found nothing.
func (m *Machine) nothing() {
	if !m.consoleQuiet() {
		m.printLines("Nothing to boot from. Enter: restart")
	}
}

// updating shows that POST waits for the firmware.
func (m *Machine) updating(hold time.Duration) {
	if hold > 0 && !m.consoleQuiet() {
		m.printLines("Firmware is being updated: do not switch the server off")
	}
}

// settings is as much of a view as tells what the settings make of the profile.
func (m *Machine) settings() *View { return &View{Profile: m.profile, Firmware: m.fw.View()} }

// size is a capacity as makers of drives print it.
func size(n int64) string {
	switch {
	case n >= 1e12:
		return fmt.Sprintf("%.2f TB", float64(n)/1e12)
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// words joins what is not empty.
func words(all ...string) string {
	var some []string
	for _, w := range all {
		if w != "" {
			some = append(some, w)
		}
	}
	return strings.Join(some, " ")
}

func parenthesis(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}
